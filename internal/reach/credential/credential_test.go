package credential

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/reach/tlsfiles"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

func newStore(t *testing.T) *File {
	return &File{Path: filepath.Join(t.TempDir(), "state", "credentials.json")}
}

// browse follows the address of a login as a browser does.
func browse(_ context.Context, address string) {
	go func() {
		res, err := http.Get(address)
		if err == nil {
			res.Body.Close()
		}
	}()
}

// logIn logs in, as a request with a body that has to be sent twice.
func logIn(t *testing.T, w *world, s *File, c Config) error {
	t.Helper()
	return logInAs(t, "", w, s, c)
}

// logInAs logs in on behalf of a caller.
func logInAs(t *testing.T, who string, w *world, s *File, c Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	back, err := ListenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	return Login(ctx, Account{w.url(), who}, http.DefaultTransport, LoginOptions{
		Config: c, Store: s, Redirect: back.Redirect(),
		Visit: func(ctx context.Context, address string) (Answer, error) { return back.Visit(ctx, address, browse) },
		Use: func(ctx context.Context, client *http.Client) error {
			status, err := ask(ctx, client, w.url())
			if err == nil && status != 200 {
				t.Errorf("after the login: %d", status)
			}
			return err
		},
	})
}

func ask(ctx context.Context, client *http.Client, address string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	res, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

// gatewayOf is the client that a gateway has for the server.
func gatewayOf(t *testing.T, w *world, s *File, c Config) *http.Client {
	t.Helper()
	return &http.Client{Transport: transportOf(t, TransportOptions{Account: Account{w.url(), ""}, Config: c, Store: s})}
}

func transportOf(t *testing.T, o TransportOptions) *Transport {
	t.Helper()
	o.LogIn = "run dragoman login tickets"
	transport, err := NewTransport(http.DefaultTransport, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func TestLogin(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	client := gatewayOf(t, w, s, Config{})
	if status, err := ask(t.Context(), client, w.url()); status != 401 || err != nil {
		t.Errorf("before the login: %d, %v", status, err)
	}
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(Account{w.url(), ""})
	if err != nil || e.ClientID != "registered" || e.Resource != w.url() || e.TokenURL != w.login.URL+"/token" {
		t.Errorf("%+v, %v", e, err)
	}
	// The gateway was told to wait a little before it asks again; another one was not.
	client = gatewayOf(t, w, s, Config{})
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("after it: %d, %v", status, err)
	}
	for _, file := range []string{s.Path, s.Path + ".key"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), e.Access.Reveal()) || strings.Contains(string(text), e.Refresh.Reveal()) || strings.Contains(string(text), "access-") {
			t.Errorf("%s shows a token", file)
		}
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if err := s.Delete(Account{w.url(), ""}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(Account{w.url(), ""}); !errors.Is(err, ErrNone) {
		t.Errorf("forgotten: %v", err)
	}
}

func TestServerWithoutLogin(t *testing.T) {
	w := newWorld(t)
	open := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer open.Close()
	w.server.Close()
	w.server = open
	if err := logIn(t, w, newStore(t), Config{}); !errors.Is(err, ErrNoLogin) {
		t.Errorf("%v", err)
	}
}

// What is wrong with an authorization server ends the login, and nothing is kept.
func TestLoginRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		config Config
	}{
		"another issuer answers": {func(w *world) { w.issuer = "https://evil.example" }, Config{}},
		"no PKCE":                {func(w *world) { w.metadata["code_challenge_methods_supported"] = nil }, Config{}},
		"plain PKCE alone":       {func(w *world) { w.metadata["code_challenge_methods_supported"] = []string{"plain"} }, Config{}},
		"an issuer with a slash": {func(w *world) { w.issuer = w.login.URL + "/"; w.metadata["issuer"] = w.issuer }, Config{}},
		"metadata of another":    {func(w *world) { w.metadata["issuer"] = "https://evil.example" }, Config{}},
		"a page without https":   {func(w *world) { w.metadata["authorization_endpoint"] = "http://evil.example/authorize" }, Config{}},
		"a program as the page":  {func(w *world) { w.metadata["authorization_endpoint"] = "file:///bin/sh" }, Config{}},
		"no way to be a client":  {func(w *world) { w.metadata["registration_endpoint"] = nil }, Config{}},
		"a client of another":    {func(*world) {}, Config{ClientID: "x", ClientSecret: secret.New("s"), Issuer: "https://login.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newWorld(t), newStore(t)
			tt.change(w)
			if err := logIn(t, w, s, tt.config); err == nil || errors.Is(err, ErrNoLogin) {
				t.Errorf("%v", err)
			}
			if _, err := s.Get(Account{w.url(), ""}); !errors.Is(err, ErrNone) {
				t.Errorf("something is kept: %v", err)
			}
			if len(w.asked) != 0 {
				t.Errorf("a token was asked for: %v", w.asked)
			}
		})
	}
}

