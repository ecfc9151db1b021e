package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// counter is a server that remembers, for each session, how often it was called,
// and says the number of the session as well.
type counter struct {
	session, calls int64
	wait           chan struct{}
}

func (c *counter) List(context.Context) (*dragoman.List, error) {
	definition := json.RawMessage(`{"name":"count","inputSchema":{"type":"object"}}`)
	return &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{{
		Definition: definition, Name: "count", Original: "count", InputSchema: json.RawMessage(`{"type":"object"}`),
	}})}, nil
}

func (c *counter) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if string(call.Arguments) == `{"wait":true}` {
		select {
		case <-c.wait:
		case <-ctx.Done():
			return dragoman.Result{}, ctx.Err()
		}
	}
	n := atomic.AddInt64(&c.calls, 1)
	return dragoman.Result{Content: fmt.Appendf(nil, `{"content":[],"structuredContent":{"session":%d,"calls":%d}}`, c.session, n), Ran: dragoman.RanYes}, nil
}

// counters serves a counter for each session.
func counters(wait chan struct{}) (connect func(context.Context) mcp.Transport, sessions *atomic.Int64) {
	sessions = &atomic.Int64{}
	return func(ctx context.Context) mcp.Transport {
		r, w := fakemcp.PipeToolset(ctx, &counter{session: sessions.Add(1), wait: wait}, fakemcp.LegacyOnly)
		return mcp.Pipe{Reader: r, Writer: w}
	}, sessions
}

func count(t *testing.T, tools Part, arguments string) string {
	t.Helper()
	if err := tools.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := tools.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tool := list.Tools.Exact("count")
	if tool == nil {
		return fmt.Sprintf("no tool: %s %v", list.Servers[0].State, list.Servers[0].Problem)
	}
	res, err := tools.Call(t.Context(), dragoman.Call{Tool: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	if res.Problem != nil {
		return res.Problem.Code
	}
	var answer struct {
		StructuredContent struct{ Session, Calls int }
	}
	if err := json.Unmarshal(res.Content, &answer); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("session %d, call %d", answer.StructuredContent.Session, answer.StructuredContent.Calls)
}

// What a stateful server remembers of one caller, or one session, no other sees.
func TestShare(t *testing.T) {
	ann, bob := Owner{"ann", "1"}, Owner{"bob", "1"}
	ann2 := Owner{"ann", "2"}
	for _, tt := range []struct {
		share Share
		want  [4]string // of ann, bob, ann's second session, ann
	}{
		{ShareAll, [4]string{"session 1, call 1", "session 1, call 2", "session 1, call 3", "session 1, call 4"}},
		{ShareCaller, [4]string{"session 1, call 1", "session 2, call 1", "session 1, call 2", "session 1, call 3"}},
		{ShareSession, [4]string{"session 1, call 1", "session 2, call 1", "session 3, call 1", "session 1, call 2"}},
	} {
		t.Run(string(tt.share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connect, _ := counters(nil)
				s := open(t, map[string]Config{"it": {Share: tt.share}}, builtin(connect))
				for i, o := range []Owner{ann, bob, ann2, ann} {
					if got := count(t, s.For(o), `{}`); got != tt.want[i] {
						t.Errorf("%d: %+v: %s, want %s", i, o, got, tt.want[i])
					}
				}
				if len(servers(t, s)) == 0 != (tt.share != ShareAll) {
					t.Errorf("the gateway itself has %v", servers(t, s))
				}
			})
		})
	}
}

// A connection of a caller's own ends when nobody has used it for a while, and
// comes back when it is used again. One with a call that runs stays.
func TestOwnConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		connect, _ := counters(wait)
		s := open(t, map[string]Config{"it": {Share: ShareCaller, Timeout: 24 * time.Hour}}, builtin(connect))
		ann, bob := s.For(Owner{Caller: "ann"}), s.For(Owner{Caller: "bob"})
		count(t, ann, `{}`)
		list, err := ann.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slow := make(chan string)
		go func() { slow <- count(t, bob, `{"wait":true}`) }()
		time.Sleep(2 * DefaultOwnIdle)
		synctest.Wait()
		select {
		case <-list.Changed:
		default:
			t.Error("nobody was told that ann's list is over")
		}
		s.mu.Lock()
		if n := len(s.connections); n != 1 {
			t.Errorf("%d connections are there, want bob's", n)
		}
		s.mu.Unlock()
		close(wait)
		if got := <-slow; got != "session 2, call 1" {
			t.Errorf("bob's call: %s", got)
		}
		if got := count(t, ann, `{}`); got != "session 3, call 1" {
			t.Errorf("ann, who is back: %s", got)
		}
	})
}

