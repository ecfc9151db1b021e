package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// A provider is an authorization server: npm's oidc-provider, with resource
// indicators.
type provider struct {
	t      *testing.T
	issuer string

	console bool // people sign in at the console of the gateway
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	program, script := node(t, filepath.Join("clients", "provider.mjs"))
	cmd := exec.Command(program, script)
	cmd.Env = cleanEnv(t)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // which ends it
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("the provider: %v\n%s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider does not start: %v", err)
	}
	return &provider{t: t, issuer: strings.TrimSpace(line)}
}

// control changes how the provider behaves.
func (p *provider) control(change string) {
	p.t.Helper()
	res, err := http.Post(p.issuer+"/control", "application/json", strings.NewReader(change))
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
}

// robot returns an access token for a resource, by client credentials.
func (p *provider) robot(resource, scope string) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {scope}}
	var answer struct {
		Token string `json:"access_token"`
	}
	p.post("/token", "robot", "robot-secret", form, &answer)
	if answer.Token == "" {
		p.t.Fatal("no token")
	}
	return answer.Token
}

func (p *provider) post(path, user, secret string, form url.Values, answer any) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.issuer+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(user, secret)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %d %s, %v", path, res.StatusCode, body, err)
	}
	if answer != nil {
		if err := json.Unmarshal(body, answer); err != nil {
			p.t.Fatal(err)
		}
	}
}

// behind starts a gateway that accepts the provider's tokens, behind an address that
// is known before it starts, as a reverse proxy has one.
func (p *provider) behind(t *testing.T, introspect bool) (g *gateway, public string) {
	t.Helper()
	var target atomic.Pointer[url.URL]
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target.Load())
			r.Out.Host = r.In.Host
		},
	})
	t.Cleanup(proxy.Close)
	issuer := map[string]any{
		"issuer": p.issuer, "required_scopes": []string{"gateway:use"}, "grants": []string{"model:*"},
		"scopes": []any{map[string]any{"scope": "tools:read", "grants": []string{"tool:*__echo"}}, map[string]any{"scope": "tools:write", "grants": []string{"tool:*"}}},
	}
	if introspect {
		issuer["introspection"] = map[string]any{"url": p.issuer + "/token/introspection", "client_id": "gateway", "client_secret": "gateway-secret"}
	}
	if p.console {
		issuer["console"] = map[string]any{"client_id": "console", "client_secret": "console-secret"}
		control, _ := json.Marshal(map[string]string{"console": proxy.URL + "/console/sign-in/back", "rotate": "k2"})
		p.control(string(control))
	}
	entry, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}, {Name: "wipe", Do: fakemcp.Echo}}})
	g = start(t, nil, servers{"tools": entry, "other": idle(t)}, with("auth", map[string]any{"public_url": proxy.URL, "oauth": []any{issuer}})).ready()
	root, err := url.Parse(g.Root)
	if err != nil {
		t.Fatal(err)
	}
	target.Store(root)
	return g, proxy.URL
}

// models asks for the models with a token.
func models(t *testing.T, public, token string) (status int, challenge string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, public+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode, res.Header.Get("WWW-Authenticate")
}

// login goes through the provider's pages as a browser does, to the code.
func login(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	var back *url.URL
	browser := &http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Path == "/callback" {
			back = r.URL
			return http.ErrUseLastResponse
		}
		if len(via) > 20 {
			return errors.New("the provider goes in circles")
		}
		return nil
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	res, err := browser.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if back == nil {
		page, _ := io.ReadAll(io.LimitReader(res.Body, 2000))
		return nil, fmt.Errorf("the provider does not send us back: %d %s", res.StatusCode, page)
	}
	q := back.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// TestLogin is what a person with an MCP client does: the client is refused, finds
// out by whom its user logs in, gets a token for the one server that it asked for,
// is refused a tool that the token is not for, asks for more, and calls it.
func TestLogin(t *testing.T) {
	p := startProvider(t)
	_, public := p.behind(t, false)
	logins := 0
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "ide"},
		RedirectURL:         "http://127.0.0.1:1/callback",
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			logins++
			if !strings.Contains(args.URL, url.QueryEscape(public+"/mcp/tools")) || !strings.HasPrefix(args.URL, p.issuer) {
				t.Errorf("sent to %s", args.URL)
			}
			return login(ctx, args)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "ide", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: public + "/mcp/tools", OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if logins != 1 {
		t.Errorf("%d logins to connect", logins)
	}
	for _, tool := range []string{"echo", "wipe"} {
		before := logins
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": "hi"}})
		if err != nil || res.IsError {
			t.Fatalf("%s: %+v, %v", tool, res, err)
		}
		if logins != before+1 {
			t.Errorf("%s: %d logins, where one more scope was needed", tool, logins-before)
		}
	}
	// The token was for that server.
	source, err := handler.TokenSource(ctx)
	if err != nil {
		t.Fatal(err)
	}
	token, err := source.Token()
	if err != nil {
		t.Fatal(err)
	}
	if status, challenge := models(t, public, token.AccessToken); status != 401 || !strings.Contains(challenge, "audience") {
		t.Errorf("for another resource: %d %s", status, challenge)
	}
}

