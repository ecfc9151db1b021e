package credential

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestUselessTokens: a server takes no token any more, however new: its issuer has become
// another one, or its clock is wrong. Nobody hammers the authorization server, which may
// keep each refresh token that was used, and it is said what can be done.
func TestUselessTokens(t *testing.T) {
	for name, test := range map[string]struct {
		config func(*world) Config
		words  string
	}{
		"of a login": {func(*world) Config { return Config{} }, "run dragoman login tickets"},
		"by client credentials": {func(w *world) Config {
			return Config{Grant: ClientCredentialsGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.login.URL}
		}, "lets the client robot do"},
	} {
		w, s := newWorld(t), newStore(t)
		c := test.config(w)
		if c.LogsIn() {
			if err := logIn(t, w, s, c); err != nil {
				t.Fatal(err)
			}
		}
		transport := transportOf(t, TransportOptions{Account: Account{w.url(), ""}, Config: c, Store: s})
		client := &http.Client{Transport: transport}
		want := func(status int) {
			t.Helper()
			if got, err := ask(t.Context(), client, w.url()); got != status || err != nil {
				t.Errorf("%s: %d, %v, want %d", name, got, err, status)
			}
		}
		want(200)
		w.do(func() { w.refuses, w.asked = true, nil })
		for range 5 {
			want(401)
		}
		if len(w.asked) != 1 {
			t.Errorf("%s: asked %d times for a token", name, len(w.asked))
		}
		if stuck := transport.Stuck(); stuck == nil || !strings.Contains(stuck.Error(), test.words) || !strings.Contains(stuck.Error(), errUseless.Error()) {
			t.Errorf("%s: says %v", name, stuck)
		}
		w.do(func() { w.refuses = false })
		want(200)
	}
}
