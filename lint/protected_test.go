package lint

import (
	"net/http"
	"slices"
	"testing"
)

// TestProtected: a server that wants authorization, and does it right, has no finding
// with a token; without one it is said to be protected, and has no grade.
func TestProtected(t *testing.T) {
	for _, token := range []bool{true, false} {
		m := newModel(t, "legacy")
		target := m.overHTTP(t)
		withToken(guarded(rightResource, rightIssuer))(t, m, &target)
		want, grade := []string(nil), "A"
		if !token {
			target.Header, want, grade = nil, []string{"P031"}, Unseen
		}
		r, err := Run(t.Context(), []Target{target}, Options{})
		must(t, err)
		if got := rulesOf(r); !slices.Equal(got, want) {
			t.Errorf("token %v: found %v: %+v", token, got, r.Findings)
		}
		if a := r.Servers[0]; a.Grade != grade {
			t.Errorf("token %v: %d %s", token, a.Score, a.Grade)
		}
	}
}

// TestMetadataIsReadWithAToken: what is wrong with the documents is found with a good
// token as it is without.
func TestMetadataIsReadWithAToken(t *testing.T) {
	bare := func(m *model) {
		guarded(rightResource, rightIssuer)(m)
		refuse := m.handler
		m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			refuse(&changedWriter{ResponseWriter: w, change: func(w *changedWriter) { w.Header().Del("WWW-Authenticate") }}, r, next)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*model)
		want   string
	}{
		{"no metadata", guarded(``, rightIssuer), "X010"},
		{"another resource", guarded(`{"resource":"https://other.example/mcp","authorization_servers":["ISSUER"]}`, rightIssuer), "X010"},
		{"another issuer", guarded(rightResource, `{"issuer":"https://other.example","code_challenge_methods_supported":["S256"]}`), "X011"},
		{"no PKCE", guarded(rightResource, `{"issuer":"ISSUER","code_challenge_methods_supported":["plain"]}`), "X011"},
		{"all scopes", guarded(`{"resource":"URL","authorization_servers":["ISSUER"],"scopes_supported":["*"]}`, rightIssuer), "X014"},
		{"no challenge", bare, "X013"},
	} {
		m := newModel(t, "legacy")
		target := m.overHTTP(t)
		withToken(tt.change)(t, m, &target)
		r, err := Run(t.Context(), []Target{target}, Options{})
		must(t, err)
		if got := rulesOf(r); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: found %v", tt.name, got)
		}
	}
}

// TestPartlyProtected: in the modern era there is no session that could open anything, but a
// server may ask for credentials at its greeting alone. One that is open is just that.
func TestPartlyProtected(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(r *http.Request) bool
		want []string
	}{
		{"all but the greeting", func(r *http.Request) bool {
			return r.Header.Get("Mcp-Method") != "server/discover" && r.Header.Get("Authorization") == "" && r.URL.Path == "/mcp"
		}, []string{"X009"}},
		{"everything", func(r *http.Request) bool {
			return r.Header.Get("Authorization") == "" && r.URL.Path == "/mcp"
		}, nil},
		{"nothing", func(*http.Request) bool { return false }, nil},
	} {
		m := newModel(t, modern)
		target := m.overHTTP(t)
		withToken(lettingIn(tt.open))(t, m, &target)
		r, err := Run(t.Context(), []Target{target}, Options{})
		must(t, err)
		if got := rulesOf(r); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %v: %+v", tt.name, got, r.Findings)
		}
	}
}
