package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	discover   = `{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

func TestHandler(t *testing.T) {
	modernHeaders := map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "server/discover"}
	for _, tt := range []struct {
		name, method, body string
		headers            map[string]string
		status             int
		contains           string
		session            bool
	}{
		{name: "modern", body: discover, headers: modernHeaders, status: 200, contains: `"supportedVersions"`},
		{name: "legacy", body: initialize, status: 200, contains: `"protocolVersion":"2025-11-25"`, session: true},
		{
			name: "legacy with its header", body: initialize, headers: map[string]string{"Mcp-Protocol-Version": legacy},
			status: 200, contains: `"protocolVersion":"2025-11-25"`, session: true,
		},
		{
			name: "modern initialize", status: 404, contains: `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,`,
			body: strings.Replace(initialize, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},`, 1),
		},
		{name: "initialize under a modern header", body: initialize, headers: modernHeaders, status: 404, contains: `"code":-32601`},
		{name: "discover without a header", body: discover, status: 400, contains: `-32020`},
		{name: "modern version unknown", body: strings.Replace(discover, modern, "2999-01-01", 1),
			headers: map[string]string{"Mcp-Protocol-Version": "2999-01-01", "Mcp-Method": "server/discover"}, status: 400, contains: `-32022`},
		{name: "modern stream", method: "GET", headers: modernHeaders, status: 405},
		{name: "no JSON", body: `{"jsonrpc":`, status: 400, contains: `"id":null,"error":{"code":-32700`},
		{name: "a name twice", body: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, status: 400, contains: `-32700`},
		{name: "arguments twice", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"x":2},"arguments":{}}}`, status: 400, contains: `-32700`},
		{name: "a method twice beside arguments that are not strict", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"arguments":{"x":1,"x":2}}}`, status: 400, contains: `-32700`},
		{name: "too large", body: `"` + strings.Repeat("x", maxBody) + `"`, status: 413},
		{name: "foreign host", body: initialize, headers: map[string]string{"Host": "evil.example"}, status: 403},
		{name: "foreign host with port", body: initialize, headers: map[string]string{"Host": "evil.example:80"}, status: 403},
		{name: "no host", body: initialize, headers: map[string]string{"Host": ""}, status: 403},
		{name: "IPv6 loopback", body: initialize, headers: map[string]string{"Host": "[::1]:8080"}, status: 200, session: true},
		{name: "listed host", body: initialize, headers: map[string]string{"Host": "Demo.internal:80"}, status: 200, session: true},
		{name: "foreign origin", body: initialize, headers: map[string]string{"Origin": "https://evil.example"}, status: 403},
		{name: "opaque origin", body: initialize, headers: map[string]string{"Origin": "null"}, status: 403},
		{name: "foreign origin of a stream", method: "GET", headers: map[string]string{"Origin": "https://evil.example"}, status: 403},
		{name: "cross-site", body: initialize, headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: 403},
		{name: "listed origin", body: initialize, headers: map[string]string{"Origin": "https://page.example"}, status: 200, session: true},
		{name: "preflight of a listed origin", method: "OPTIONS", headers: map[string]string{"Access-Control-Request-Method": "POST", "Origin": "https://page.example"}, status: 204},
		{name: "preflight of a foreign origin", method: "OPTIONS", headers: map[string]string{"Origin": "https://evil.example"}, status: 403},
		{name: "own origin", body: initialize, headers: map[string]string{"Origin": "http://localhost:8080"}, status: 200, session: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, Options{HTTP: HTTP{Hosts: []string{"demo.internal"}, Origins: []string{"https://page.example"}}})
			handler, err := s.Handler()
			if err != nil {
				t.Fatal(err)
			}
			method := tt.method
			if method == "" {
				method = "POST"
			}
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:8080/mcp", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for k, v := range tt.headers {
				if k == "Host" {
					r.Host = v
					continue
				}
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			body, err := io.ReadAll(w.Result().Body)
			if err != nil {
				t.Fatal(err)
			}
			if w.Code != tt.status || !strings.Contains(string(body), tt.contains) {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, body)
			}
			if got := w.Header().Get("Mcp-Session-Id") != ""; got != tt.session {
				t.Errorf("has a session: %v, want %v", got, tt.session)
			}
		})
	}
}

