package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestConsoleSignInAtProvider: who has no key signs in where the gateway's tokens come
// from, in a real browser, and may do what their token says. An answer that this browser
// did not ask for signs nobody in.
func TestConsoleSignInAtProvider(t *testing.T) {
	p := startProvider(t)
	p.console = true
	g, public := p.behind(t, false)
	b := browse(t, g)
	do(b, "the console", chromedp.Navigate(public+"/console/tools"))
	b.becomes("a way to the provider", `document.querySelector("a.button") !== null`)
	b.axe("the page to sign in")
	do(b, "signing in", chromedp.Click(chromedp.CSS("a.button")))
	b.becomes("the catalogue", `location.pathname === "/console/tools" && document.querySelector(".who")?.innerText.includes("ada")`)
	if at := do(b, "the address", chromedp.Location()); strings.Contains(at, "code=") {
		t.Errorf("the code stays in the address: %s", at)
	}

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	victim := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(address string) (*http.Response, string) {
		t.Helper()
		res, err := victim.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		page, _ := io.ReadAll(res.Body)
		return res, string(page)
	}
	begin := public + "/console/sign-in/at?" + url.Values{"issuer": {p.issuer}, "next": {"https://evil.example/"}}.Encode()
	res, _ := get(begin)
	to, err := res.Location()
	if err != nil {
		t.Fatal(res.Status, err)
	}
	asked := to.Query()
	if asked.Get("code_challenge_method") != "S256" || asked.Get("resource") != public || asked.Get("state") == "" || !strings.HasPrefix(to.String(), p.issuer) {
		t.Errorf("sent to %s", to)
	}
	for _, c := range res.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie %s", c)
		}
	}
	if res, _ := get(public + "/console/sign-in/at?issuer=https%3A%2F%2Fevil.example"); res.StatusCode != 401 {
		t.Errorf("another issuer: %s", res.Status)
	}
	back := public + "/console/sign-in/back?"
	for what, answer := range map[string]url.Values{
		"another state":  {"code": {"x"}, "state": {"x"}, "iss": {p.issuer}},
		"another issuer": {"code": {"x"}, "state": {asked.Get("state")}, "iss": {"https://evil.example"}},
		"no issuer":      {"code": {"x"}, "state": {asked.Get("state")}},
		"no code":        {"error": {"access_denied"}, "state": {asked.Get("state")}, "iss": {p.issuer}},
		"a wrong code":   {"code": {"x"}, "state": {asked.Get("state")}, "iss": {p.issuer}},
	} {
		res, _ := get(begin) // an attempt is good once
		again, err := res.Location()
		if err != nil {
			t.Fatal(res.Status, err)
		}
		if answer.Get("state") != "x" {
			answer.Set("state", again.Query().Get("state"))
		}
		res, page := get(back + answer.Encode())
		if res.StatusCode != 401 || regexp.MustCompile(`\bada\b`).MatchString(page) {
			t.Errorf("%s: %s %s", what, res.Status, page)
		}
	}
	if res, _ := get(public + "/console/tools"); res.StatusCode != 401 {
		t.Errorf("somebody is signed in: %s", res.Status)
	}
}
