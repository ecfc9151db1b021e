package credential

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// strict has an authorization server that refuses to hear of scopes that it has not. It
// tells what it was asked for.
func strict(w *world, scopes *[]string) *[]string {
	var asked []string
	w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/authorize" {
			w.authorize(rw, r)
			return
		}
		wanted := strings.Fields(q.Get("scope"))
		slices.Sort(wanted) // the SDK's order is by chance
		asked = append(asked, strings.Join(wanted, " "))
		for _, s := range wanted {
			if !slices.Contains(*scopes, s) {
				http.Redirect(rw, r, q.Get("redirect_uri")+"?"+url.Values{"error": {"invalid_scope"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
				return
			}
		}
		w.authorize(rw, r)
	})
	return &asked
}

// TestScopesOfAnotherIssuer: what was asked of one authorization server is not asked of the
// next one, which knows nothing of it.
func TestScopesOfAnotherIssuer(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.needs = "old"
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	next := newWorld(t)
	next.server = w.server // the same server
	next.needs = "read"
	w.server.Config.Handler = http.HandlerFunc(next.serve)
	asked := strict(next, &[]string{"read", "offline_access"})
	if err := logIn(t, next, s, Config{}); err != nil {
		t.Errorf("%v, asked for %q", err, *asked)
	}
}

// TestScopesThatAreNoMore: a scope that an authorization server has no more keeps nobody
// from logging in for good.
func TestScopesThatAreNoMore(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	scopes := []string{"old", "read", "offline_access"}
	asked := strict(w, &scopes)
	w.needs = "old"
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	w.needs, scopes = "read", scopes[1:]
	clear(w.tokens)
	if err := logIn(t, w, s, Config{}); err == nil || !strings.Contains(err.Error(), "invalid_scope") {
		t.Errorf("%v", err)
	}
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Errorf("again: %v", err)
	}
	if diff := cmp.Diff([]string{"offline_access old", "offline_access old read", "offline_access read"}, *asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