// TestHeadersOfPages has a page that sends the headers of a tool's parameters, or one that
// Authenticate reads.
func TestHeadersOfPages(t *testing.T) {
	handler, err := newServer(t, Options{HTTP: HTTP{Origins: []string{"https://page.example"}}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "OPTIONS", "http://localhost:8080/mcp", nil)
	r.Header.Set("Origin", "https://page.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "content-type,mcp-param-region,x-api-key")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if got := w.Header().Get("Access-Control-Allow-Headers"); got != "content-type,mcp-param-region,x-api-key" {
		t.Errorf("allowed: %q", got)
	}
}

// get asks for a path of the server's routes, with a header.
func get(t *testing.T, s *Server, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	routes, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	method, body := "GET", ""
	if path == "/mcp" {
		method, body = "POST", initialize
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:8080"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	routes.ServeHTTP(w, r)
	return w
}

func TestBearerToken(t *testing.T) {
	s := newServer(t, Options{HTTP: HTTP{Token: "correct-horse-battery"}})
	for authorization, want := range map[string]int{
		"": 401, "Bearer correct-horse": 401, "Basic correct-horse-battery": 401, "Bearer correct-horse-battery": 200, "bearer correct-horse-battery": 200,
	} {
		if w := get(t, s, "/mcp", authorization); w.Code != want {
			t.Errorf("%q: %d, want %d: %s", authorization, w.Code, want, w.Body)
		}
	}
	if w := get(t, s, "/sse", ""); w.Code != 401 {
		t.Errorf("/sse without a token: %d", w.Code)
	}
	if w := get(t, s, "/healthz", ""); w.Code != 200 {
		t.Errorf("/healthz: %d", w.Code)
	}
	for token, want := range map[string]string{"short": "at least 16", "with spaces in it, too": "no spaces"} {
		if err := newServer(t, Options{HTTP: HTTP{Token: token}}).Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

func TestOAuth(t *testing.T) {
	var logged sink
	s := newServer(t, Options{Logger: loggingTo(&logged), HTTP: HTTP{OAuth: &OAuth{
		Resource: "https://weather.example/mcp", Issuers: []string{"https://login.example"}, Scopes: []string{"weather"},
		Verify: func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			in := time.Now().Add(time.Hour)
			switch token {
			case "good":
				return &auth.TokenInfo{UserID: "u", Scopes: []string{"weather"}, Expiration: in}, nil
			case "narrow":
				return &auth.TokenInfo{UserID: "u", Expiration: in}, nil
			case "old":
				return &auth.TokenInfo{UserID: "u", Scopes: []string{"weather"}, Expiration: time.Now().Add(-time.Hour)}, nil
			case "broken":
				return nil, errors.New("secret-7: no connection to 10.0.0.1")
			}
			return nil, errors.Join(auth.ErrInvalidToken, errors.New("secret-7"))
		},
	}}})
	for token, want := range map[string]int{"": 401, "good": 200, "narrow": 403, "old": 401, "forged": 401, "broken": 500} {
		authorization := ""
		if token != "" {
			authorization = "Bearer " + token
		}
		w := get(t, s, "/mcp", authorization)
		if w.Code != want || strings.Contains(w.Body.String(), "secret-7") {
			t.Errorf("%q: %d, want %d: %s", token, w.Code, want, w.Body)
		}
		challenge := w.Header().Get("WWW-Authenticate")
		if (want == 401 || want == 403) && !strings.Contains(challenge, `resource_metadata="https://weather.example/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%q: challenge %q", token, challenge)
		}
	}
	if !strings.Contains(logged.String(), "no connection to 10.0.0.1") {
		t.Errorf("the log says nothing of the failure: %s", logged.String())
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		var metadata struct {
			Resource             string
			AuthorizationServers []string `json:"authorization_servers"`
		}
		w := get(t, s, path, "")
		if err := json.Unmarshal(w.Body.Bytes(), &metadata); err != nil || metadata.Resource != "https://weather.example/mcp" || len(metadata.AuthorizationServers) != 1 {
			t.Errorf("%s: %d %s, %v", path, w.Code, w.Body, err)
		}
	}
	for _, bad := range []*OAuth{{}, {Resource: "https://x.example"}, {Resource: "https://x.example", Issuers: []string{"https://y.example"}}} {
		if err := newServer(t, Options{HTTP: HTTP{OAuth: bad}}).Validate(); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// TestEveryWayIn makes the same calls over each transport in each era. Of arguments that a
// model spelled in no JSON that is strict, the tool tells it, and the session goes on.
func TestEveryWayIn(t *testing.T) {
	for way, open := range map[string]func(*testing.T, *Server, string) sdk.Transport{
		"pipe": func(t *testing.T, s *Server, _ string) sdk.Transport {
			r, w := s.Pipe(t.Context())
			return &sdk.IOTransport{Reader: r, Writer: w}
		},
		"http": func(_ *testing.T, _ *Server, url string) sdk.Transport {
			return &sdk.StreamableClientTransport{Endpoint: url + "/mcp"}
		},
		"sse": func(_ *testing.T, _ *Server, url string) sdk.Transport {
			return &sdk.SSEClientTransport{Endpoint: url + "/sse"}
		},
	} {
		for _, version := range []string{legacy, modern} {
			if way == "sse" && version == modern {
				continue // a transport of the legacy era
			}
			t.Run(way+" "+version, func(t *testing.T) {
				s := newServer(t, Options{})
				Add(s, stayTool(), echo)
				routes, err := s.Routes()
				if err != nil {
					t.Fatal(err)
				}
				web := httptest.NewServer(routes)
				t.Cleanup(web.Close)
				t.Cleanup(func() { s.Close() }) // before the listener, whose streams it ends
				session := connect(t, open(t, s, web.URL), version, nil)
				for _, bad := range []string{`{"city":"\ud83d"}`, `{"city":"a","city":"b"}`} {
					if got := call(t, session, "book_stay", bad); !got.failed || !strings.Contains(got.text, "/city") {
						t.Errorf("%s: got %+v", bad, got)
					}
				}
				if got := call(t, session, "book_stay", `{"city":"北京"}`); got.failed || !strings.Contains(got.text, `"city":"北京","nights":2`) {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

func TestClosed(t *testing.T) {
	s := NewServer(Options{Name: "test-mcp-server"})
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/", strings.NewReader(initialize)))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d after Close", w.Code)
	}
	if err := s.ServeStdio(t.Context(), strings.NewReader(""), io.Discard); !errors.Is(err, errClosed) {
		t.Errorf("ServeStdio: %v", err)
	}
	r, p := s.Pipe(t.Context())
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
		t.Errorf("Pipe read: %v", err)
	}
	if _, err := io.WriteString(p, "x"); !errors.Is(err, errClosed) {
		t.Errorf("Pipe write: %v", err)
	}
}