// TestVisitsArePages: nobody is sent to an address that a desktop opens with something else
// than a browser, whatever host it names.
func TestVisitsArePages(t *testing.T) {
	for _, address := range []string{"file://localhost/bin/sh", "vscode://localhost/open", "smb://127.0.0.1/share", "file:///bin/sh"} {
		w, s := newWorld(t), newStore(t)
		w.metadata["authorization_endpoint"] = address
		visited := ""
		err := Login(t.Context(), Account{w.url(), ""}, http.DefaultTransport, LoginOptions{
			Store: s, Redirect: "http://127.0.0.1:1/callback",
			Visit: func(_ context.Context, address string) (Answer, error) {
				visited = address
				return Answer{Error: "access_denied"}, nil
			},
			Use: func(ctx context.Context, client *http.Client) error {
				_, err := ask(ctx, client, w.url())
				return err
			},
		})
		if visited != "" || err == nil {
			t.Errorf("%s: sent to %q, %v", address, visited, err)
		}
	}
}

// Only the page that we sent the person to can answer.
func TestLoopback(t *testing.T) {
	l, err := ListenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := CheckRedirect(l.Redirect()); err != nil {
		t.Error(err)
	}
	get := func(query string) int {
		t.Helper()
		res, err := http.Get(l.Redirect() + query)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if get("?state=&code=x") != 400 {
		t.Error("answered where nothing was asked")
	}
	l.expect("older")
	answers := l.expect("right")
	for _, query := range []string{"", "?code=x", "?state=older&code=x", "?state=wrong&code=x"} {
		if get(query) != 400 {
			t.Errorf("%s is taken", query)
		}
	}
	if get("?state=right&error=%1b%5b31m&iss=x") != 200 {
		t.Error("the answer is not taken")
	}
	if got := <-answers; got != (Answer{State: "right", Error: "\x1b[31m", Issuer: "x"}) {
		t.Errorf("%+v", got)
	}
	if get("?state=right&code=x") != 400 {
		t.Error("taken twice")
	}
}

// A browser is sent to the machine that it runs on, and to no other place.
func TestCheckRedirect(t *testing.T) {
	for address, good := range map[string]bool{
		"http://127.0.0.1:1234/callback": true, "http://[::1]:1234/callback": true,
		"": false, "http://127.0.0.1/callback": false, "http://127.0.0.1:0/callback": false, "https://127.0.0.1:1/callback": false,
		"http://localhost:1/callback": false, "http://127.0.0.2:1/callback": false, "http://evil.example:1/callback": false,
		"http://127.0.0.1:1@evil.example/callback": false, "http://evil.example@127.0.0.1:1/callback": false,
		"http://127.0.0.1:1/callback?x=y": false, "http://127.0.0.1:1/other": false, "http://127.0.0.1:1/callback#x": false,
		"http://127.0.0.1:01/callback": false, "http://[::ffff:127.0.0.1]:1/callback": false, "HTTP://127.0.0.1:1/callback": false,
	} {
		if err := CheckRedirect(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func FuzzCheckRedirect(f *testing.F) {
	f.Add("http://127.0.0.1:1/callback")
	f.Add("http://[::1]:65535/callback")
	f.Add("http://127.0.0.1:1@evil.example/callback")
	f.Fuzz(func(t *testing.T, address string) {
		if CheckRedirect(address) != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" || u.Port() == "" || u.User != nil || u.RequestURI() != "/callback" || u.Fragment != "" {
			t.Errorf("%q is allowed: %v, %v", address, u, err)
		}
	})
}

func TestRenewal(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	w.life = time.Second // about to end, soon
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	old, err := s.Get(Account{w.url(), ""})
	if err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.life, w.asked = time.Hour, nil; delete(w.tokens, old.Access.Reveal()) })
	client := gatewayOf(t, w, s, Config{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	wg.Wait()
	w.do(func() {
		if len(w.asked) != 1 || w.asked[0].Get("grant_type") != "refresh_token" || w.asked[0].Get("client_id") != "registered" {
			t.Errorf("asked %v", w.asked)
		}
	})
	e, err := s.Get(Account{w.url(), ""})
	if err != nil || e.Access == old.Access || e.Refresh == old.Refresh || time.Until(e.Expires) < time.Minute {
		t.Errorf("%+v, %v", e, err)
	}
	// A token that the server takes no more is renewed once more.
	w.do(func() { delete(w.tokens, e.Access.Reveal()) })
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("revoked: %d, %v", status, err)
	}
	// And where there is no way left, the server's word stands, without hammering.
	w.do(func() { clear(w.tokens); clear(w.refresh); w.asked = nil })
	for range 5 {
		if status, err := ask(t.Context(), client, w.url()); status != 401 || err != nil {
			t.Errorf("no way left: %d, %v", status, err)
		}
	}
	w.do(func() {
		if len(w.asked) != 1 {
			t.Errorf("asked %d times", len(w.asked))
		}
	})
}

// TestStepUp asks for the scopes that were missing with the next login, and keeps
// those that there were.
func TestStepUp(t *testing.T) {
	w, s := newWorld(t), newStore(t)
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.needs = "write" })
	if status, err := ask(t.Context(), gatewayOf(t, w, s, Config{}), w.url()); status != 403 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	w.do(func() { w.needs = "read"; clear(w.tokens) }) // what the login sees
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.needs = "write" })
	if status, err := ask(t.Context(), gatewayOf(t, w, s, Config{}), w.url()); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
}

