package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// holds presses a key, which comes again while it is down, also on the page that comes next.
func (b *browser) holds(key string, again bool) {
	b.Helper()
	do(b, "holding "+key, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: key, Text: key, AutoRepeat: &again})
		return err
	}))
}

// TestConsoleApprovesWhatWasRead: a key that is held down approves one call, and not the next
// one, which the page that comes shows; and it is the call that the reader is at, however
// they came to it.
func TestConsoleApprovesWhatWasRead(t *testing.T) {
	entry, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "drop"}}})
	g := start(t, nil, servers{"db": entry}, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}, map[string]any{"name": "drops", "ask": []string{"db__drop"}}})).ready()
	b := browse(t, g)
	b.signIn()
	answered := make(chan reply, 3)
	for i := range 3 {
		go func() {
			answered <- g.chat(fmt.Sprintf("CALL drop {\"message\":\"table %d\"}\nTHEN\nSAY done", i))
		}()
	}
	waiting := func(n int) {
		t.Helper()
		g.until(fmt.Sprint(n, " questions in the inbox"), func() bool {
			b.open("/console/inbox")
			return do(b, "the inbox", chromedp.Evaluate[int](`document.querySelectorAll("form.decide").length`)) == n
		})
	}
	waiting(3)
	second := do(b, "the second question", chromedp.Evaluate[string](`document.querySelectorAll("article.question")[1].querySelector("pre.json").textContent.match(/table \d/)[0]`))
	do(b, "j", chromedp.KeyEvent("j"))
	do(b, "the second question", chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("article.question")[1].focus(); 0`))
	do(b, "a", chromedp.KeyEvent("a"))
	b.becomes("the answer", `document.querySelector(".said") !== null`)
	<-answered
	if do(b, "what is left", chromedp.Evaluate[bool](fmt.Sprintf(`[...document.querySelectorAll("article.question > pre.json")].some((e) => e.textContent.includes(%q))`, second))) {
		t.Errorf("another call than that of %s, which the reader was at, was approved", second)
	}
	waiting(2)
	do(b, "j", chromedp.KeyEvent("j"))
	b.holds("a", false)
	b.becomes("the answer", `document.querySelector(".said") !== null && document.querySelectorAll("form.decide").length === 1`)
	for range 3 {
		b.holds("a", true)
	}
	<-answered
	waiting(1)
	if calls := ran(t, log); len(calls) != 2 {
		t.Errorf("%d calls ran", len(calls))
	}
	do(b, "d", chromedp.KeyEvent("d"))
	<-answered
}
