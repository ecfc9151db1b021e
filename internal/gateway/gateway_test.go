package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestMain keeps what gateways with keys write down out of the home of whoever runs
// the tests.
func TestMain(m *testing.M) {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	if os.Getenv(envSends) != "" {
		sendingServer()
	}
	state, err := os.MkdirTemp("", "dragoman-test")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", state)
	code := leaktest.Run(m)
	os.RemoveAll(state)
	os.Exit(code)
}

const key = "a key of sixteen characters"

// build makes a gateway from the defaults, changed by change, in an empty
// environment.
func build(t *testing.T, change func(*config.File)) *Gateway {
	t.Helper()
	file := config.Default()
	file.Listen = "127.0.0.1:0"
	if change != nil {
		change(file)
	}
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// web serves h until the test has ended.
func web(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// eventually waits for something that nobody tells us about.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !happened(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// serving is a gateway that serves.
type serving struct {
	url  string
	stop context.CancelFunc
	done chan error // what Serve returned
}

func serve(t *testing.T, g *Gateway) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &serving{stop: stop, done: make(chan error, 1)}
	at := make(chan net.Addr, 1)
	go func() { s.done <- g.Serve(ctx, func(a net.Addr) { at <- a }) }()
	select {
	case a := <-at:
		s.url = "http://" + a.String()
	case err := <-s.done:
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// stream begins a conversation whose answer comes in a word each tenth of a
// second, and returns when it has begun to arrive.
func (s *serving) stream(t *testing.T, words int) *bufio.Reader {
	t.Helper()
	body := `{"model":"rehearsal:slow-stream","stream":true,"messages":[{"role":"user","content":"SAY ` + strings.Repeat("word ", words) + `"}]}`
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	r := bufio.NewReader(resp.Body)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "data:") {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	return r
}

func TestDrainFinishesStreams(t *testing.T) {
	g := build(t, nil)
	s := serve(t, g)
	r := s.stream(t, 5)
	s.stop()
	eventually(t, "the end to begin", g.draining.Load)
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), "draining\n") {
		t.Errorf("readyz: %d %q", w.Code, w.Body)
	}
	rest, err := io.ReadAll(r)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || strings.Contains(string(rest), `"error"`) {
		t.Errorf("the stream ended with %v and\n%s", err, rest)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		conn.Close()
		t.Error("it still listens")
	}
}

// Who is not done in time is told so.
func TestDrainEnds(t *testing.T) {
	g := build(t, func(f *config.File) { f.HTTP.DrainTimeout = 50 * time.Millisecond })
	s := serve(t, g)
	r := s.stream(t, 600)
	began := time.Now()
	s.stop()
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), `"code":"stopping"`) {
		t.Errorf("the stream ended with %v and\n%s", err, rest)
	}
	if err := <-s.done; err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("Serve = %v", err)
	}
	if took := time.Since(began); took > 50*time.Second { // the stream would take a minute
		t.Errorf("it took %s to stop", took)
	}
}

func TestServeRefusesToBeOpen(t *testing.T) {
	for listen, open := range map[string]bool{
		"127.0.0.1:0": false, "localhost:0": false, "[::1]:0": false, "127.8.8.8:0": false,
		":0": true, "0.0.0.0:0": true, "[::]:0": true, "192.0.2.1:0": true, "gateway.example:0": true,
	} {
		if loopback(listen) == open {
			t.Errorf("loopback(%q) = %v", listen, !open)
		}
		if open {
			g := build(t, func(f *config.File) { f.Listen = listen })
			if err := g.Serve(t.Context(), nil); !errors.Is(err, ErrOpen) {
				t.Errorf("Serve on %s = %v", listen, err)
			}
		}
	}
	g := build(t, func(f *config.File) { f.Listen, f.Auth.APIKeys = "0.0.0.0:0", []secret.Text{secret.New(key)} })
	s := serve(t, g)
	s.stop()
	if err := <-s.done; err != nil {
		t.Errorf("Serve with a key = %v", err)
	}
}

func TestServeOnATakenAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	g := build(t, func(f *config.File) { f.Listen = taken.Addr().String() })
	if err := g.Serve(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Serve = %v", err)
	}
}

func TestReady(t *testing.T) {
	hangs := make(chan struct{})
	hanging := web(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(hangs) })
	readyz := func(g *Gateway) (int, string) {
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/readyz", nil))
		return w.Code, w.Body.String()
	}
	start := time.Now()
	g := build(t, func(f *config.File) { f.MCPServers = map[string]servers.Config{"hangs": {URL: hanging}} })
	if code, text := readyz(g); time.Since(start) < 400*time.Millisecond && (code != 503 || text != "starting\nhangs: starting\n") {
		t.Errorf("at first: %d %q", code, text)
	}
	eventually(t, "readiness", func() bool {
		code, text := readyz(g)
		return code == 200 && text == "ready\nhangs: starting\n"
	})
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("ready after %s", took)
	}
	g = build(t, func(f *config.File) { f.MCPServers = map[string]servers.Config{"fails": {Command: "/no/such/program"}} })
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, text := readyz(g); code != 200 {
		t.Errorf("with a server that failed: %d %q", code, text)
	}
}

func TestNames(t *testing.T) {
	fake := func(name string) servers.Config {
		return servers.Config{URL: web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: name}}}))}
	}
	tests := []struct {
		name      string
		servers   map[string]servers.Config
		strategy  string
		selection catalog.Selection
		want      []string
	}{
		{"one server", map[string]servers.Config{"a": fake("x")}, "label", nil, []string{"x"}},
		{"several", map[string]servers.Config{"a": fake("x"), "b": fake("x")}, "label", nil, []string{"a__x", "b__x"}},
		{"one, and one that is off", map[string]servers.Config{"a": fake("x"), "b": {URL: "http://localhost:1", Disabled: true}}, "label", nil, []string{"a__x"}},
		{"one by its host", map[string]servers.Config{"a": fake("x")}, "host", nil, []string{"t127_0_0_1__x"}},
		{"a selection", map[string]servers.Config{"a": fake("x"), "b": fake("y")}, "label", catalog.Selection{{Server: "b"}}, []string{"b__y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := build(t, func(f *config.File) { f.MCPServers, f.Names.Strategy = tt.servers, tt.strategy })
			if err := g.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			open, err := g.Open(t.Context(), caller.Local, session.Want{Servers: tt.selection})
			if err != nil {
				t.Fatal(err)
			}
			list, err := open.Tools.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools.All() {
				names = append(names, tool.Name)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if _, err := g.Open(t.Context(), caller.Local, session.Want{Servers: catalog.Selection{{Server: "nobody"}}}); err == nil {
				t.Error("a server that nobody configured can be selected")
			}
		})
	}
}

func TestDemoWithoutServers(t *testing.T) {
	g := build(t, nil)
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	open, err := g.Open(t.Context(), caller.Local, session.Want{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := open.Tools.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools.All() {
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "get_weather") {
		t.Errorf("the demo's tools are %v", names)
	}
}

// refusal is an error as clients of the OpenAI API know it.
type refusal struct {
	Error struct{ Type, Code, Message string }
}

func readRefusal(t *testing.T, body []byte) refusal {
	t.Helper()
	var r refusal
	if err := json.Unmarshal(body, &r); err != nil || r.Error.Message == "" {
		t.Errorf("not an error of the API: %s", body)
	}
	return r
}
