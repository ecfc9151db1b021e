package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestConsoleListensAgain: a page that stays open says how many calls wait also after the
// proxy before the gateway has answered for it, as it does while that is restarted; and
// asks its reader to sign in where nobody is signed in any more.
func TestConsoleListensAgain(t *testing.T) {
	entry, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "drop"}}})
	g := start(t, nil, servers{"db": entry}, with("store", map[string]any{"path": filepath.Join(t.TempDir(), "dragoman.db")}),
		with("policy", []any{map[string]any{"allow": []string{"*"}}, map[string]any{"name": "drops", "ask": []string{"db__drop"}}})).ready()
	to, err := url.Parse(g.Root)
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool // the gateway, as far as the proxy knows
	var refused atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() && strings.HasSuffix(r.URL.Path, "/events") {
			refused.Add(1)
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	cmd := exec.Command(binary(t), "console", "--gateway", g.Root)
	cmd.Env = g.cmd.Env
	address, err := cmd.Output()
	if err != nil {
		t.Fatalf("dragoman console: %v", err)
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(string(address)), "#")
	g.Root = front.URL
	b := browse(t, g)
	b.open("/console/sign-in#" + secret)
	b.becomes("signed in", `document.querySelector(".figures") !== null`)
	goes := func(page string) {
		t.Helper()
		before := refused.Load()
		away.Store(true)
		b.open(page)
		g.until("a refusal", func() bool { return refused.Load() > before })
	}
	goes("/console/inbox")
	away.Store(false)
	answered := make(chan reply, 1)
	go func() { answered <- g.chat("CALL drop {\"message\":\"people\"}\nTHEN\nSAY done") }()
	b.becomes("a call that waits, in the title", `document.title.startsWith("(1)")`)
	b.open("/console/inbox")
	do(b, "deny", chromedp.Click(chromedp.CSS("button.no")))
	b.becomes("the answer", `document.querySelector(".said") !== null`) // else the next page ends it on its way
	<-answered

	goes("/console/live")
	do(b, "signing out elsewhere", chromedp.Evaluate[bool](`fetch("/console/sign-out", {method: "POST"}).then(() => true)`, chromedp.EvalAwaitPromise))
	away.Store(false)
	b.becomes("the page to sign in", `document.querySelector("#sign-in") !== null`)
}