// A token goes to the origin that it is for, and a refresh token to where it came
// from, whoever the server names now.
func TestTokensStayAtHome(t *testing.T) {
	w, s, evil := newWorld(t), newStore(t), newWorld(t)
	if err := logIn(t, w, s, Config{}); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.redirects = evil.server.URL + "/mcp" })
	if status, err := ask(t.Context(), gatewayOf(t, w, s, Config{}), w.url()); status != 401 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if diff := cmp.Diff([]string{""}, evil.shown); diff != "" {
		t.Errorf("another origin got (-want +got):\n%s", diff)
	}
	w.do(func() { w.redirects = ""; clear(w.tokens); w.login, evil.login = evil.login, w.login })
	if status, err := ask(t.Context(), gatewayOf(t, w, s, Config{}), w.url()); err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if len(evil.asked) != 0 {
		t.Errorf("another authorization server got %v", evil.asked)
	}
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	c := Config{Grant: ClientCredentialsGrant, ClientID: "robot", ClientSecret: secret.New("robot-secret"), Issuer: w.login.URL}
	client := gatewayOf(t, w, nil, c)
	for range 3 {
		if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
			t.Errorf("%d, %v", status, err)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("asked %d times for three requests", len(w.asked))
	}
	w.do(func() { w.needs = "write" })
	if status, err := ask(t.Context(), client, w.url()); status != 200 || err != nil {
		t.Errorf("more scopes: %d, %v", status, err)
	}
	// Whoever else the server names gets no secret.
	evil := newWorld(t)
	w.do(func() { clear(w.tokens); w.login, evil.login = evil.login, w.login })
	if status, err := ask(t.Context(), gatewayOf(t, w, nil, c), w.url()); err == nil {
		t.Errorf("%d", status)
	}
	if len(evil.asked) != 0 {
		t.Errorf("another authorization server got %v", evil.asked)
	}
}

