package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// A gated server is one whose calls wait to be let through.
type gated struct {
	inner http.Handler
	came  chan struct{}
	open  chan struct{}
}

func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.Contains(string(body), `"tools/call"`) {
		g.came <- struct{}{}
		<-g.open
	}
	g.inner.ServeHTTP(w, r)
}

// labels are the states of servers by label.
func labels(t *testing.T, s *Set) string {
	t.Helper()
	var all []string
	for _, server := range servers(t, s) {
		all = append(all, server.Label)
	}
	return strings.Join(all, " ")
}

func (c *connection) ended(t *testing.T) {
	t.Helper()
	eventually(t, "the end of a connection", func() bool { return c.state().State == dragoman.Stopped })
}

// What stays as it was keeps its connection; what changed is left once its calls have
// ended, and new calls go elsewhere at once.
func TestApply(t *testing.T) {
	echo := func(name string) *fakemcp.Server {
		return fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: name}}})
	}
	slow := &gated{inner: echo("old"), came: make(chan struct{}), open: make(chan struct{})}
	stays, changes, goes := Config{URL: web(t, echo("same")) + "/mcp"}, Config{URL: web(t, slow) + "/mcp"}, Config{URL: web(t, echo("gone")) + "/mcp"}
	changed, comes := Config{URL: web(t, echo("new")) + "/mcp"}, Config{URL: web(t, echo("first")) + "/mcp"}
	s := open(t, map[string]Config{"stays": stays, "changes": changes, "goes": goes}, Options{})
	settle(t, s)
	kept, left, gone := s.own("stays"), s.own("changes"), s.own("goes")
	before := list(t, s)
	answered := make(chan string, 1)
	go func() { outcome, _ := try(t, s, "old"); answered <- outcome }()
	<-slow.came

	first := listed(t, s)
	s.Apply(map[string]Config{"stays": stays, "changes": changed, "goes": {URL: goes.URL, Disabled: true}, "comes": comes}, nil, Bounds{})
	select {
	case <-first.Changed:
	default:
		t.Error("nobody is told of another list")
	}
	settle(t, s)
	if got := labels(t, s); got != "changes comes stays" {
		t.Errorf("there are %s", got)
	}
	if s.own("stays") != kept || kept.state().State != dragoman.Connected {
		t.Error("the connection of a server that did not change is another one")
	}
	gone.ended(t)
	if left.state().State != dragoman.Connected {
		t.Error("a connection ended under its call")
	}
	for _, tool := range []string{"same", "new", "first"} {
		if outcome, _ := try(t, s, tool); outcome != "ok" {
			t.Errorf("%s: %s", tool, outcome)
		}
	}
	close(slow.open)
	if outcome := <-answered; outcome != "ok" {
		t.Errorf("the call that ran: %s", outcome)
	}
	left.ended(t)
	if res, err := s.Call(t.Context(), dragoman.Call{Tool: before["gone"]}); err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable {
		t.Errorf("a tool that is gone: %v, %v", res.Problem, err)
	}
}

// A bound that changes what a connection does makes another one of it, and no other bound
// does.
func TestApplyBounds(t *testing.T) {
	echo := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}}})
	configs := map[string]Config{"quick": {URL: web(t, echo) + "/mcp", Timeout: time.Second}, "usual": {URL: web(t, echo) + "/mcp"}}
	s := open(t, configs, Options{Bounds: Bounds{CallTimeout: time.Minute}})
	settle(t, s)
	for _, tt := range []struct {
		name         string
		bounds       Bounds
		quick, usual bool // goes on
	}{
		{"own", Bounds{CallTimeout: time.Minute, Own: OwnConfig{Max: 3}}, true, true},
		{"time-out", Bounds{CallTimeout: 30 * time.Second}, true, false},
		{"message", Bounds{CallTimeout: 30 * time.Second, MaxMessage: 1 << 20}, false, false},
	} {
		quick, usual := s.own("quick"), s.own("usual")
		s.Apply(configs, nil, tt.bounds)
		if got := s.own("quick") == quick; got != tt.quick {
			t.Errorf("%s: quick goes on: %t", tt.name, got)
		}
		if got := s.own("usual") == usual; got != tt.usual {
			t.Errorf("%s: usual goes on: %t", tt.name, got)
		}
		settle(t, s)
	}
}

// A call that waits for answers goes on where it waits.
func TestApplyWhileAsked(t *testing.T) {
	for name, era := range map[string]fakemcp.Era{"legacy": fakemcp.LegacyOnly, "modern": fakemcp.ModernOnly} {
		t.Run(name, func(t *testing.T) {
			fake := fakemcp.New(fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{Name: "asks", Do: fakemcp.Ask}}})
			config := Config{URL: web(t, fake) + "/mcp"}
			s := openOne(t, config, Options{Can: dragoman.AskForm})
			call := dragoman.Call{ID: "1", Tool: list(t, s)["asks"], Can: dragoman.AskForm}
			res, err := s.Call(t.Context(), call)
			if err != nil || res.Asks == nil {
				t.Fatalf("%+v, %v", res, err)
			}
			config.MaxInFlight = 3
			before := s.own("it")
			s.Apply(map[string]Config{"it": config}, nil, Bounds{})
			if s.own("it") == before {
				t.Fatal("the connection is the same")
			}
			call.Answers = &dragoman.Answers{State: res.Asks.State, Replies: map[string]json.RawMessage{}}
			for _, q := range res.Asks.Questions {
				call.Answers.Replies[q.Key] = json.RawMessage(`{"action":"accept","content":{}}`)
			}
			if res, err = s.Call(t.Context(), call); err != nil || res.Problem != nil || res.Asks != nil {
				t.Errorf("went on: %v %+v, %v", res.Problem, res.Asks, err)
			}
			before.ended(t)
		})
	}
}

// Servers come and go under calls of many.
func TestApplyUnderCalls(t *testing.T) {
	stays := Config{URL: web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "same"}}})) + "/mcp"}
	other := Config{URL: web(t, fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "other"}}})) + "/mcp"}
	s := open(t, map[string]Config{"stays": stays, "other": other}, Options{})
	settle(t, s)
	kept, tools := s.own("stays"), list(t, s)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		for _, name := range []string{"same", "other"} {
			wg.Go(func() {
				for ctx.Err() == nil {
					if res, err := s.Call(t.Context(), dragoman.Call{Tool: tools[name]}); err != nil || res.Problem != nil {
						t.Errorf("%s: %v, %v", name, res.Problem, err)
						return
					}
				}
			})
		}
	}
	for i := range 50 {
		other.MaxInFlight = 100 + i%2
		s.Apply(map[string]Config{"stays": stays, "other": other}, nil, Bounds{})
	}
	stop()
	wg.Wait()
	if s.own("stays") != kept {
		t.Error("the connection of a server that did not change is another one")
	}
	eventually(t, "the end of all that was left", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.leaving) == 0
	})
}
