package accesstoken_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// asking configures introspection.
func asking(c *accesstoken.Issuer) {
	c.Introspection = &accesstoken.Introspection{URL: c.Name + "/introspect", ClientID: "gateway", ClientSecret: secret.New(issuertest.Secret)}
}

// active are the claims of a good token as introspection tells them, changed.
func active(i *issuertest.Issuer, change issuertest.Claims) issuertest.Claims {
	claims := i.Good(resource, issuertest.Claims{"active": true, "token_type": "Bearer"})
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func TestIntrospection(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	v := verifier(t, i, asking)
	for name, tt := range map[string]struct {
		change issuertest.Claims
		who    string // empty: nobody
	}{
		"usual":               {nil, "ada"},
		"a client's own":      {issuertest.Claims{"sub": nil}, "client:ide"},
		"without an issuer":   {issuertest.Claims{"iss": nil}, "ada"},
		"without an expiry":   {issuertest.Claims{"exp": nil}, "ada"},
		"without a type":      {issuertest.Claims{"token_type": nil}, "ada"},
		"of Hydra":            {issuertest.Claims{"token_use": "access_token"}, "ada"},
		"not active":          {issuertest.Claims{"active": false}, ""},
		"active in words":     {issuertest.Claims{"active": "true"}, ""},
		"nothing of activity": {issuertest.Claims{"active": nil}, ""},
		"another issuer":      {issuertest.Claims{"iss": "https://evil.example"}, ""},
		"another audience":    {issuertest.Claims{"aud": "https://other.example"}, ""},
		"no audience":         {issuertest.Claims{"aud": nil}, ""},
		"expired":             {issuertest.Claims{"exp": 1}, ""},
		"not good yet":        {issuertest.Claims{"nbf": time.Now().Add(time.Hour).Unix()}, ""},
		"a refresh token":     {issuertest.Claims{"token_use": "refresh_token"}, ""},
		"an ID token":         {issuertest.Claims{"token_use": "id"}, ""},
		"bound to a key":      {issuertest.Claims{"token_type": "DPoP"}, ""},
		"bound by its claims": {issuertest.Claims{"cnf": map[string]string{"x5t#S256": "x"}}, ""},
		"nobody":              {issuertest.Claims{"sub": nil, "client_id": nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v.Verify(t.Context(), i.Opaque(active(i, tt.change)), resource)
			switch end := outcome(t, got, err); {
			case tt.who == "" && end != "invalid":
				t.Errorf("%s: %+v, %v", end, got, err)
			case tt.who != "" && (end != "good" || got.Subject != tt.who || got.Issuer != i.Name):
				t.Errorf("%s: %+v, %v", end, got, err)
			}
		})
	}
	before := i.Asked("/introspect")
	if got, err := v.Verify(t.Context(), i.Token(i.Good(resource, issuertest.Claims{"iss": "https://evil.example"})), resource); outcome(t, got, err) != "invalid" || i.Asked("/introspect") != before {
		t.Error("the token of another issuer was shown to this one")
	}
	if got, err := v.Verify(t.Context(), i.Token(i.Good(resource, nil)), resource); outcome(t, got, err) != "invalid" || i.Asked("/introspect") == before || i.Asked("/keys") != 0 {
		t.Error("a signed token is taken without asking, where each is to be asked about")
	}
}

// An answer holds for half a minute, and the end of the token ends it.
func TestIntrospectionIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := issuertest.New(t, "https://login.example")
		v := verifier(t, i, asking)
		token := i.Opaque(active(i, nil))
		verify := func() string {
			t.Helper()
			got, err := v.Verify(t.Context(), token, resource)
			return outcome(t, got, err)
		}
		release := i.Hold()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if got := verify(); got != "good" {
					t.Error(got)
				}
			})
		}
		synctest.Wait()
		release()
		wg.Wait()
		if n := i.Asked("/introspect"); n != 1 {
			t.Errorf("asked %d times", n)
		}
		i.Revoke(token)
		if got := verify(); got != "good" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(31 * time.Second)
		if got := verify(); got != "invalid" {
			t.Errorf("after half a minute: %s", got)
		}
		verify()
		if n := i.Asked("/introspect"); n != 2 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(11 * time.Second)
		i.Refuse(http.StatusInternalServerError)
		if got := verify(); got != "unavailable" {
			t.Errorf("the issuer is down: %s", got)
		}
	})
}

