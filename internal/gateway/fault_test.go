package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// The faults that a gateway for MCP must survive, each a test TestFault… that says
// what it found. docs/faults.md has the table. "make soak" runs them at length.

// often returns how often a fault is tried: rarely as a rule, and as often as was
// asked for in "make soak".
func often(short, long int) int {
	if os.Getenv("DRAGOMAN_SOAK") != "" {
		return long
	}
	return short
}

// A mortal is a fake server over HTTP that can die and come back at its address,
// without what it knew.
type mortal struct {
	URL string

	listener net.Listener
	mu       sync.Mutex
	fake     *fakemcp.Server // nil while it is dead
	conns    map[net.Conn]struct{}
	ran      map[string]int // by the lives before this one
}

func newMortal(t *testing.T, cfg fakemcp.Config) *mortal {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{URL: "http://" + inner.Addr().String() + "/mcp", listener: inner, conns: map[net.Conn]struct{}{}, ran: map[string]int{}}
	m.live(cfg)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f := m.now(); f != nil {
				f.ServeHTTP(w, r)
				return
			}
			panic(http.ErrAbortHandler)
		}),
		ConnState: func(c net.Conn, s http.ConnState) {
			m.mu.Lock()
			defer m.mu.Unlock()
			switch {
			case s == http.StateNew && m.fake == nil:
				_ = c.Close()
			case s == http.StateNew:
				m.conns[c] = struct{}{}
			case s == http.StateClosed:
				delete(m.conns, c)
			}
		},
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(inner) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return m
}

func (m *mortal) now() *fakemcp.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fake
}

func (m *mortal) live(cfg fakemcp.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fake = fakemcp.New(cfg)
}

// die closes every connection at once, as the end of a process does.
func (m *mortal) die(tools ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range tools {
		m.ran[name] += m.fake.Executions(name)
	}
	m.fake = nil
	for c := range m.conns {
		_ = c.Close()
	}
}

// executions is how often a tool ran in all lives.
func (m *mortal) executions(tool string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fake == nil {
		return m.ran[tool]
	}
	return m.ran[tool] + m.fake.Executions(tool)
}

// fakes serves a fake server over HTTP and returns its entry.
func fakes(t *testing.T, cfg fakemcp.Config) (servers.Config, *fakemcp.Server) {
	t.Helper()
	s := fakemcp.New(cfg)
	return servers.Config{URL: web(t, s) + "/mcp"}, s
}

// endpoint is the MCP endpoint of a gateway with these servers.
func endpoint(t *testing.T, all map[string]servers.Config, change func(*config.File)) string {
	t.Helper()
	g := build(t, func(f *config.File) {
		f.MCPServers = all
		if change != nil {
			change(f)
		}
	})
	return web(t, g.Handler()) + "/mcp"
}

// dial connects a client of ours to an MCP endpoint.
func dial(t *testing.T, url string, era mcp.Era) *mcp.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	c, err := mcp.Connect(t.Context(), mcp.HTTP{URL: url, Client: &http.Client{Transport: transport}}, &mcp.ClientOptions{Era: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); transport.CloseIdleConnections() })
	return c
}

// tool returns a tool by the name that the gateway gives it.
func tool(t *testing.T, c *mcp.Client, name string) *dragoman.Tool {
	t.Helper()
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := list.Tools.Exact(name)
	if found == nil {
		t.Fatalf("the gateway lists no %q", name)
	}
	return found
}

// call calls a tool with {"n":n}.
func call(ctx context.Context, c *mcp.Client, tool *dragoman.Tool, n int) (dragoman.Result, error) {
	return c.Call(ctx, dragoman.Call{Tool: tool, Arguments: fmt.Appendf(nil, `{"n":%d}`, n)})
}

// fine is an error unless a call of an Echo tool was answered as it should.
func fine(res dragoman.Result, err error, n int) error {
	switch {
	case err != nil:
		return err
	case res.Problem != nil:
		return res.Problem
	}
	var got struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(res.Content, &got); err != nil || len(got.Content) == 0 || got.Content[0].Text != fmt.Sprintf(`{"n":%d}`, n) {
		return errors.New("it answered " + string(res.Content))
	}
	return nil
}

// times are durations of which somebody wants to know the middle and the end.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *times) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *times) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return "never"
	}
	slices.Sort(s.all)
	return fmt.Sprintf("p50 %s, p99 %s, longest %s", s.all[len(s.all)/2].Round(10*time.Microsecond),
		s.all[len(s.all)*99/100].Round(10*time.Microsecond), s.all[len(s.all)-1].Round(10*time.Microsecond))
}

// within is a context for what must happen, and does so long before.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
