package gateway

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken/issuertest"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// A guarded is an MCP server at /mcp that wants tokens of the authorization server
// beside it. Whoever comes to that logs in as the person whose turn it is.
type guarded struct {
	url string // of both
	mcp http.Handler

	mu        sync.Mutex
	turn      string
	codes     map[string]loginPage
	people    map[string]string // by access token
	again     map[string]string // by refresh token, which is good once; nil gives none
	renewed   int
	exchanges []url.Values
	refused   []string // what is not exchanged
	called    []string // who called with which text: "ann: ann 1"
	got       bytes.Buffer
}

type loginPage struct{ person, challenge string }

func newGuarded(t *testing.T) *guarded {
	s := &guarded{codes: map[string]loginPage{}, people: map[string]string{}}
	s.mcp = fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})
	s.url = web(t, s)
	return s
}

func (s *guarded) do(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

func (s *guarded) grant(person string) string {
	token := "token-" + rand.Text()
	s.people[token] = person
	return token
}

func (s *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := func(status int, document any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(document)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		answer(200, map[string]any{"resource": s.url + "/mcp", "authorization_servers": []string{s.url}})
	case "/.well-known/oauth-authorization-server":
		answer(200, map[string]any{
			"issuer": s.url, "authorization_endpoint": s.url + "/authorize", "token_endpoint": s.url + "/token",
			"registration_endpoint": s.url + "/register", "code_challenge_methods_supported": []string{"S256"},
		})
	case "/register":
		answer(http.StatusCreated, map[string]any{"client_id": "registered", "token_endpoint_auth_method": "none"})
	case "/authorize":
		q := r.URL.Query()
		code := rand.Text()
		s.codes[code] = loginPage{s.turn, q.Get("code_challenge")}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/token":
		_ = r.ParseForm()
		page, ok := s.codes[r.Form.Get("code")]
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		ok = ok && page.challenge == base64.RawURLEncoding.EncodeToString(sum[:])
		delete(s.codes, r.Form.Get("code"))
		token := map[string]any{"token_type": "Bearer", "expires_in": 3600}
		if subject := r.Form.Get("subject_token"); subject != "" {
			s.exchanges = append(s.exchanges, r.Form)
			var claims struct{ Sub string }
			payload, _ := base64.RawURLEncoding.DecodeString(strings.Split(subject+"..", ".")[1])
			ok = json.Unmarshal(payload, &claims) == nil && !slices.Contains(s.refused, subject)
			page.person, token["issued_token_type"] = claims.Sub, "urn:ietf:params:oauth:token-type:access_token"
		}
		if old := r.Form.Get("refresh_token"); old != "" {
			page.person, ok = s.again[old]
			delete(s.again, old)
			s.renewed++
		}
		if !ok {
			answer(http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
			return
		}
		token["access_token"] = s.grant(page.person)
		if s.again != nil {
			refresh := rand.Text()
			s.again[refresh], token["refresh_token"] = page.person, refresh
		}
		answer(200, token)
	case "/mcp":
		fmt.Fprintf(&s.got, "%v %s\n", r.Header, body)
		person, ok := s.people[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var call struct {
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		if json.Unmarshal(body, &call) == nil && call.Method == "tools/call" {
			s.called = append(s.called, person+": "+call.Params.Arguments.Text)
		}
		s.mu.Unlock()
		s.mcp.ServeHTTP(w, r)
		s.mu.Lock()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// A front is a gateway as its callers reach it.
type front struct {
	*testing.T
	url   string
	store credential.Store
	file  *config.File
	log   *bytes.Buffer
	audit *audit.Log
	close func()
}

func openFront(t *testing.T, change func(*config.File)) *front {
	t.Helper()
	file := config.Default()
	file.Listen, file.Store.Path = "127.0.0.1:0", filepath.Join(t.TempDir(), "dragoman.db")
	change(file)
	if err := file.Validate(); err != nil {
		t.Fatal(err)
	}
	return openAt(t, file)
}

// openAt opens a gateway, such as another one on the same store.
func openAt(t *testing.T, file *config.File) *front {
	t.Helper()
	f := &front{T: t, file: file, log: &bytes.Buffer{}}
	g, err := New(file, Options{
		Lookup: func(string) (string, bool) { return "", false }, Version: "test", Credentials: &credential.File{Path: filepath.Join(t.TempDir(), "credentials.json")},
		Log: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.audit, f.store, f.close = g.audit(), g.credentials(), sync.OnceFunc(g.Close)
	t.Cleanup(f.close)
	f.url = web(t, g.Handler())
	return f
}

// ask makes a request with a key or token, and returns the answer.
func (f *front) ask(key, method, path string, body any) (status int, missing, text string) {
	f.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		f.Fatal(err)
	}
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, bytes.NewReader(raw))
	if err != nil {
		f.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		f.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("X-Dragoman-Missing"), string(answer)
}

// echo calls the tool, and reports whether it ran.
func (f *front) echo(key, text string) (ran bool, missing string) {
	f.Helper()
	status, missing, answer := f.ask(key, "POST", "/v1/tools/call", map[string]any{"name": "echo", "tool_call_id": "1", "arguments": map[string]any{"text": text}})
	if status != 200 {
		f.Errorf("%d %s", status, answer)
	}
	return strings.Contains(answer, text), missing
}

// begin begins a login, and returns the address to visit.
func (f *front) begin(key string) (visit string) {
	f.Helper()
	status, _, answer := f.ask(key, "POST", "/logins/mail", map[string]any{"redirect_uri": "http://127.0.0.1:1/callback"})
	var at struct{ Visit string }
	if err := json.Unmarshal([]byte(answer), &at); err != nil || status != 200 || at.Visit == "" {
		f.Fatalf("%d %s", status, answer)
	}
	return at.Visit
}

// visit is a person with a browser: it returns what the browser brings back.
func (f *front) visit(address string) map[string]any {
	f.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(address)
	if err != nil {
		f.Fatal(err)
	}
	res.Body.Close()
	back, err := res.Location()
	if err != nil || back.Host != "127.0.0.1:1" {
		f.Fatalf("%v %v", back, err)
	}
	return map[string]any{"code": back.Query().Get("code"), "state": back.Query().Get("state")}
}

const keyOfAnn, keyOfBob = "ann has a key of her own", "bob has one, too: 0123456"

// Two callers log in as two people, a third does not, and nobody's call is made as
// anybody else.
func TestLoginsOfCallers(t *testing.T) {
	s := newGuarded(t)
	f := openFront(t, func(f *config.File) {
		f.Auth.APIKeys = []secret.Text{secret.New(keyOfAnn), secret.New(keyOfBob), secret.New(key)}
		f.MCPServers = map[string]servers.Config{"mail": {URL: s.url + "/mcp", Share: servers.ShareCaller, OAuth: credential.Config{Whose: credential.WhoseCaller}}}
	})
	people := map[string]string{keyOfAnn: "ann", keyOfBob: "bob"}
	for key, person := range people {
		if ran, missing := f.echo(key, "too early"); ran || !strings.Contains(missing, "run dragoman login mail --gateway") {
			t.Errorf("%s, before the login: %v %s", person, ran, missing)
		}
		s.do(func() { s.turn = person })
		if status, _, answer := f.ask(key, "PUT", "/logins/mail", f.visit(f.begin(key))); status != 200 || strings.Contains(answer, "visit") {
			t.Fatalf("%s: %d %s", person, status, answer)
		}
		if ran, missing := f.echo(key, person+" 0"); !ran || missing != "" {
			t.Errorf("%s, after the login: %v %s", person, ran, missing)
		}
	}
	var wg sync.WaitGroup
	for n := range 10 {
		for key, person := range people {
			wg.Go(func() {
				if ran, _ := f.echo(key, fmt.Sprint(person, " ", n)); !ran {
					t.Errorf("a call of %s did not run", person)
				}
			})
		}
	}
	wg.Wait()
	if ran, missing := f.echo(key, "eve 1"); ran || missing == "" {
		t.Errorf("somebody who has not logged in: %v %s", ran, missing)
	}
	if _, _, tools := f.ask(key, "GET", "/v1/tools", nil); strings.Contains(tools, "echo") {
		t.Errorf("and lists %s", tools)
	}
	hello := map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}}
	for key, told := range map[string]bool{key: true, keyOfAnn: false} {
		status, _, answer := f.ask(key, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
		if status != 200 || strings.Contains(answer, "run dragoman login mail") != told {
			t.Errorf("an MCP client is told %d %s", status, answer)
		}
	}
	s.do(func() {
		for _, call := range s.called {
			if person, text, _ := strings.Cut(call, ": "); !strings.HasPrefix(text, person) {
				t.Errorf("somebody else's call: %s", call)
			}
		}
	})
	accounts, err := f.store.Accounts()
	if err != nil || len(accounts) != 2 {
		t.Fatalf("%v, %v", accounts, err)
	}
	// Forgetting ends the use with the next request, and nobody else's.
	if status, _, answer := f.ask(keyOfAnn, "DELETE", "/logins/mail", nil); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	if ran, _ := f.echo(keyOfAnn, "ann forgotten"); ran {
		t.Error("what was forgotten is used")
	}
	if _, missing, tools := f.ask(keyOfAnn, "GET", "/v1/tools", nil); strings.Contains(tools, "echo") || missing == "" {
		t.Errorf("what was forgotten is listed: %s", tools)
	}
	if ran, _ := f.echo(keyOfBob, "bob stays"); !ran {
		t.Error("bob's login is gone, too")
	}
	// What another process puts there is used, too.
	left, err := f.store.Accounts()
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	anns := accounts[(slices.Index(accounts, left[0])+1)%2]
	var token string
	s.do(func() { token = s.grant("ann") })
	other := openAt(t, f.file)
	if err := other.store.Put(anns, credential.Entry{Access: secret.New(token)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a login of another process is used", func() bool {
		ran, _ := f.echo(keyOfAnn, "ann again")
		return ran
	})
	var logins []string
	eventually(t, "the logins are in the audit log", func() bool {
		records, err := f.audit.Find(t.Context(), audit.Filter{Kind: audit.Login, Server: "mail"})
		if err != nil {
			t.Fatal(err)
		}
		logins = nil
		for _, r := range records {
			logins = append(logins, r.State)
		}
		return len(logins) >= 5
	})
	if want := []string{"forgotten", "logged in", "begun", "logged in", "begun"}; !slices.Equal(logins, want) {
		t.Errorf("the audit log has %q", logins)
	}
	f.close()
	s.do(func() {
		for token := range s.people {
			if strings.Contains(f.log.String(), token) {
				t.Error("the log has a token")
			}
		}
	})
}

// A link to log in is of no use to whoever did not make it, and what somebody brings
// for another one's login of none either.
func TestLoginOfAnother(t *testing.T) {
	s := newGuarded(t)
	f := openFront(t, func(f *config.File) {
		f.Auth.APIKeys = []secret.Text{secret.New(keyOfAnn), secret.New(keyOfBob)}
		f.MCPServers = map[string]servers.Config{
			"mail":   {URL: s.url + "/mcp", Share: servers.ShareCaller, OAuth: credential.Config{Whose: credential.WhoseCaller}},
			"shared": {URL: s.url + "/mcp"},
		}
	})
	refused := func(what, key, method, path string, body any, want int, words string) {
		t.Helper()
		if status, _, answer := f.ask(key, method, path, body); status != want || !strings.Contains(answer, words) {
			t.Errorf("%s: %d %s, want %d %s", what, status, answer, want, words)
		}
	}
	for _, redirect := range []string{"", "https://evil.example/callback", "http://localhost:1/callback", "http://127.0.0.1/callback"} {
		refused("to "+redirect, keyOfAnn, "POST", "/logins/mail", map[string]any{"redirect_uri": redirect}, 400, "redirect_uri")
	}
	loopback := map[string]any{"redirect_uri": "http://127.0.0.1:1/callback"}
	refused("a server that there is not", keyOfAnn, "POST", "/logins/nobody", loopback, 404, "unknown_server")
	refused("no label", keyOfAnn, "POST", "/logins/mail/x", loopback, 404, "unknown_server")
	refused("a login that all share", keyOfAnn, "POST", "/logins/shared", loopback, 409, "whose: caller")
	refused("forgetting what all share", keyOfAnn, "DELETE", "/logins/shared", nil, 409, "whose: caller")
	refused("no JSON object", keyOfAnn, "POST", "/logins/mail", []string{"x"}, 400, "JSON object")
	refused("another method", keyOfAnn, "GET", "/logins/mail", nil, 405, "POST")
	refused("a nobody", "nobody's key, which is long", "POST", "/logins/mail", loopback, 401, "API key")
	refused("nothing begun", keyOfBob, "PUT", "/logins/mail", map[string]any{"code": "x", "state": "y"}, 404, "begin again")

	// Bob visits the link that Ann made: what comes of it is no use to him, and she has
	// no way to it but his browser, which comes back to his own machine.
	s.do(func() { s.turn = "bob" })
	brought := f.visit(f.begin(keyOfAnn))
	refused("Ann's answer from Bob", keyOfBob, "PUT", "/logins/mail", brought, 404, "begin again")
	refused("too often", keyOfAnn, "POST", "/logins/mail", loopback, 429, "a moment")
	refused("Bob's state for Ann", keyOfAnn, "PUT", "/logins/mail", map[string]any{"code": brought["code"], "state": "of another"}, 404, "begin again")
	refused("a code of nobody", keyOfAnn, "PUT", "/logins/mail", map[string]any{"code": "guessed", "state": brought["state"]}, 400, "invalid_grant")
	refused("a refusal", keyOfBob, "PUT", "/logins/mail", func() map[string]any {
		u, err := url.Parse(f.begin(keyOfBob))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"error": "access_denied", "state": u.Query().Get("state")}
	}(), 400, "access_denied")
	if accounts, err := f.store.Accounts(); err != nil || len(accounts) != 0 {
		t.Errorf("kept: %v, %v", accounts, err)
	}
}

// TestLoginOnAnyGateway: a login that was begun at one gateway is finished at another that
// shares its store, and at no gateway that does not; both use what came of it.
func TestLoginOnAnyGateway(t *testing.T) {
	s := newGuarded(t)
	mail := func(f *config.File) {
		f.Auth.APIKeys = []secret.Text{secret.New(keyOfAnn)}
		f.MCPServers = map[string]servers.Config{"mail": {URL: s.url + "/mcp", Share: servers.ShareCaller, OAuth: credential.Config{Whose: credential.WhoseCaller}}}
	}
	one, stranger := openFront(t, mail), openFront(t, mail)
	two := openAt(t, one.file)
	s.do(func() { s.turn = "ann" })
	brought := one.visit(one.begin(keyOfAnn))
	one.close()
	if status, _, answer := stranger.ask(keyOfAnn, "PUT", "/logins/mail", brought); status != 404 {
		t.Errorf("at a gateway with another store: %d %s", status, answer)
	}
	if status, _, answer := two.ask(keyOfAnn, "PUT", "/logins/mail", brought); status != 200 || strings.Contains(answer, "visit") {
		t.Fatalf("%d %s", status, answer)
	}
	if status, _, answer := two.ask(keyOfAnn, "PUT", "/logins/mail", brought); status != 400 || !strings.Contains(answer, "invalid_grant") {
		t.Errorf("twice: %d %s", status, answer)
	}
	again := openAt(t, one.file)
	for name, f := range map[string]*front{"where it was finished": two, "after a restart": again} {
		if ran, missing := f.echo(keyOfAnn, "ann "+name); !ran || missing != "" {
			t.Errorf("%s: %v %s", name, ran, missing)
		}
	}
}

// TestLoginOfReplicas: of three gateways on one PostgreSQL database one begins a login, another
// finishes it, and all use it; where the server takes the token back, one of all that notice
// renews it, with a refresh token that is good once.
func TestLoginOfReplicas(t *testing.T) {
	s := newGuarded(t)
	s.again = map[string]string{}
	one := openFront(t, func(f *config.File) {
		f.Store.Path, f.Store.URL = "", secret.New(pgtest.URL(t))
		f.Store.Key = storetest.Key
		f.Auth.APIKeys = []secret.Text{secret.New(keyOfAnn)}
		f.MCPServers = map[string]servers.Config{"mail": {URL: s.url + "/mcp", Share: servers.ShareCaller, OAuth: credential.Config{Whose: credential.WhoseCaller}}}
	})
	all := []*front{one, openAt(t, one.file), openAt(t, one.file)}
	s.do(func() { s.turn = "ann" })
	if status, _, answer := all[1].ask(keyOfAnn, "PUT", "/logins/mail", one.visit(one.begin(keyOfAnn))); status != 200 || strings.Contains(answer, "visit") {
		t.Fatalf("%d %s", status, answer)
	}
	for i, f := range all {
		eventually(t, "the login is used everywhere", func() bool { ran, _ := f.echo(keyOfAnn, fmt.Sprint("ann ", i)); return ran })
	}
	s.do(func() { clear(s.people) })
	var wg sync.WaitGroup
	for i, f := range all {
		for n := range 4 {
			wg.Go(func() {
				if ran, missing := f.echo(keyOfAnn, fmt.Sprint("ann ", i, " ", n)); !ran {
					t.Errorf("at %d: %s", i, missing)
				}
			})
		}
	}
	wg.Wait()
	s.do(func() {
		if s.renewed != 1 {
			t.Errorf("it was renewed %d times", s.renewed)
		}
	})
}

// A key that was narrowed down logs in nowhere.
func TestLoginNeedsTheRight(t *testing.T) {
	i, s := issuertest.Serve(t), newGuarded(t)
	f := openFront(t, func(f *config.File) {
		f.Auth.PublicURL, f.AllowedHosts = public, []string{"127.0.0.1"}
		f.Auth.OAuth = []caller.Issuer{{Issuer: i.Name, Grants: []string{"tool:*", "route:/v1/*"}}}
		f.MCPServers = map[string]servers.Config{"mail": {URL: s.url + "/mcp", Share: servers.ShareCaller, OAuth: credential.Config{Whose: credential.WhoseCaller}}}
	})
	status, _, answer := f.ask(i.Token(i.Good(public, nil)), "POST", "/logins/mail", map[string]any{"redirect_uri": "http://127.0.0.1:1/callback"})
	if status != 403 {
		t.Errorf("%d %s", status, answer)
	}
}

// The server sees what a caller's token was exchanged for, the token endpoint sees the
// caller's, and nobody else sees either.
func TestExchangedTokens(t *testing.T) {
	i, s, other := issuertest.Serve(t), newGuarded(t), newGuarded(t)
	f := openFront(t, func(f *config.File) {
		tokens(i)(f)
		f.Auth.APIKeys = []secret.Text{secret.New(key)}
		f.MCPServers = map[string]servers.Config{
			"mail": {URL: s.url + "/mcp", Share: servers.ShareCaller, OAuth: credential.Config{
				Grant: credential.TokenExchangeGrant, ClientID: "gateway", ClientSecret: secret.New("its-secret"), Issuer: s.url, SubjectIssuer: i.Name,
			}},
			"other": {URL: other.url + "/mcp", Share: servers.ShareCaller},
		}
		f.Names.Strategy = "none"
	})
	subjects := map[string]string{}
	for _, person := range []string{"ann", "bob"} {
		subjects[i.Token(i.Good(public, issuertest.Claims{"sub": person}))] = person
	}
	var wg sync.WaitGroup
	for n := range 5 {
		for subject, person := range subjects {
			wg.Go(func() {
				if ran, missing := f.echo(subject, fmt.Sprint(person, " ", n)); !ran {
					t.Errorf("a call of %s did not run: %s", person, missing)
				}
			})
		}
	}
	wg.Wait()
	// A key is nothing that can be exchanged.
	if ran, missing := f.echo(key, "eve"); ran || !strings.Contains(missing, "an access token of "+i.Name) {
		t.Errorf("with a key: %v %s", ran, missing)
	}
	f.close()
	s.do(func() {
		for _, call := range s.called {
			if person, text, _ := strings.Cut(call, ": "); !strings.HasPrefix(text, person) {
				t.Errorf("somebody else's call: %s", call)
			}
		}
		if len(s.called) != 10 || len(s.exchanges) != 2 {
			t.Errorf("%d calls, %d exchanges", len(s.called), len(s.exchanges))
		}
		for _, form := range s.exchanges {
			if subjects[form.Get("subject_token")] == "" {
				t.Errorf("exchanged %v", form)
			}
		}
	})
	exchanged := slices.Collect(func(yield func(string) bool) {
		for token := range s.people {
			yield(token)
		}
	})
	for where, text := range map[string]string{"the server": s.got.String(), "another server": other.got.String(), "the log": f.log.String()} {
		if text == "" {
			t.Errorf("%s got nothing", where)
		}
		for subject := range subjects {
			if parts := strings.Split(subject, "."); strings.Contains(text, subject) || strings.Contains(text, parts[2]) {
				t.Errorf("%s got a caller's token", where)
			}
		}
		for _, token := range exchanged {
			if where != "the server" && strings.Contains(text, token) {
				t.Errorf("%s got a token of the server's", where)
			}
		}
		if strings.Contains(text, "its-secret") {
			t.Errorf("%s got the gateway's secret", where)
		}
	}
}

// Whose token is refused is told so, and is served as soon as it shows another one.
func TestExchangedAgain(t *testing.T) {
	i, s := issuertest.Serve(t), newGuarded(t)
	f := openFront(t, func(f *config.File) {
		tokens(i)(f)
		f.MCPServers = map[string]servers.Config{"mail": {URL: s.url + "/mcp", Share: servers.ShareSession, OAuth: credential.Config{
			Grant: credential.TokenExchangeGrant, ClientID: "gateway", ClientSecret: secret.New("its-secret"), Issuer: i.Name, TokenURL: s.url + "/token",
		}}}
	})
	first, second := i.Token(i.Good(public, issuertest.Claims{"sub": "ann", "jti": "1"})), i.Token(i.Good(public, issuertest.Claims{"sub": "ann", "jti": "2"}))
	s.do(func() { s.refused = []string{first} })
	for range 3 {
		if ran, missing := f.echo(first, "ann 1"); ran || !strings.Contains(missing, "invalid_grant") {
			t.Errorf("refused: %v %s", ran, missing)
		}
	}
	if ran, missing := f.echo(second, "ann 2"); !ran {
		t.Errorf("another token: %s", missing)
	}
	// Its server takes what it got no more: the call says so, and the next token is
	// exchanged.
	s.do(func() { clear(s.people); s.refused = append(s.refused, second) })
	if ran, _ := f.echo(second, "ann 3"); ran {
		t.Error("a token that is no good any more is used")
	}
	if ran, missing := f.echo(i.Token(i.Good(public, issuertest.Claims{"sub": "ann", "jti": "3"})), "ann 4"); !ran {
		t.Errorf("a third token: %s", missing)
	}
	s.do(func() {
		if len(s.exchanges) > 5 {
			t.Errorf("%d exchanges", len(s.exchanges))
		}
	})
}

// Tokens that nobody can show are a mistake in the configuration.
func TestExchangeForNobody(t *testing.T) {
	file := config.Default()
	file.MCPServers = map[string]servers.Config{"mail": {URL: "https://mail.example/mcp", Share: servers.ShareCaller, OAuth: credential.Config{
		Grant: credential.TokenExchangeGrant, ClientID: "gateway", ClientSecret: secret.New("its-secret"), Issuer: "https://login.example",
	}}}
	if g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }}); err == nil || !strings.Contains(err.Error(), "auth.oauth does not accept") {
		if g != nil {
			g.Close()
		}
		t.Errorf("%v", err)
	}
}
