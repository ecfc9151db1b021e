package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestConsoleCallsOnce: a page with the result of a call by hand calls nothing again, neither
// where its reader wants to see what is new, nor where the session ends and somebody else
// signs in.
func TestConsoleCallsOnce(t *testing.T) {
	entry, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "drop"}}})
	g := start(t, nil, servers{"db": entry}).ready()
	b := browse(t, g)
	b.signIn()
	call := func() {
		b.open("/console/tool?server=db&name=drop")
		do(b, "call", chromedp.Click(chromedp.CSS("#call button")))
		b.becomes("the result", `document.querySelector("#answer .good") !== null`)
	}
	call()
	do(b, "r", chromedp.KeyEvent("r"))
	b.becomes("the form", `document.querySelector("#answer") === null && document.querySelector("#call") !== null`)
	call()
	_, secret, _ := strings.Cut(b.address(), "#")
	do(b, "another session", chromedp.Evaluate[int](fmt.Sprintf(`fetch("/console/sign-out", {method: "POST"})
		.then(() => fetch("/console/sign-in", {method: "POST", body: new URLSearchParams({secret: %q})})).then((r) => r.status)`, secret), chromedp.EvalAwaitPromise))
	b.becomes("the form", `document.querySelector("#answer") === null && document.querySelector("#call") !== null`)
	if calls := ran(t, log); len(calls) != 2 {
		t.Errorf("%d calls ran, of 2", len(calls))
	}
}
