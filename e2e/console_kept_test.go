package e2e

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestConsoleKeepsWhatWasWritten: where a session ends, a page on which its reader wrote
// something says so and stays, with the conversation and the message that is being written;
// and goes on when they have signed in on another page. Other pages lead to the sign-in.
func TestConsoleKeepsWhatWasWritten(t *testing.T) {
	g := start(t, nil, nil, withoutServers).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/playground")
	b.becomes("its script", `document.querySelector("#curl").textContent !== ""`)
	answers := `[...document.querySelectorAll(".turn.model")].map((e) => e.textContent).join()`
	say := func(text string) {
		t.Helper()
		do(b, text, chromedp.SendKeys(chromedp.CSS("#message"), text))
	}
	say("SAY first\n")
	b.becomes("the first answer", `!document.querySelector("#send").disabled && `+answers+` === "first"`)
	say("SAY second")

	ctx, closes := chromedp.NewContext(b.ctx)
	t.Cleanup(closes)
	other := &browser{t, ctx, g}
	other.open("/console/tools")
	do(other, "signing out", chromedp.Evaluate[bool](`fetch("/console/sign-out", {method: "POST"}).then(() => true)`, chromedp.EvalAwaitPromise))
	other.becomes("the page to sign in", `document.querySelector("#sign-in") !== null`)
	b.becomes("what it says", `!document.querySelector("#over").hidden`)
	b.axe("a page that is signed out")
	say("\n")
	b.becomes("why it is not asked", `document.querySelector(".talk .error")?.textContent.includes("sign in")`)

	other.signIn()
	b.becomes("signed in again", `document.querySelector("#over").hidden`)
	say("SAY third\n")
	b.becomes("the next answer", `!document.querySelector("#send").disabled && `+answers+` === "first,third"`)
}

// TestConsoleSignOutLeavesNothing: who signs out on one page does so on all of them, also where
// they wrote something: what is on those is not for who comes to the browser next.
func TestConsoleSignOutLeavesNothing(t *testing.T) {
	g := start(t, nil, nil, withoutServers).ready()
	b := browse(t, g)
	b.signIn()
	b.open("/console/playground")
	b.becomes("its script", `document.querySelector("#curl").textContent !== ""`)
	do(b, "writing", chromedp.SendKeys(chromedp.CSS("#message"), "SAY only yours\n"))
	b.becomes("the answer", `[...document.querySelectorAll(".turn.model")].map((e) => e.textContent).join() === "only yours"`)

	ctx, closes := chromedp.NewContext(b.ctx)
	t.Cleanup(closes)
	other := &browser{t, ctx, g}
	other.open("/console/live")
	do(other, "signing out", chromedp.Click(chromedp.CSS("form.who button")))
	other.becomes("the page to sign in", `document.querySelector("#sign-in") !== null`)
	b.becomes("the page to sign in", `document.querySelector("#sign-in") !== null && !document.body.textContent.includes("only yours")`)
}
