package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestConsoleSignInByAddress: the address that "dragoman console" prints signs in, also where
// the page to sign in is open already and only what stands behind the # is new; and what
// stands there of another page's address is no secret, but where its reader then comes.
func TestConsoleSignInByAddress(t *testing.T) {
	g := start(t, nil, nil, withoutServers).ready()
	b := browse(t, g)
	b.open("/console/inbox#changed")
	if alerts := do(b, "what it says", chromedp.Evaluate[string](`[...document.querySelectorAll("[role=alert]")].map((e) => e.textContent).join()`)); alerts != "" {
		t.Errorf("a place on a page was shown as a secret: %s", alerts)
	}
	if next := do(b, "where it goes on", chromedp.Evaluate[string](`document.querySelector("#sign-in").elements.next.value`)); next != "/console/inbox#changed" {
		t.Errorf("it goes on at %q", next)
	}
	b.open("/console/sign-in")
	cmd := exec.Command(binary(b), "console", "--gateway", g.Root)
	cmd.Env = g.cmd.Env
	address, err := cmd.Output()
	if err != nil {
		t.Fatalf("dragoman console: %v", err)
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(string(address)), "#")
	do(b, "the secret behind the #", chromedp.Evaluate[chromedp.Void](`location.hash = `+quoted(secret)+`; 0`))
	b.becomes("signed in", `document.querySelector(".figures") !== null`)
}