// TestProvider is a program with tokens of its own, and what happens to the provider.
func TestProvider(t *testing.T) {
	p := startProvider(t)
	_, public := p.behind(t, false)
	check := func(what, token string, want int, words string) {
		t.Helper()
		if status, challenge := models(t, public, token); status != want || !strings.Contains(challenge, words) {
			t.Errorf("%s: %d %s, want %d with %q", what, status, challenge, want, words)
		}
	}
	metadata := `resource_metadata="` + public + `/.well-known/oauth-protected-resource/v1"`
	check("nothing", "", 401, metadata)
	p.control(`{"refuse":503}`)
	check("nonsense while it is down", "nonsense", 401, metadata)
	p.control(`{"refuse":0}`)
	good := p.robot(public, "gateway:use")
	p.control(`{"refuse":503}`)
	check("down before there are keys", good, 503, "")
	p.control(`{"refuse":0}`)
	check("up again", good, 200, "")
	check("for the API alone", p.robot(public+"/v1", "gateway:use"), 200, "")
	check("for MCP", p.robot(public+"/mcp", "gateway:use"), 401, "audience")
	check("for somebody else", p.robot("https://other.example", "gateway:use"), 401, "audience")
	check("without the scope", p.robot(public, "tools:read"), 403, `error="insufficient_scope", scope="gateway:use"`)
	check("cut off", good[:len(good)-8], 401, `error="invalid_token"`)
	p.control(`{"age":3600}`)
	check("expired", p.robot(public, "gateway:use"), 401, "has expired")
	p.control(`{"age":0}`)
	check("opaque, and nobody to ask", p.opaque(public), 401, `error="invalid_token"`)

	p.control(`{"rotate":"k2"}`)
	rotated := p.robot(public, "gateway:use")
	check("a new key", rotated, 200, "")
	another := p.robot(public, "gateway:use tools:read")
	p.control(`{"refuse":503}`)
	check("down, with keys", another, 200, "")
	check("down, known", rotated, 200, "")
	p.control(`{"refuse":0}`)
	slow := p.robot(public, "gateway:use tools:write")
	p.control(`{"hold":true}`)
	check("slow, with keys", slow, 200, "")
	p.control(`{"hold":false}`)
}

// opaque returns a token that says nothing by itself.
func (p *provider) opaque(resource string) string {
	p.t.Helper()
	p.control(`{"format":"opaque"}`)
	defer p.control(`{"format":"jwt"}`)
	return p.robot(resource, "gateway:use")
}

// TestIntrospectionAtProvider asks the provider about each token.
func TestIntrospectionAtProvider(t *testing.T) {
	p := startProvider(t)
	_, public := p.behind(t, true)
	check := func(what, token string, want int) {
		t.Helper()
		if status, challenge := models(t, public, token); status != want {
			t.Errorf("%s: %d %s, want %d", what, status, challenge, want)
		}
	}
	good := p.opaque(public)
	check("good", good, 200)
	check("for somebody else", p.opaque("https://other.example"), 401)
	check("unknown", "nobody-made-this-token", 401)
	revoked := p.opaque(public)
	p.post("/token/revocation", "robot", "robot-secret", url.Values{"token": {revoked}}, nil)
	check("revoked", revoked, 401)
	unseen, seen := p.opaque(public), p.opaque(public)
	check("seen", seen, 200)
	p.control(`{"refuse":502}`)
	check("down, and seen a moment ago", seen, 200)
	check("down, and not seen before", unseen, 503)
	p.control(`{"refuse":0}`)
	check("up again", unseen, 200)
}