func TestStoreInTrouble(t *testing.T) {
	s := newStore(t)
	if _, err := s.Get(Account{Server: "https://a.example"}); !errors.Is(err, ErrNone) {
		t.Errorf("no file: %v", err)
	}
	for _, server := range []string{"https://a.example", "https://b.example"} {
		if err := s.Put(Account{Server: server}, Entry{Access: secret.New(server)}); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := s.Get(Account{Server: "https://b.example"}); err != nil || e.Access.Reveal() != "https://b.example" {
		t.Errorf("%+v, %v", e, err)
	}
	whole, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	// The token of one server under the name of another one is refused.
	swapped := strings.NewReplacer("a.example", "b.example", "b.example", "a.example").Replace(string(whole))
	for name, text := range map[string]string{"swapped": swapped, "cut off": string(whole[:len(whole)/2]), "nothing": `{"https://a.example":""}`} {
		if err := os.WriteFile(s.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(Account{Server: "https://a.example"}); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(s.Path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		for _, file := range []string{s.Path, s.Path + ".key"} {
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(Account{Server: "https://a.example"}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
				t.Errorf("%s that others may read: %v", file, err)
			}
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Remove(s.Path + ".key"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(Account{Server: "https://a.example"}); err == nil {
		t.Error("opened without its key")
	}
}

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		c   Config
		key string
	}{
		"nothing":               {Config{}, ""},
		"public client":         {Config{ClientID: "x"}, ""},
		"client":                {Config{ClientID: "x", ClientSecret: secret.New("y"), Issuer: "https://login.example"}, ""},
		"of whom":               {Config{ClientID: "x", ClientSecret: secret.New("y")}, "issuer"},
		"a secret of nobody":    {Config{ClientSecret: secret.New("y")}, "client_secret"},
		"credentials of nobody": {Config{Grant: ClientCredentialsGrant}, "grant"},
		"a document":            {Config{Metadata: "https://gateway.example/client.json"}, ""},
		"a bare document":       {Config{Metadata: "https://gateway.example/"}, "client_metadata_url"},
		"each caller":           {Config{Whose: WhoseCaller}, ""},
		"a client of callers":   {Config{Grant: ClientCredentialsGrant, ClientID: "x", ClientSecret: secret.New("y"), Issuer: "https://login.example", Whose: WhoseCaller}, "whose"},
		"exchange":              {Config{Grant: TokenExchangeGrant, ClientID: "x", ClientSecret: secret.New("y"), Issuer: "https://login.example", TokenURL: "https://login.example/token", Scopes: []string{"a"}}, ""},
		"exchange of nobody":    {Config{Grant: TokenExchangeGrant, Issuer: "https://login.example"}, "grant"},
		"exchange with nobody":  {Config{Grant: TokenExchangeGrant, ClientID: "x", ClientSecret: secret.New("y")}, "issuer"},
		"exchange for all":      {Config{Grant: TokenExchangeGrant, ClientID: "x", ClientSecret: secret.New("y"), Issuer: "https://login.example", Whose: WhoseGateway}, "whose"},
		"an issuer in clear":    {Config{Grant: TokenExchangeGrant, ClientID: "x", ClientSecret: secret.New("y"), Issuer: "http://login.example"}, "issuer"},
		"tokens in clear":       {Config{Grant: TokenExchangeGrant, ClientID: "x", ClientSecret: secret.New("y"), Issuer: "https://login.example", TokenURL: "http://login.example/token"}, "token_url"},
		"an endpoint for login": {Config{TokenURL: "https://login.example/token"}, "token_url"},
		"scopes for login":      {Config{Scopes: []string{"x"}}, "scopes"},
		"both":                  {Config{ClientID: "x", Metadata: "https://gateway.example/client.json"}, "client_metadata_url"},
	} {
		err := tt.c.Validate()
		wrong, _ := err.(*invalid.Error)
		if (err == nil) != (tt.key == "") || wrong != nil && wrong.Key != tt.key {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a server on a private address names is never fetched from this machine; what one on
// this machine names is.
func TestMetadataOnOurLoopback(t *testing.T) {
	asked, port := counts(t)
	for server, want := range map[string]bool{
		"http://10.1.2.3/mcp": false, "http://[fd00::1]/mcp": false, "https://example.com/mcp": false,
		"http://localhost/mcp": true, "http://127.0.0.1:7/mcp": true, "http://x.localhost/mcp": true, "http://[::ffff:127.0.0.1]/mcp": true,
	} {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"} {
			*asked = 0
			client := newClient(u, "", tlsfiles.Files{})
			direct(client)
			res, err := client.Get("http://" + host + ":" + port + "/metadata")
			if err == nil {
				res.Body.Close()
			}
			if (err == nil) != want || (*asked > 0) != want {
				t.Errorf("for %s from %s: asked %d times, %v", server, host, *asked, err)
			}
			client.CloseIdleConnections()
		}
	}
}

// counts counts the requests that come to a port of this machine.
func counts(t *testing.T) (asked *int, port string) {
	asked = new(int)
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *asked++ }))
	t.Cleanup(inner.Close)
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return asked, port
}

// direct has a client use no proxy.
func direct(client *http.Client) {
	hosts := client.Transport.(*discovery).next.(*clientAuth).next.(*byHost)
	for _, next := range []http.RoundTripper{hosts.chosen, hosts.others} {
		next.(*plainhttp.Transport).Rest().Proxy = nil
	}
}

// The hosts that the operator chose may be in a private network, whatever their names: that of
// the server, whose metadata say where to log in, and that of the issuer. What these name may not.
func TestChosenHosts(t *testing.T) {
	asked, port := counts(t)
	for issuer, want := range map[string][]bool{ // the server, the issuer, another host
		"":                             {true, false, false},
		"https://LOGIN.corp.example/x": {true, true, false},
	} {
		client := newClient(&url.URL{Scheme: "https", Host: "tools.corp.example"}, issuer, tlsfiles.Files{})
		direct(client)
		hosts := client.Transport.(*discovery).next.(*clientAuth).next.(*byHost)
		for _, next := range []http.RoundTripper{hosts.chosen, hosts.others} { // all names are this machine's
			rest := next.(*plainhttp.Transport).Rest()
			dial := rest.DialContext
			rest.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return dial(ctx, network, "127.0.0.1:"+port)
			}
		}
		for i, host := range []string{"tools.corp.example", "login.corp.example", "admin.corp.example"} {
			*asked = 0
			res, err := client.Get("http://" + host + ":" + port + "/metadata")
			if err == nil {
				res.Body.Close()
			}
			if (err == nil) != want[i] || (*asked > 0) != want[i] {
				t.Errorf("issuer %q: %s: asked %d times, %v", issuer, host, *asked, err)
			}
		}
		client.CloseIdleConnections()
	}
}

func TestNearby(t *testing.T) {
	for address, want := range map[string]bool{
		"http://localhost:1": true, "http://127.0.0.1": true, "http://10.1.2.3": true, "http://[::1]:80": true,
		"https://example.com": false, "http://169.254.169.254": false, "https://8.8.8.8": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if nearby(u.Hostname()) != want {
			t.Errorf("%s: %v", address, !want)
		}
	}
}
