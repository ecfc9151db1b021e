package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/stage/freeport"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// routes are one of each kind, with what a good request gets without a key.
var routes = []struct {
	method, path string
	status       int
}{
	{"GET", "/healthz", 200},
	{"GET", "/readyz", 200},
	{"GET", "/v1/models", 200},
	{"POST", "/v1/chat/completions", 400}, // no body
	{"GET", "/nowhere", 404},
}

// ask sends a request through the front, as if it had come in at 192.0.2.7.
func ask(g *Gateway, method, host, path string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for name, value := range header {
		r.Header.Set(name, value)
	}
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.7:8787"))
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, r)
	return w
}

// TestHostOfMetrics: a web page that has its own name point to this machine reads no metrics
// at the address that they have for themselves, where nobody is asked for a key.
func TestHostOfMetrics(t *testing.T) {
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	serve(t, build(t, func(f *config.File) {
		f.Telemetry.Metrics.Listen = address
		f.AllowedHosts = []string{"gateway.example"}
	}))
	read := func(host string) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	eventually(t, "the metrics are there", func() bool { return read(address) == 200 })
	for host, want := range map[string]int{"localhost:9464": 200, "gateway.example": 200, "rebound.example:9464": 403} {
		if got := read(host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

func TestHostAndOrigin(t *testing.T) {
	g := build(t, func(f *config.File) {
		f.Listen = "gateway.internal:8787"
		f.AllowedHosts = []string{"tools.example.com"}
		f.AllowedOrigins = []string{"https://app.example.com"}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	const fine, host, origin = "", "host_not_allowed", "origin_not_allowed"
	tests := []struct{ host, origin, refused string }{
		{"localhost:8787", "", fine},
		{"LocalHost", "", fine},
		{"dragoman.localhost:8787", "", fine},
		{"127.0.0.1:8787", "", fine},
		{"127.9.9.9", "", fine},
		{"[::1]:8787", "", fine},
		{"[::1]", "", fine},
		{"192.0.2.7:8787", "", fine},          // the address that it came in at
		{"[::ffff:192.0.2.7]:8787", "", fine}, // the same, written otherwise
		{"gateway.internal:8787", "", fine},   // listen
		{"Tools.Example.com", "", fine},       // allowed_hosts
		{"192.0.2.8:8787", "", host},          // another address
		{"evil.example:8787", "", host},       // a name bound anew
		{"localhost.evil.example", "", host},  // ours in front
		{"evil-localhost", "", host},          // ours at the end
		{"tools.example.com.evil", "", host},  //
		{"2130706433", "", host},              // 127.0.0.1 as a number
		{"0x7f.1", "", host},                  // and in hexadecimal
		{"127.0.0.1.nip.io", "", host},        //
		{"localhost:8787@evil.example", "", host},
		{"evil.example:x.localhost", "", host},
		{"", "", host},

		{"localhost:8787", "http://localhost:8787", fine},
		{"localhost:8787", "http://LOCALHOST:8787", fine},
		{"tools.example.com", "https://tools.example.com", fine},
		{"localhost:8787", "https://app.example.com", fine},
		{"localhost:8787", "http://localhost:3000", origin}, // another port is another page
		{"localhost:8787", "http://127.0.0.1:8787", origin}, // and so is another name
		{"localhost:8787", "https://evil.example", origin},
		{"localhost:8787", "https://app.example.com.evil.example", origin},
		{"localhost:8787", "http://app.example.com", origin},
		{"localhost:8787", "https://app.example.com/", origin},
		{"localhost:8787", "null", origin},
		{"localhost:8787", "file://", origin},
		{"localhost:8787", "chrome-extension://localhost:8787", origin},
		{"localhost:8787", "http://localhost:8787, https://evil.example", origin},
		{"evil.example", "http://evil.example", host}, // its own origin does not help it
	}
	for _, tt := range tests {
		for _, route := range routes {
			header := map[string]string{}
			if tt.origin != "" {
				header["Origin"] = tt.origin
			}
			w := ask(g, route.method, tt.host, route.path, header)
			name := route.method + " " + tt.host + route.path + " from " + tt.origin
			if tt.refused == fine {
				if w.Code != route.status {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
				continue
			}
			if w.Code != http.StatusForbidden || readRefusal(t, w.Body.Bytes()).Error.Code != tt.refused {
				t.Errorf("%s: %d %s, want %s", name, w.Code, w.Body, tt.refused)
			}
			if allowed := w.Header().Get("Access-Control-Allow-Origin"); allowed != "" {
				t.Errorf("%s: Access-Control-Allow-Origin: %s", name, allowed)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	g := build(t, func(f *config.File) {
		f.AllowedOrigins = []string{"https://app.example.com"}
		f.Auth.APIKeys = []secret.Text{secret.New(key)}
	})
	preflight := map[string]string{
		"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST",
		"Access-Control-Request-Headers": "authorization,content-type",
	}
	w := ask(g, "OPTIONS", "localhost", "/v1/chat/completions", preflight)
	h := w.Header()
	if w.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
		!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") ||
		h.Get("Access-Control-Allow-Headers") != "authorization,content-type" || h.Get("Vary") != "Origin" {
		t.Errorf("preflight: %d %v", w.Code, h)
	}
	if h.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("pages may use the browser's credentials")
	}
	preflight["Origin"] = "https://evil.example"
	if w := ask(g, "OPTIONS", "localhost", "/v1/chat/completions", preflight); w.Code != http.StatusForbidden {
		t.Errorf("preflight of a foreign page: %d %v", w.Code, w.Header())
	}
	// The page can read the refusal that it needs to see, and only that page can.
	w = ask(g, "GET", "localhost", "/v1/models", map[string]string{"Origin": "https://app.example.com"})
	if w.Code != http.StatusUnauthorized || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("without a key: %d %v", w.Code, w.Header())
	}
}

func TestKeys(t *testing.T) {
	g := build(t, func(f *config.File) { f.Auth.APIKeys = []secret.Text{secret.New(key)} })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, header, value string
		in                  bool
	}{
		{"none", "", "", false},
		{"the key", "Authorization", "Bearer " + key, true},
		{"in another case", "Authorization", "bearer " + key, true},
		{"as Azure's clients send it", "Api-Key", key, true},
		{"another", "Authorization", "Bearer not the key", false},
		{"empty", "Authorization", "Bearer ", false},
		{"without a scheme", "Authorization", key, false},
		{"with another scheme", "Authorization", "Basic " + key, false},
		{"the beginning of the key", "Authorization", "Bearer " + key[:10], false},
	}
	for _, tt := range tests {
		for _, route := range routes {
			w := ask(g, route.method, "localhost", route.path, map[string]string{tt.header: tt.value})
			want := route.status
			if !tt.in && !strings.HasSuffix(route.path, "z") {
				want = http.StatusUnauthorized
			}
			if w.Code != want {
				t.Errorf("%s key, %s: %d, want %d", tt.name, route.path, w.Code, want)
			}
			if want != http.StatusUnauthorized {
				continue
			}
			r := readRefusal(t, w.Body.Bytes())
			if r.Error.Code != "invalid_api_key" || r.Error.Type != "authentication_error" || w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s key, %s: %s %v", tt.name, route.path, w.Body, w.Header())
			}
			if strings.Contains(w.Body.String(), key) || tt.value != "" && len(tt.value) > 10 && strings.Contains(w.Body.String(), tt.value) {
				t.Errorf("the refusal shows a key: %s", w.Body)
			}
		}
	}
}

// Issue 17, D7: the root says what this is, as text, or as JSON to whoever wants that.
func TestRootSaysWhatThisIs(t *testing.T) {
	g := build(t, func(f *config.File) { f.Auth.APIKeys = []secret.Text{secret.New("a-key-that-is-long-enough")} })
	w := ask(g, "GET", "localhost", "/", map[string]string{"Accept": "text/html,*/*"})
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || !strings.Contains(w.Body.String(), "This is Dragoman") || !strings.Contains(w.Body.String(), "/v1") || !strings.Contains(w.Body.String(), "/mcp") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w = ask(g, "GET", "localhost", "/", map[string]string{"Accept": "application/json"})
	var self map[string]string
	if err := json.Unmarshal(w.Body.Bytes(), &self); err != nil || self["name"] != "dragoman" || self["openai"] != "/v1" || self["mcp"] != "/mcp" {
		t.Errorf("%v %s", err, w.Body)
	}
	if w := ask(g, "GET", "evil.test", "/", nil); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--host-allowed") {
		t.Errorf("another host: %d %s", w.Code, w.Body)
	}
	off := build(t, func(f *config.File) { f.MCP.Off = true })
	if w := ask(off, "GET", "localhost", "/", nil); strings.Contains(w.Body.String(), "/mcp") {
		t.Errorf("an endpoint that is off: %s", w.Body)
	}
	if w := ask(off, "POST", "localhost", "/mcp", nil); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "MCP is at") {
		t.Errorf("an endpoint that is off: %d %s", w.Code, w.Body)
	}
}

func TestUnknownRoutes(t *testing.T) {
	g := build(t, nil)
	for _, path := range []string{"/", "/nowhere", "/v2/models", "/chat/completions"} {
		w := ask(g, "POST", "localhost", path, nil)
		r := readRefusal(t, w.Body.Bytes())
		if w.Code != http.StatusNotFound || r.Error.Code != "not_found" || r.Error.Type != "invalid_request_error" || !strings.Contains(r.Error.Message, path) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(g, "POST", "localhost", "/healthz", nil); w.Code != http.StatusNotFound {
		t.Errorf("POST /healthz: %d", w.Code)
	}
}

// A body that nobody may send, or that comes byte by byte, does not hold its
// connection.
func TestBodiesOfNobody(t *testing.T) {
	g := build(t, func(f *config.File) { f.Auth.APIKeys = []secret.Text{secret.New("fedcba98765432100123")} })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	for _, head := range []string{
		"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: evil.example",
		"GET /healthz HTTP/1.1\r\nHost: localhost",
		"GET /readyz HTTP/1.1\r\nHost: localhost",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := conn.Write([]byte(head + "\r\nContent-Length: 100000\r\n\r\n{")); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // until the gateway closes
		if took := time.Since(began); err != nil || took > 30*time.Second || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
			t.Errorf("%s: held for %s, %v: %s", head, took, err, answer)
		}
		conn.Close()
	}
}

func TestWeakKeyInTheEnvironment(t *testing.T) {
	for _, key := range []string{"x", "aaaaaaaaaaaaaaaaaaaa"} {
		_, err := New(config.Default(), Options{Lookup: func(name string) (string, bool) { return key, name == "DRAGOMAN_API_KEY" }})
		if err == nil || !strings.Contains(err.Error(), "DRAGOMAN_API_KEY") || strings.Contains(err.Error(), key+" ") {
			t.Errorf("%q: %v", key, err)
		}
	}
}
