package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestConsoleManyPages: ten pages of one browser, which has six connections for one host, are
// open at once, and each says how many calls wait; also those that were opened before, and
// when the one that listened for them is closed.
func TestConsoleManyPages(t *testing.T) {
	entry, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "drop"}}})
	g := start(t, nil, servers{"db": entry}, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}, map[string]any{"name": "drops", "ask": []string{"db__drop"}}})).ready()
	b := browse(t, g)
	b.signIn()
	pages := []*browser{b}
	var closeLast func()
	for _, path := range []string{"tools", "inbox", "usage", "playground", "audit", "configuration", "live", "servers/db", ""} {
		ctx, closes := chromedp.NewContext(b.ctx)
		t.Cleanup(closes)
		page := &browser{t, ctx, g}
		page.open("/console/" + path)
		pages, closeLast = append(pages, page), closes
	}
	says := func(pages []*browser, waiting int) {
		t.Helper()
		for n, page := range pages {
			page.becomes(fmt.Sprintf("%d calls that wait, at page %d", waiting, n), fmt.Sprintf(`document.querySelector("#inbox-count").textContent === "%d"`, waiting))
		}
	}
	says(pages, 0)
	asks := func(what string) {
		body := fmt.Sprintf(`{"model":"rehearsal","messages":[{"role":"user","content":"CALL drop {\"message\":\"%s\"}"}]}`, what)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.Base+"/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if res, err := http.DefaultClient.Do(r); err == nil { // it waits until the test is over
				res.Body.Close()
			}
		}()
	}
	asks("people")
	says(pages, 1)
	closeLast()
	asks("places")
	says(pages[:len(pages)-1], 2)
}
