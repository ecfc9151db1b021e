package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A world is an MCP server that wants a token and the authorization server that it
// names, on two origins.
type world struct {
	t      *testing.T
	server *httptest.Server // at /mcp
	login  *httptest.Server

	mu        sync.Mutex
	needs     string            // the scope that the server wants; empty: any
	tokens    map[string]string // access tokens that are good, with their scopes
	refresh   map[string]string // refresh tokens, with scopes
	codes     map[string]url.Values
	life      time.Duration
	anybody   bool                                                          // may be a client of its own
	metadata  map[string]any                                                // of the authorization server, changed by tests
	issuer    string                                                        // in the answer of a login; empty: the right one, "-": none
	asked     []url.Values                                                  // of the token endpoint
	refuses   bool                                                          // tokens, however good
	shown     []string                                                      // tokens that the server got
	redirects string                                                        // where the server sends requests
	exchanged func(http.ResponseWriter, *http.Request, map[string]any) bool // answers an exchange of tokens in another way
	hold      chan struct{}                                                 // nil, or what the token endpoint waits for
	came      chan struct{}                                                 // nil, or who is told that it waits
	away      bool                                                          // the token endpoint is
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, needs: "read", tokens: map[string]string{}, refresh: map[string]string{}, codes: map[string]url.Values{}, life: time.Hour, metadata: map[string]any{}}
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	w.login = httptest.NewServer(http.HandlerFunc(w.authorize))
	t.Cleanup(w.server.Close)
	t.Cleanup(w.login.Close)
	return w
}

func (w *world) url() string { return w.server.URL + "/mcp" }

func (w *world) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// serve is the MCP server.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(map[string]any{"resource": w.url(), "authorization_servers": []string{w.login.URL}, "scopes_supported": []string{"read", "write"}})
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	w.shown = append(w.shown, token)
	scope, good := w.tokens[token]
	good = good && !w.refuses
	where := `resource_metadata="` + w.server.URL + `/.well-known/oauth-protected-resource/mcp"`
	if w.needs != "" {
		where += `, scope="` + w.needs + `"`
	}
	switch {
	case w.redirects != "":
		http.Redirect(rw, r, w.redirects, http.StatusTemporaryRedirect)
	case !good:
		rw.Header().Set("WWW-Authenticate", "Bearer "+where)
		rw.WriteHeader(http.StatusUnauthorized)
	case w.needs != "" && !slices.Contains(strings.Fields(scope), w.needs):
		rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", `+where)
		rw.WriteHeader(http.StatusForbidden)
	}
}

// authorize is the authorization server.
func (w *world) authorize(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Path != "/authorize" {
		rw.Header().Set("Content-Type", "application/json")
	}
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		m := map[string]any{
			"issuer": w.login.URL, "authorization_endpoint": w.login.URL + "/authorize", "token_endpoint": w.login.URL + "/token",
			"registration_endpoint": w.login.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true, "scopes_supported": []string{"read", "write", "offline_access"},
			"grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials"},
		}
		for name, value := range w.metadata {
			if m[name] = value; value == nil {
				delete(m, name)
			}
		}
		_ = json.NewEncoder(rw).Encode(m)
	case "/register":
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none", "redirect_uris": []string{"http://127.0.0.1/callback"}})
	case "/authorize":
		q := r.URL.Query()
		if q.Get("resource") != w.url() || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
			w.t.Errorf("asked to log in with %v", q)
		}
		code, issuer := rand.Text(), w.issuer
		if w.codes[code] = q; issuer == "" {
			issuer = w.login.URL
		}
		answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {issuer}}
		if issuer == "-" {
			answer.Del("iss")
		}
		http.Redirect(rw, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	case "/token":
		w.token(rw, r)
	default:
		rw.WriteHeader(http.StatusNotFound)
	}
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	if hold, came := w.hold, w.came; hold != nil {
		w.mu.Unlock()
		if came != nil {
			came <- struct{}{}
		}
		<-hold
		w.mu.Lock()
	}
	w.asked = append(w.asked, r.Form)
	if w.away {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Form.Get("resource") != w.url() {
		w.t.Errorf("a token for %q", r.Form.Get("resource"))
	}
	scope, ok := "", false
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		q := w.codes[r.Form.Get("code")]
		delete(w.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		scope, ok = q.Get("scope"), q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:])
	case "refresh_token":
		scope, ok = w.refresh[r.Form.Get("refresh_token")]
		delete(w.refresh, r.Form.Get("refresh_token"))
	case "client_credentials":
		id, secret, basic := r.BasicAuth()
		if !basic {
			id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
		}
		scope, ok = r.Form.Get("scope"), w.anybody || id == "robot" && secret == "robot-secret"
	case exchangeGrant:
		id, secret, _ := r.BasicAuth()
		scope, ok = r.Form.Get("scope"), id == "robot" && secret == "robot-secret" && strings.HasPrefix(r.Form.Get("subject_token"), "subject-")
		ok = ok && r.Form.Get("subject_token_type") == accessTokenType && r.Form.Get("requested_token_type") == accessTokenType
	}
	if !ok {
		rw.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(rw).Encode(map[string]any{"error": "invalid_grant", "error_description": "\x1b[31mlook here"})
		return
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	w.tokens[access] = scope
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(w.life.Seconds()), "scope": scope}
	if r.Form.Get("grant_type") == exchangeGrant {
		answer["issued_token_type"] = accessTokenType
		if w.exchanged != nil && w.exchanged(rw, r, answer) {
			return
		}
	} else {
		w.refresh[refresh] = scope
		answer["refresh_token"] = refresh
	}
	_ = json.NewEncoder(rw).Encode(answer)
}
