package credential

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// moved is a world whose MCP server names another issuer than the address of its
// authorization server.
func moved(t *testing.T, issuer func(login string) string) *world {
	w := newWorld(t)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/oauth-protected-resource/mcp" {
			w.serve(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(map[string]any{"resource": server.URL + "/mcp", "authorization_servers": []string{issuer(w.login.URL)}})
	}))
	t.Cleanup(server.Close)
	w.server, w.issuer = server, issuer(w.login.URL)
	w.metadata["issuer"] = w.issuer
	return w
}

// TestSlashOfIssuer: an issuer ends with a slash, and its metadata are where RFC 8414 has
// them, behind none; those who ask at another place are sent on, as Starlette does.
func TestSlashOfIssuer(t *testing.T) {
	for _, path := range []string{"/", "/tenant/"} {
		for _, place := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
			w := moved(t, func(login string) string { return login + path })
			place += strings.TrimSuffix(path, "/")
			w.login.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == place:
					r.URL.Path = "/.well-known/oauth-authorization-server"
				case r.URL.Path == place+"/":
					http.Redirect(rw, r, place, http.StatusTemporaryRedirect)
					return
				case strings.Contains(r.URL.Path, "/.well-known/"):
					rw.WriteHeader(http.StatusNotFound)
					return
				}
				w.authorize(rw, r)
			})
			if err := logIn(t, w, newStore(t), Config{}); err != nil {
				t.Errorf("%s at %s: %v", path, place, err)
			}
			robot := gatewayOf(t, w, nil, Config{Grant: ClientCredentialsGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.issuer})
			if status, err := ask(t.Context(), robot, w.url()); status != 200 || err != nil {
				t.Errorf("%s at %s, by client credentials: %d, %v", path, place, status, err)
			}
		}
	}
}

// TestChosenAmongMany: of several authorization servers that a server names, somebody logs in
// at the one that the configuration names, and else at the first.
func TestChosenAmongMany(t *testing.T) {
	for name, tt := range map[string]struct {
		config func(*world) Config
		good   bool
	}{
		"a client of the second":   {func(w *world) Config { return Config{ClientID: "x", Issuer: w.login.URL} }, true},
		"registered at the second": {func(w *world) Config { return Config{Issuer: w.login.URL} }, true},
		"a client of another":      {func(*world) Config { return Config{ClientID: "x", Issuer: "https://login.example"} }, false},
		"no one is chosen":         {func(*world) Config { return Config{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newStore(t)
			first := newWorld(t)
			first.metadata["registration_endpoint"] = nil // nobody logs in there
			w.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/.well-known/oauth-protected-resource/mcp" {
					w.serve(rw, r)
					return
				}
				rw.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(rw).Encode(map[string]any{"resource": w.url(), "authorization_servers": []string{first.login.URL, w.login.URL}})
			})
			err := logIn(t, w, s, tt.config(w))
			e, none := s.Get(Account{w.url(), ""})
			if (err == nil) != tt.good || (none == nil) != tt.good || tt.good && e.TokenURL != w.login.URL+"/token" {
				t.Errorf("%v, kept %q", err, e.TokenURL)
			}
			if first.asked != nil || !tt.good && w.asked != nil {
				t.Errorf("asked for a token: %v, %v", first.asked, w.asked)
			}
		})
	}
}
