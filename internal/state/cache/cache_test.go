package cache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// slow answers after a second with the number of the run.
type slow struct {
	runs      atomic.Int64
	cancelled atomic.Int64
	failed    bool
}

func (s *slow) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }

func (s *slow) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	n := s.runs.Add(1)
	if call.Progress != nil {
		call.Progress(dragoman.Progress{Progress: 1})
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		s.cancelled.Add(1)
		return dragoman.Result{}, ctx.Err()
	}
	return dragoman.Result{Content: fmt.Appendf(nil, "%d", n), Failed: s.failed}, nil
}

func call(name, arguments string, effect dragoman.Effect) dragoman.Call {
	return dragoman.Call{
		Tool:      &dragoman.Tool{Server: "s", Original: name, Declared: effect, Pin: dragoman.Pin("s", name, nil)},
		Arguments: []byte(arguments),
	}
}

func TestRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &slow{}
		c := New(Config{Tools: []string{"s__get_*"}, TTL: time.Minute})
		ask := func(caller string, call dragoman.Call) (string, bool) {
			t.Helper()
			r, err := c.For(caller, inner).Call(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Content), r.Info.Cached
		}
		for i, tc := range []struct {
			caller string
			call   dragoman.Call
			want   string
			cached bool
		}{
			{"a", call("get_x", `{"a":1,"b":[2]}`, dragoman.ReadOnly), "1", false},
			{"a", call("get_x", `{"b": [2], "a":1}`, dragoman.ReadOnly), "1", true},
			{"a", call("get_x", `{"a":9007199254740993}`, dragoman.ReadOnly), "2", false},
			{"a", call("get_x", `{"a":9007199254740992}`, dragoman.ReadOnly), "3", false},
			{"b", call("get_x", `{"a":1,"b":[2]}`, dragoman.ReadOnly), "4", false},
			{"a", call("get_y", `{"a":1,"b":[2]}`, dragoman.ReadOnly), "5", false},
			// Not by the operator's word, or not by the patterns.
			{"a", call("get_z", `{}`, dragoman.MayChange), "6", false},
			{"a", call("get_z", `{}`, dragoman.MayChange), "7", false},
			{"a", call("get_z", `{}`, dragoman.Idempotent), "8", false},
			{"a", call("set_z", `{}`, dragoman.ReadOnly), "9", false},
			{"a", call("set_z", `{}`, dragoman.ReadOnly), "10", false},
		} {
			if got, cached := ask(tc.caller, tc.call); got != tc.want || cached != tc.cached {
				t.Errorf("%d: got run %s, cached %t; want %s, %t", i, got, cached, tc.want, tc.cached)
			}
		}
		// A hint against the operator's word wins.
		no := false
		doubted := call("get_x", `{"a":1,"b":[2]}`, dragoman.ReadOnly)
		doubted.Tool.Hints.ReadOnly = &no
		if _, cached := ask("a", doubted); cached {
			t.Error("a tool that says it changes something was answered from the cache")
		}
		// However often it is used, a result does not outlive its time.
		for range 3 {
			time.Sleep(20 * time.Second)
			ask("a", call("get_x", `{"a":1,"b":[2]}`, dragoman.ReadOnly))
		}
		if got, cached := ask("a", call("get_x", `{"a":1,"b":[2]}`, dragoman.ReadOnly)); cached && got == "1" {
			t.Error("a result outlived its time")
		}
	})
}

func TestFailuresAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &slow{failed: true}
		toolset := New(Config{Tools: []string{"*"}}).For("a", inner)
		for range 2 {
			if r, _ := toolset.Call(t.Context(), call("x", `{}`, dragoman.ReadOnly)); r.Info.Cached {
				t.Error("a failure was remembered")
			}
		}
	})
}