// There are so many connections of callers' own. Who comes then gets the one that
// rests longest, and where none does, is told.
func TestOwnConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect, _ := counters(nil)
		o := builtin(connect)
		o.Bounds.Own.Max = 2
		s := open(t, map[string]Config{"it": {Share: ShareCaller}}, o)
		ann, bob, eve := s.For(Owner{Caller: "ann"}), s.For(Owner{Caller: "bob"}), s.For(Owner{Caller: "eve"})
		count(t, ann, `{}`)
		count(t, bob, `{}`)
		if got := count(t, eve, `{}`); got != "no tool: failed "+noRoom("it").Error() {
			t.Errorf("one too many: %s", got)
		}
		time.Sleep(ownRest)
		count(t, bob, `{}`)
		if got := count(t, eve, `{}`); got != "session 3, call 1" {
			t.Errorf("where ann rests: %s", got)
		}
		if got := count(t, bob, `{}`); got != "session 2, call 3" {
			t.Errorf("bob lost his connection: %s", got)
		}
	})
}

// A call that waits for an answer keeps its connection, however many want one, until it
// has waited too long.
func TestOwnConnectionStaysWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: []fakemcp.Tool{{Name: "asks", Do: fakemcp.Ask}}})
		o := builtin(func(ctx context.Context) mcp.Transport {
			r, w := fake.Pipe(ctx)
			return mcp.Pipe{Reader: r, Writer: w}
		})
		o.Bounds.Own, o.Can = OwnConfig{Max: 1, Idle: time.Minute}, dragoman.AskForm
		s := open(t, map[string]Config{"it": {Share: ShareCaller}}, o)
		ann, bob := s.For(Owner{Caller: "ann"}), s.For(Owner{Caller: "bob"})
		offered := func(p Part) *dragoman.Tool {
			if err := p.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			list, err := p.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return list.Tools.Exact("asks")
		}
		call := dragoman.Call{ID: "1", Tool: offered(ann), Can: dragoman.AskForm}
		first, err := ann.Call(t.Context(), call)
		if err != nil || first.Asks == nil {
			t.Fatalf("%+v, %v", first, err)
		}
		time.Sleep(3 * time.Minute)
		if offered(bob) != nil {
			t.Error("bob has a connection, and there is one alone")
		}
		again := call
		again.Answers = &dragoman.Answers{State: first.Asks.State, Replies: map[string]json.RawMessage{}}
		for _, q := range first.Asks.Questions {
			again.Answers.Replies[q.Key] = json.RawMessage(`{"action":"accept","content":{}}`)
		}
		if res, err := ann.Call(t.Context(), again); err != nil || res.Problem != nil || res.Asks != nil {
			t.Errorf("went on: %v %+v, %v", res.Problem, res.Asks, err)
		}
		if res, err := ann.Call(t.Context(), call); err != nil || res.Asks == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(10 * time.Minute)
		if offered(bob) == nil {
			t.Error("a call that nobody answers keeps its connection for ever")
		}
	})
}

// A part keeps the contract of a toolset as a set does.
func TestPartIsAToolset(t *testing.T) {
	toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
		o := builtin(func(ctx context.Context) mcp.Transport {
			r, w := fakemcp.PipeToolset(ctx, inner, fakemcp.ModernOnly)
			return mcp.Pipe{Reader: r, Writer: w}
		})
		o.Can = dragoman.AskForm
		s := open(t, map[string]Config{"it": {Share: ShareCaller}}, o)
		part := s.For(Owner{Caller: "ann"})
		if err := part.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		return part
	})
}
