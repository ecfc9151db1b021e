package servers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/mcp"
)

var slow = []fakemcp.Tool{{Name: "slow", Delay: time.Second}}

func TestCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil, builtin(piped(fakemcp.New(fakemcp.Config{Tools: slow}))))
		settle(t, s)
		tool := list(t, s)["slow"]
		start := time.Now()
		done := make(chan error)
		for range 2*DefaultMaxInFlight + 1 {
			go func() {
				res, err := s.Call(t.Context(), dragoman.Call{Tool: tool})
				if err == nil && res.Problem != nil {
					err = res.Problem
				}
				done <- err
			}()
		}
		for range 2*DefaultMaxInFlight + 1 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the calls took %s, want three times a second", took)
		}
		if n := len(s.own("it").slots); n != 0 {
			t.Errorf("%d slots are still taken", n)
		}
	})
}

// A server that hangs costs its own calls, by results that say what is known.
func TestTimeOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakemcp.New(fakemcp.Config{
			Tools: []fakemcp.Tool{
				{Name: "write"},
				{Name: "read", Definition: []byte(`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)},
			},
			Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "tools/call"}},
		})
		s := open(t, nil, builtin(piped(fake)))
		settle(t, s)
		tools := list(t, s)
		outcomes := make(chan string)
		call := func(name string) {
			res, err := s.Call(t.Context(), dragoman.Call{Tool: tools[name]})
			if err != nil || res.Problem == nil {
				t.Errorf("calling %s: %v", name, err)
				outcomes <- ""
				return
			}
			outcomes <- res.Problem.Code
		}
		start := time.Now()
		for range DefaultMaxInFlight {
			go call("read")
		}
		counts := map[string]int{}
		for range DefaultMaxInFlight {
			counts[<-outcomes]++
		}
		if took := time.Since(start); took != DefaultTimeout {
			t.Errorf("it took %s", took)
		}
		if counts[dragoman.CodeTimeout] != DefaultMaxInFlight {
			t.Errorf("outcomes %v", counts)
		}
		go call("write")
		if got := <-outcomes; got != dragoman.CodeUnknownOutcome {
			t.Errorf("a write came to %s", got)
		}
		// One that never has its turn was provably not made.
		slots := s.own("it").slots
		for range cap(slots) {
			slots <- struct{}{}
		}
		go call("write")
		if got := <-outcomes; got != dragoman.CodeServerUnavailable {
			t.Errorf("a write that never had its turn came to %s", got)
		}
		for range cap(slots) {
			<-slots
		}
		if n := len(s.own("it").slots); n != 0 {
			t.Errorf("%d slots are still taken", n)
		}
	})
}

// The caller's own end is no result.
func TestEndOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakemcp.New(fakemcp.Config{Tools: slow, Faults: []fakemcp.Fault{{Kind: fakemcp.Hang, Method: "tools/call"}}})
		s := open(t, nil, builtin(piped(fake)))
		settle(t, s)
		tool := list(t, s)["slow"]
		gone := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		for range DefaultMaxInFlight + 3 { // three of them wait for their turn
			go func() {
				_, err := s.Call(ctx, dragoman.Call{Tool: tool})
				done <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		cancel(gone)
		for range DefaultMaxInFlight + 3 {
			if err := <-done; !errors.Is(err, gone) {
				t.Errorf("a call ended with %v", err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s to end", took)
		}
		if n := len(s.own("it").slots); n != 0 {
			t.Errorf("%d slots are still taken", n)
		}
		synctest.Wait()
		if n := fake.Count("notifications/cancelled"); n != DefaultMaxInFlight {
			t.Errorf("the server was told of %d ends", n)
		}
	})
}

// What becomes of a call on a server over HTTP that fails it once or for good,
// and how often the server saw it.
func TestFailedCallsOverHTTP(t *testing.T) {
	tests := []struct {
		name    string
		fault   fakemcp.Fault
		effects Effects
		want    string
		posts   int
		runs    int
	}{
		{"fine", fakemcp.Fault{}, Effects{}, "ok", 1, 1},
		{"the session is lost", fakemcp.Fault{Kind: fakemcp.DropSession, Method: "tools/call", Times: 1}, Effects{}, "ok", 2, 1},
		{"the answer is lost, and may have changed something", fakemcp.Fault{Kind: fakemcp.BrokenStream, Times: 1}, Effects{}, dragoman.CodeUnknownOutcome, 1, 1},
		{"the answer is lost, and nothing was changed", fakemcp.Fault{Kind: fakemcp.BrokenStream, Times: 1}, Effects{ReadOnly: []string{"*"}}, "ok", 2, 2},
		{"the answer is lost, and twice is as good as once", fakemcp.Fault{Kind: fakemcp.BrokenStream, Times: 1}, Effects{Idempotent: []string{"*"}}, "ok", 2, 2},
		{"the answer is always lost", fakemcp.Fault{Kind: fakemcp.BrokenStream}, Effects{ReadOnly: []string{"*"}}, dragoman.CodeTimeout, 2, 2},
		{"too busy, and may have changed something", fakemcp.Fault{Kind: fakemcp.Status, Status: 503, Method: "tools/call", Times: 1}, Effects{}, dragoman.CodeUnknownOutcome, 1, 0},
		{"too busy once, and nothing was changed", fakemcp.Fault{Kind: fakemcp.Status, Status: 503, Method: "tools/call", Times: 1}, Effects{ReadOnly: []string{"*"}}, "ok", 2, 1},
		{"too busy, and says for how long", fakemcp.Fault{Kind: fakemcp.Status, Status: 429, RetryAfter: 7, Method: "tools/call", Times: 1}, Effects{ReadOnly: []string{"*"}}, dragoman.CodeTimeout, 1, 0},
		{"broken", fakemcp.Fault{Kind: fakemcp.Status, Status: 500, Method: "tools/call", Times: 1}, Effects{}, dragoman.CodeUnknownOutcome, 1, 0},
		{"not authorized", fakemcp.Fault{Kind: fakemcp.Status, Status: 401, Method: "tools/call", Times: 1}, Effects{}, dragoman.CodeNeedsAuthorization, 1, 0},
		{"a web page", fakemcp.Fault{Kind: fakemcp.HTML, Method: "tools/call", Times: 1}, Effects{}, dragoman.CodeProtocol, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := fakemcp.Config{Era: fakemcp.ModernOnly, Tools: []fakemcp.Tool{{Name: "count", Do: fakemcp.Counter}}}
			if tt.fault.Kind != "" {
				fake.Faults = []fakemcp.Fault{tt.fault}
			}
			if tt.fault.Kind == fakemcp.DropSession {
				fake.Era = fakemcp.LegacyOnly
			}
			server := fakemcp.New(fake)
			s := openOne(t, Config{URL: web(t, server), Transport: StreamableHTTP, Effects: tt.effects}, Options{})
			got, res := try(t, s, "count")
			if got != tt.want {
				t.Errorf("the call came to %s (%v), want %s", got, res.Problem, tt.want)
			}
			if posts, runs := server.Count("tools/call"), server.Executions("count"); posts != tt.posts || runs != tt.runs {
				t.Errorf("the server saw %d calls and ran %d, want %d and %d", posts, runs, tt.posts, tt.runs)
			}
			if retry := tt.fault.RetryAfter; retry > 0 && res.Problem.RetryAfter != time.Duration(retry)*time.Second {
				t.Errorf("RetryAfter = %s", res.Problem.RetryAfter)
			}
			if next, _ := try(t, s, "count"); tt.fault.Times == 1 && next != "ok" {
				t.Errorf("the next call came to %s", next)
			}
		})
	}
}

func TestServerThatNeedsAuthorization(t *testing.T) {
	address := web(t, fakemcp.New(fakemcp.Config{Tools: echo, Token: "open sesame"}))
	s := openOne(t, Config{URL: address}, Options{})
	if st := state(s); st.State != dragoman.Failed || st.Problem.Code != dragoman.CodeNeedsAuthorization || st.Retry.IsZero() {
		t.Errorf("without a token: %+v, %v", st, st.Problem)
	}
	server := s.own("it")
	server.mu.Lock()
	server.status.Retry = time.Now().Add(time.Minute) // not soon
	server.mu.Unlock()
	res, err := s.Call(t.Context(), dragoman.Call{Tool: &dragoman.Tool{Server: "it", Original: "echo"}})
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeNeedsAuthorization {
		t.Errorf("a call: %+v, %v", res.Problem, err)
	}
	with := openOne(t, Config{URL: address, Headers: secret.Map(map[string]string{"Authorization": "Bearer open sesame"})}, Options{})
	if outcome, _ := try(t, with, "echo"); outcome != "ok" {
		t.Errorf("with the token the call came to %s", outcome)
	}
}

// An address where nobody answers, or somebody who speaks no MCP.
func TestServerThatIsNone(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>It works!</h1>"))
	})
	s := open(t, map[string]Config{
		"nobody":  {URL: "http://127.0.0.1:1/mcp?key=canary"},
		"page":    {URL: web(t, page) + "?key=canary"},
		"missing": {URL: web(t, http.NotFoundHandler()) + "?key=canary"},
	}, Options{})
	settle(t, s)
	want := map[string]string{"nobody": "connection refused", "page": "not a JSON object", "missing": "404"}
	for _, st := range servers(t, s) {
		if st.State != dragoman.Failed || !strings.Contains(st.Problem.Message, want[st.Label]) || strings.Contains(st.Problem.Message, "canary") {
			t.Errorf("%s: %+v, %v", st.Label, st, st.Problem)
		}
	}
}

// A lingering is the output of a server that takes its time to end.
type lingering struct{ io.Reader }

func (lingering) Close() error {
	time.Sleep(3 * time.Second)
	return nil
}

// A local server that has closed its output, and takes its time to end, is waited for like
// any other that is coming back.
func TestCallWaitsForTheEndOfAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, cut := context.WithCancel(t.Context())
		n := 0
		s := open(t, nil, builtin(func(ctx context.Context) mcp.Transport {
			if n++; n > 1 {
				first = ctx
			}
			r, w := fakemcp.New(fakemcp.Config{Tools: echo}).Pipe(first)
			return &mcp.Pipe{Reader: lingering{r}, Writer: w}
		}))
		settle(t, s)
		cut()
		synctest.Wait()
		start := time.Now()
		if outcome, res := try(t, s, "echo"); outcome != "ok" || time.Since(start) < 3*time.Second || time.Since(start) > 5*time.Second {
			t.Errorf("after %s the call came to %s, ran: %s (%v)", time.Since(start), outcome, res.Ran, res.Problem)
		}
	})
}