// Equal calls at the same time run once; who leaves does not end the call for
// the others, and when all have left it is cancelled.
func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &slow{}
		toolset := New(Config{Tools: []string{"*"}}).For("a", inner)
		var progress atomic.Int64
		first, leave := context.WithCancel(t.Context())
		results := make(chan string, 3)
		ask := func(ctx context.Context) {
			c := call("x", `{}`, dragoman.ReadOnly)
			c.Progress = func(dragoman.Progress) { progress.Add(1) }
			r, err := toolset.Call(ctx, c)
			if err != nil {
				results <- err.Error()
				return
			}
			results <- string(r.Content)
		}
		go ask(first)
		synctest.Wait()
		go ask(t.Context())
		go ask(t.Context())
		synctest.Wait()
		leave()
		if got := <-results; got != "context canceled" {
			t.Errorf("who left got %s", got)
		}
		if a, b := <-results, <-results; a != "1" || b != "1" || inner.runs.Load() != 1 {
			t.Errorf("who stayed got %s and %s, in %d runs", a, b, inner.runs.Load())
		}

		second, leave := context.WithCancel(t.Context())
		inner2 := &slow{}
		toolset = New(Config{Tools: []string{"*"}}).For("a", inner2)
		go ask(second)
		synctest.Wait()
		leave()
		<-results
		synctest.Wait()
		if inner2.cancelled.Load() != 1 {
			t.Error("a call that nobody waits for goes on")
		}
	})
}

// What a call that several wait for has done is said to one of them, who pays for it: to the
// others it did not run, as to those who come later. Nor did it where it ended while it
// waited for its turn.
func TestWhoseFlightRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{})
		toolset := New(Config{Tools: []string{"*"}}).For("a", scripted(func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
			select {
			case <-turn:
				return dragoman.Result{Content: []byte(`{}`), Ran: dragoman.RanYes}, nil
			case <-ctx.Done():
				return dragoman.Result{Ran: dragoman.RanNot}, context.Cause(ctx)
			}
		}))
		ask := func(ctx context.Context) <-chan dragoman.Ran {
			ran := make(chan dragoman.Ran, 1)
			go func() {
				res, _ := toolset.Call(ctx, call("x", `{}`, dragoman.ReadOnly))
				ran <- res.Ran
			}()
			synctest.Wait()
			return ran
		}

		ctx, cancel := context.WithCancel(t.Context())
		only := ask(ctx)
		cancel()
		if ran := <-only; ran != dragoman.RanNot {
			t.Errorf("who left before there was a turn: %s", ran)
		}
		ctx, cancel = context.WithCancel(t.Context())
		first, second, third := ask(t.Context()), ask(ctx), ask(t.Context())
		cancel()
		if ran := <-second; ran != dragoman.RanNot {
			t.Errorf("who left while another's call went on: %s", ran)
		}
		close(turn)
		if a, b := <-first, <-third; a != dragoman.RanYes || b != dragoman.RanNot {
			t.Errorf("whose call it was: %s; who waited with it: %s", a, b)
		}
	})
}

// scripted is a toolset that runs a function.
type scripted func(context.Context, dragoman.Call) (dragoman.Result, error)

func (s scripted) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }
func (s scripted) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	return s(ctx, c)
}

// A panic in the one call that several wait for is a panic of each of theirs,
// which the loop makes results of; it does not end the process.
func TestPanicOfAFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		toolset := New(Config{Tools: []string{"*"}}).For("a", scripted(func(context.Context, dragoman.Call) (dragoman.Result, error) {
			runs.Add(1)
			time.Sleep(time.Second)
			panic("a bug")
		}))
		loop := &dragoman.Loop{Tools: toolset}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				res, err := loop.Call(t.Context(), call("x", `{}`, dragoman.ReadOnly))
				if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeInternal {
					t.Errorf("Call = %+v, %v", res, err)
				}
			})
		}
		wg.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// A question is for one call alone, and what goes on with answers passes by.
func TestQuestionsAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		toolset := New(Config{Tools: []string{"*"}}).For("a", scripted(func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
			n := runs.Add(1)
			if c.Answers != nil {
				return dragoman.Result{Content: []byte(`{}`)}, nil
			}
			time.Sleep(time.Second)
			return dragoman.Result{Asks: &dragoman.Asks{State: []byte{byte(n)}, Questions: []dragoman.Question{{Key: "q"}}}}, nil
		}))
		states := make(chan string, 3)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				res, err := toolset.Call(t.Context(), call("x", `{}`, dragoman.ReadOnly))
				if err != nil || res.Asks == nil {
					t.Errorf("Call = %+v, %v", res, err)
					return
				}
				states <- string(res.Asks.State)
			})
		}
		wg.Wait()
		close(states)
		seen := map[string]bool{}
		for s := range states {
			seen[s] = true
		}
		if len(seen) != 3 {
			t.Errorf("three calls got %d questions of their own", len(seen))
		}
		goesOn := call("x", `{}`, dragoman.ReadOnly)
		goesOn.Answers = &dragoman.Answers{}
		before := runs.Load()
		for i := range int32(2) {
			if _, err := toolset.Call(t.Context(), goesOn); err != nil || runs.Load() != before+i+1 {
				t.Errorf("continuation %d did not run: %d runs after %d, %v", i, runs.Load(), before, err)
			}
		}
	})
}

// One who is slow to take progress holds up nobody else.
func TestProgressOfAFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toolset := New(Config{Tools: []string{"*"}}).For("a", scripted(func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
			for i := range 10 {
				time.Sleep(time.Second)
				c.Progress(dragoman.Progress{Progress: float64(i)})
			}
			time.Sleep(time.Second)
			return dragoman.Result{Content: []byte(`{}`)}, nil
		}))
		start := time.Now()
		var quick atomic.Int32
		var wg sync.WaitGroup
		wg.Go(func() {
			slow := call("x", `{}`, dragoman.ReadOnly)
			slow.Progress = func(dragoman.Progress) { time.Sleep(time.Hour) }
			_, _ = toolset.Call(t.Context(), slow)
		})
		wg.Go(func() {
			c := call("x", `{}`, dragoman.ReadOnly)
			c.Progress = func(dragoman.Progress) { quick.Add(1) }
			if _, err := toolset.Call(t.Context(), c); err != nil || time.Since(start) != 11*time.Second {
				t.Errorf("the quick one ended with %v after %s", err, time.Since(start))
			}
		})
		wg.Wait()
		if quick.Load() != 10 {
			t.Errorf("%d reports came", quick.Load())
		}
	})
}

// Other patterns and times hold for the next call.
func TestUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &slow{}
		c := New(Config{})
		cached := func(name string) bool {
			t.Helper()
			var r dragoman.Result
			for range 2 {
				var err error
				if r, err = c.For("ann", inner).Call(t.Context(), call(name, `{}`, dragoman.ReadOnly)); err != nil {
					t.Fatal(err)
				}
			}
			return r.Info.Cached
		}
		if cached("x") {
			t.Error("remembered without a pattern")
		}
		c.Use(Config{Tools: []string{"s__x"}})
		if !cached("x") || cached("y") {
			t.Error("the pattern does not count")
		}
		c.Use(Config{Tools: []string{"s__y"}})
		if cached("x") || !cached("y") {
			t.Error("the other pattern does not count")
		}
	})
}

// TestMeta: what a caller tells the server beside the arguments may be what its answer
// depends on; what a call is logged and traced by is not.
func TestMeta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := New(Config{Tools: []string{"s__get_*"}, TTL: time.Minute}).For("a", &slow{})
		for _, tc := range []struct{ meta, want string }{
			{`{"example.com/language":"de"}`, "1"},
			{`{"example.com/language":"fr"}`, "2"},
			{``, "3"},
			{`{ "traceparent":"00-1","io.modelcontextprotocol/logLevel":"info","tracestate":"x","baggage":"y","example.com/language":"de"}`, "1"},
			{`{"io.modelcontextprotocol/logLevel":"info"}`, "3"},
			{`{"claudecode/toolUseId":"toolu_1","vscode.requestId":"1"}`, "3"},
			{`{}`, "3"},
		} {
			call := call("get_x", `{}`, dragoman.ReadOnly)
			call.Meta = []byte(tc.meta)
			if r, err := tools.Call(t.Context(), call); err != nil || string(r.Content) != tc.want {
				t.Errorf("with %s: %s, %v; want %s", tc.meta, r.Content, err, tc.want)
			}
		}
	})
}
