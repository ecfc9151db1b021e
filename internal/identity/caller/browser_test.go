package caller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestSignInShowsItsSecret: the console shows its secret where the authorization server
// takes it, and without one is named in the body.
func TestSignInShowsItsSecret(t *testing.T) {
	const code, header, body = "the code", "header", "body"
	for name, test := range map[string]struct {
		methods []string
		secret  string
		want    string
	}{
		"it does not say": {nil, "s:cret", header},
		"both":            {[]string{"client_secret_post", "client_secret_basic"}, "s:cret", header},
		"the body alone":  {[]string{"client_secret_post", "none"}, "s:cret", body},
		"a public client": {[]string{"client_secret_basic", "none"}, "", "nowhere"},
		"something else":  {[]string{"private_key_jwt"}, "s:cret", header},
	} {
		i := issuertest.New(t, "")
		shown := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/.well-known/oauth-authorization-server":
				m := map[string]any{
					"issuer": i.Name, "jwks_uri": i.Name + "/keys", "authorization_endpoint": i.Name + "/authorize", "token_endpoint": i.Name + "/token",
					"code_challenge_methods_supported": []string{"S256"},
				}
				if test.methods != nil {
					m["token_endpoint_auth_methods_supported"] = test.methods
				}
				_ = json.NewEncoder(w).Encode(m)
			case "/token":
				id, key, ok := r.BasicAuth()
				switch {
				case ok && id == "console" && key == "s%3Acret":
					shown = header
				case r.PostFormValue("client_id") == "console" && r.PostFormValue("client_secret") == "s:cret":
					shown = body
				case r.PostFormValue("client_id") == "console" && !ok:
					shown = "nowhere"
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"access_token": i.Token(i.Good(base, nil)), "token_type": "Bearer"})
			default:
				i.ServeHTTP(w, r)
			}
		}))
		i.Name = server.URL
		f := authorized(t, i, func(c *Config) { c.OAuth[0].Console.ID, c.OAuth[0].Console.Secret = "console", secret.New(test.secret) })
		_, a, err := f.SignIn(t.Context(), i.Name, "/back", "/console/", false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back := httptest.NewRequest("GET", base+"/back?"+url.Values{"code": {code}, "state": {a.State}}.Encode(), nil)
		if who, err := f.SignedIn(back, a, "/back"); err != nil || who.Name != "ada" {
			t.Errorf("%s: %v, %v", name, who, err)
		}
		if shown != test.want {
			t.Errorf("%s: its secret stands in the %s, want %s", name, shown, test.want)
		}
		server.Close()
	}
}

// TestSignInAgain: who has to show again who they are is asked for it in words that are an
// authorization server's, which max_age is without openid for none (OpenID Connect Core,
// section 3.1.2.1).
func TestSignInAgain(t *testing.T) {
	for _, test := range []struct {
		scopes      []string
		again       bool
		prompt, age string
	}{
		{[]string{"use"}, false, "", ""},
		{[]string{"use"}, true, "login", ""},
		{[]string{"openid", "use"}, true, "login", "0"},
	} {
		i := issuertest.New(t, "")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": i.Name, "authorization_endpoint": i.Name + "/authorize", "token_endpoint": i.Name + "/token",
				"code_challenge_methods_supported": []string{"S256"},
			})
		}))
		i.Name = server.URL
		f := authorized(t, i, func(c *Config) { c.OAuth[0].Console.ID, c.OAuth[0].Console.Scopes = "console", test.scopes })
		address, _, err := f.SignIn(t.Context(), i.Name, "/back", "/console/", test.again)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if q := u.Query(); q.Get("prompt") != test.prompt || q.Get("max_age") != test.age {
			t.Errorf("%v: sent to %s", test, address)
		}
		server.Close()
	}
}