// Many tokens at once are a few questions at a time, and nobody waits for ever.
func TestIntrospectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := issuertest.New(t, "https://login.example")
		v := verifier(t, i, asking)
		release := i.Hold()
		defer release()
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				got, err := v.Verify(t.Context(), fmt.Sprint("forged", n), resource)
				if end := outcome(t, got, err); end != "unavailable" {
					t.Error(end)
				}
			})
		}
		synctest.Wait()
		if n := i.Asked("/introspect"); n != 16 {
			t.Errorf("%d questions at once", n)
		}
		wg.Wait()
	})
}

// Our own mistake about who we are is no fault of a token.
func TestIntrospectionRefusesUs(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	v := verifier(t, i, func(c *accesstoken.Issuer) { asking(c); c.Introspection.ClientSecret = secret.New("wrong") })
	got, err := v.Verify(t.Context(), i.Opaque(active(i, nil)), resource)
	if end := outcome(t, got, err); end != "unavailable" || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%s: %v", end, err)
	}
}

// A token that its issuer cannot even read is no good; that the issuer has trouble, or with
// us, is not known to be the token's fault.
func TestIntrospectionRefusesTokens(t *testing.T) {
	i := issuertest.New(t, "https://login.example")
	for refusal, want := range map[string]string{
		`400 {"error":"invalid_request"}`: "invalid", `400`: "invalid", `413`: "invalid", `422 no`: "invalid",
		`400 {"error":"invalid_client"}`: "unavailable", `401 {"error":"invalid_token"}`: "unavailable", `403`: "unavailable", `429`: "unavailable", `503`: "unavailable",
	} {
		status, body, _ := strings.Cut(refusal, " ")
		code, _ := strconv.Atoi(status)
		client := &http.Client{Transport: round(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
		})}
		config := accesstoken.Issuer{Name: i.Name}
		asking(&config)
		v, err := accesstoken.New(client, config)
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Verify(t.Context(), "hostile|token", resource)
		if end := outcome(t, got, err); end != want {
			t.Errorf("%s: %s", refusal, end)
		}
	}
}

func TestNew(t *testing.T) {
	inspect := &accesstoken.Introspection{URL: "https://a.example/introspect"}
	for name, issuers := range map[string][]accesstoken.Issuer{
		"twice":               {{Name: "https://a.example"}, {Name: "https://a.example"}},
		"two to be asked":     {{Name: "https://a.example", Introspection: inspect}, {Name: "https://b.example", Introspection: inspect}},
		"no address":          {{Name: "login"}},
		"plain http":          {{Name: "http://login.example"}},
		"a query":             {{Name: "https://a.example?x"}},
		"a user":              {{Name: "https://u:p@a.example"}},
		"keys by http":        {{Name: "https://a.example", KeySet: "http://a.example/keys"}},
		"introspection there": {{Name: "https://a.example", Introspection: &accesstoken.Introspection{URL: "file:///x"}}},
	} {
		if _, err := accesstoken.New(nil, issuers...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, fine := range []string{"https://a.example", "https://a.example/realms/x/", "http://127.0.0.1:9000", "http://[::1]:9000", "http://localhost"} {
		if _, err := accesstoken.New(nil, accesstoken.Issuer{Name: fine}); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
}

// TestDiscovery looks for metadata where an issuer may have them, and believes
// nobody who speaks for another.
func TestDiscovery(t *testing.T) {
	for name, tt := range map[string]struct {
		issuer   string
		answers  map[string]string // by path; others are not found
		want     string
		requests []string
	}{
		"OAuth": {
			"https://login.example", map[string]string{"/.well-known/oauth-authorization-server": `{"issuer":"https://login.example","jwks_uri":"https://login.example/keys"}`}, "good",
			[]string{"/.well-known/oauth-authorization-server", "/keys"},
		},
		"OpenID": {
			"https://login.example", map[string]string{"/.well-known/openid-configuration": `{"issuer":"https://login.example","jwks_uri":"https://login.example/keys"}`}, "good",
			[]string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/keys"},
		},
		"with a path": {
			"https://login.example/realms/x", map[string]string{"/realms/x/.well-known/openid-configuration": `{"issuer":"https://login.example/realms/x","jwks_uri":"https://login.example/keys"}`}, "good",
			[]string{"/.well-known/oauth-authorization-server/realms/x", "/.well-known/openid-configuration/realms/x", "/realms/x/.well-known/openid-configuration", "/keys"},
		},
		"nowhere": {
			"https://login.example", nil, "unavailable",
			[]string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		},
		"of another issuer": {
			"https://login.example", map[string]string{"/.well-known/oauth-authorization-server": `{"issuer":"https://login.example/","jwks_uri":"https://login.example/keys"}`}, "unavailable",
			[]string{"/.well-known/oauth-authorization-server"},
		},
		"an issuer twice": {
			"https://login.example", map[string]string{"/.well-known/oauth-authorization-server": `{"issuer":"https://evil.example","issuer":"https://login.example","jwks_uri":"https://login.example/keys"}`}, "unavailable",
			[]string{"/.well-known/oauth-authorization-server"},
		},
		"keys in the clear": {
			"https://login.example", map[string]string{"/.well-known/oauth-authorization-server": `{"issuer":"https://login.example","jwks_uri":"http://login.example/keys"}`}, "unavailable",
			[]string{"/.well-known/oauth-authorization-server"},
		},
		"a page": {
			"https://login.example", map[string]string{"/.well-known/oauth-authorization-server": `<html>`}, "unavailable",
			[]string{"/.well-known/oauth-authorization-server"},
		},
		"too much": {
			"https://login.example", map[string]string{"/.well-known/oauth-authorization-server": `{"x":"` + strings.Repeat("x", 1<<20) + `"}`}, "unavailable",
			[]string{"/.well-known/oauth-authorization-server"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := issuertest.New(t, tt.issuer)
			var requests []string
			client := &http.Client{Transport: round(func(r *http.Request) *http.Response {
				requests = append(requests, r.URL.Path)
				w := httptest.NewRecorder()
				text, ok := tt.answers[r.URL.Path]
				switch {
				case r.URL.Path == "/keys":
					i.ServeHTTP(w, r)
				case !ok:
					w.WriteHeader(http.StatusNotFound)
				default:
					fmt.Fprint(w, text)
				}
				return w.Result()
			})}
			v, err := accesstoken.New(client, accesstoken.Issuer{Name: tt.issuer})
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.Verify(t.Context(), i.Token(i.Good(resource, nil)), resource)
			if end := outcome(t, got, err); end != tt.want {
				t.Errorf("%s: %v", end, err)
			}
			if !slices.Equal(requests, tt.requests) {
				t.Errorf("requests (-want +got):\n%s", cmp.Diff(tt.requests, requests))
			}
		})
	}
}

type round func(*http.Request) *http.Response

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestRedirects keeps an issuer from sending us elsewhere.
func TestRedirects(t *testing.T) {
	i := issuertest.Serve(t)
	away := httptest.NewServer(http.RedirectHandler(i.Name+"/keys", http.StatusFound))
	t.Cleanup(away.Close)
	v, err := accesstoken.New(nil, accesstoken.Issuer{Name: i.Name, KeySet: away.URL + "/keys"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Verify(t.Context(), i.Token(i.Good(resource, nil)), resource)
	if end := outcome(t, got, err); end != "unavailable" || i.Asked("/keys") != 0 {
		t.Errorf("%s: %v", end, err)
	}
}

// FuzzVerify shows anything to a verifier: nothing that its issuer did not sign is
// good.
func FuzzVerify(f *testing.F) {
	i := issuertest.New(f, "https://login.example")
	good := i.Token(i.Good(resource, nil))
	f.Add(good)
	for _, bad := range i.Bad(resource) {
		f.Add(bad)
	}
	v, err := accesstoken.New(i.Client(), accesstoken.Issuer{Name: i.Name})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := v.Verify(t.Context(), token, resource)
		if (got == nil) == (err == nil) {
			t.Errorf("%q: %+v, %v", token, got, err)
		}
		// The last letter of each part has bits that mean nothing.
		same := len(token) == len(good) && strings.Count(token, ".") == 2
		if got != nil && (!same || got.Subject != "ada") {
			t.Errorf("%q is good", token)
		}
	})
}
