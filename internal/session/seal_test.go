package session

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
)

// asking is a toolset whose calls ask once.
type asking struct {
	state   []byte
	held    bool
	ran     dragoman.Ran
	resumed []*dragoman.Answers

	withdrawn chan struct{}
}

func (a *asking) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }

func (a *asking) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	if c.Answers != nil {
		a.resumed = append(a.resumed, c.Answers)
		return dragoman.Result{Content: json.RawMessage(`{}`), Ran: dragoman.RanYes}, nil
	}
	return dragoman.Result{Ran: a.ran, Asks: &dragoman.Asks{
		State: a.state, Held: a.held, Withdrawn: a.withdrawn, Questions: []dragoman.Question{{Key: "q", Kind: dragoman.AskForm}},
	}}, nil
}

func call(server, name, arguments string) dragoman.Call {
	return dragoman.Call{
		Tool:      &dragoman.Tool{Server: server, Original: name, Name: name, Pin: dragoman.Pin(server, name, nil)},
		Arguments: json.RawMessage(arguments),
	}
}

func ask(t *testing.T, tools dragoman.Toolset, c dragoman.Call) *dragoman.Asks {
	t.Helper()
	res, err := tools.Call(t.Context(), c)
	if err != nil || res.Asks == nil {
		t.Fatalf("Call = %+v, %v", res, err)
	}
	return res.Asks
}

func TestSealedStateComesBackWhole(t *testing.T) {
	inner := &asking{state: []byte("a secret of the server"), ran: dragoman.RanMaybe}
	tools := newSeals(nil).around("ann", inner)
	c := call("s", "x", `{"n":1}`)
	asks := ask(t, tools, c)
	if bytes.Contains(asks.State, []byte("secret")) {
		t.Error("the state can be read outside")
	}
	if left := time.Until(asks.Expires); left <= 0 || left > askLife {
		t.Errorf("the questions stand for %s", left)
	}
	c.Answers = &dragoman.Answers{State: asks.State, Ran: dragoman.RanNot}
	if res, err := tools.Call(t.Context(), c); err != nil || res.Problem != nil {
		t.Fatalf("Call = %+v, %v", res, err)
	}
	got := inner.resumed[0]
	if string(got.State) != "a secret of the server" || got.Ran != dragoman.RanMaybe {
		t.Errorf("resumed with %q, ran %s: what a door says of earlier legs must not count", got.State, got.Ran)
	}
}

// A state is worth nothing with any other caller, tool, argument or process, when
// it was changed, or too late.
func TestSealRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &asking{state: []byte("state")}
		ours := newSeals(nil)
		c := call("s", "x", `{"n":1}`)
		state := ask(t, ours.around("ann", inner), c).State
		flip := func(i int) []byte {
			b := bytes.Clone(state)
			b[i] ^= 1
			return b
		}
		for _, tt := range []struct {
			name, caller string
			seal         *seals
			call         dragoman.Call
			state        []byte
			code         string
		}{
			{"another caller", "bob", ours, c, state, dragoman.CodeDenied},
			{"another server", "ann", ours, call("t", "x", `{"n":1}`), state, dragoman.CodeDenied},
			{"another tool", "ann", ours, call("s", "y", `{"n":1}`), state, dragoman.CodeDenied},
			{"other arguments", "ann", ours, call("s", "x", `{"n":2}`), state, dragoman.CodeDenied},
			{"a changed state", "ann", ours, c, flip(len(state) - 1), dragoman.CodeDenied},
			{"a changed nonce", "ann", ours, c, flip(processBytes), dragoman.CodeDenied},
			{"no state", "ann", ours, c, nil, dragoman.CodeDenied},
			{"a state without end", "ann", ours, c, append(bytes.Clone(state), make([]byte, maxState)...), dragoman.CodeDenied},
			{"another process", "ann", newSeals(nil), c, state, dragoman.CodeUnknownOutcome},
		} {
			tt.call.Answers = &dragoman.Answers{State: tt.state}
			res, err := tt.seal.around(tt.caller, inner).Call(t.Context(), tt.call)
			if err != nil || res.Problem == nil || res.Problem.Code != tt.code {
				t.Errorf("%s: %+v, %v; want %s", tt.name, res, err, tt.code)
			}
		}
		method := c
		method.Method, method.Answers = "prompts/get", &dragoman.Answers{State: state}
		if res, _ := ours.around("ann", inner).Call(t.Context(), method); res.Problem == nil {
			t.Error("another method goes on with the state")
		}
		time.Sleep(askLife + time.Second)
		c.Answers = &dragoman.Answers{State: state}
		if res, _ := ours.around("ann", inner).Call(t.Context(), c); res.Problem == nil || res.Problem.Code != dragoman.CodeUnanswered {
			t.Errorf("after its time: %+v", res.Problem)
		}
		if len(inner.resumed) != 0 {
			t.Errorf("%d forgeries got through", len(inner.resumed))
		}
	})
}

// What waits at servers is bounded for each caller. Who leaves questions
// unanswered loses the oldest of them to the newest, and takes nobody's room.
func TestSealHasRoomForSoManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &asking{state: []byte("state"), held: true}
		seal := newSeals(nil)
		tools := seal.around("ann", inner)
		c := call("s", "x", `{}`)
		var all []*dragoman.Asks
		for range askedOfOne + 1 {
			all = append(all, ask(t, tools, c))
		}
		if n := len(inner.resumed); n != 1 || !inner.resumed[0].Gone {
			t.Errorf("the server was not told of the oldest: %+v", inner.resumed)
		}
		if n := seal.held.Len(); n != askedOfOne {
			t.Errorf("%d calls are held for one caller", n)
		}
		ask(t, seal.around("bob", inner), c)
		goesOn := c
		goesOn.Answers = &dragoman.Answers{State: all[askedOfOne].State}
		if res, err := tools.Call(t.Context(), goesOn); err != nil || res.Problem != nil {
			t.Fatalf("Call = %+v, %v", res, err)
		}
		ask(t, tools, c)
		if n := len(inner.resumed); n != 2 {
			t.Errorf("a call was given up though there was room: %+v", inner.resumed)
		}
		time.Sleep(askLife + time.Second)
		synctest.Wait()
		if n := seal.held.Len(); n != 0 {
			t.Errorf("%d calls are held after their time", n)
		}
	})
}

// A call that has gone on at another replica takes no room here: neither is one given up
// that waits, nor another caller turned away.
func TestSealHasRoomForCallsThatWait(t *testing.T) {
	seal := newSeals(nil)
	waits := &asking{state: []byte("state"), held: true}
	ask(t, seal.around("ann", waits), call("s", "x", `{"waits":true}`))
	gone := make(chan struct{})
	close(gone)
	went := &asking{state: []byte("state"), held: true, withdrawn: gone}
	for i := range askedOfAll - 1 {
		caller := "ann"
		if i >= askedOfOne-1 {
			caller = "caller " + strconv.Itoa(i/askedOfOne)
		}
		ask(t, seal.around(caller, went), call("s", "x", `{}`))
	}
	for _, caller := range []string{"ann", "one more"} {
		ask(t, seal.around(caller, went), call("s", "x", `{}`))
	}
	if waits.resumed != nil || went.resumed != nil {
		t.Errorf("calls were given up: %+v, %+v", waits.resumed, went.resumed)
	}
}

// Calls that ask at once for the room of the oldest all get some, however long it takes to
// end the oldest.
func TestSealHasRoomForCallsAtOnce(t *testing.T) {
	inner := &slowToEnd{asking: asking{state: []byte("state"), held: true}, ends: make(chan struct{}), ended: make(chan struct{})}
	tools := newSeals(nil).around("ann", inner)
	for range askedOfOne {
		ask(t, tools, call("s", "x", `{}`))
	}
	first := make(chan dragoman.Result)
	go func() {
		res, _ := tools.Call(t.Context(), call("s", "x", `{}`))
		first <- res
	}()
	<-inner.ends
	ask(t, tools, call("s", "x", `{}`))
	close(inner.ended)
	if res := <-first; res.Asks == nil {
		t.Errorf("%+v", res.Problem)
	}
}

// A slowToEnd takes its time to end the first call whose questions nobody answers.
type slowToEnd struct {
	asking
	slow        sync.Once
	ends, ended chan struct{}
}

func (s *slowToEnd) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	if c.Answers == nil {
		return s.asking.Call(ctx, c)
	}
	first := false
	s.slow.Do(func() { first = true })
	if first {
		close(s.ends)
		<-s.ended
	}
	return dragoman.Result{}, nil
}

// What waits for all callers is bounded, too: then who has none is turned away.
func TestSealHasRoomForSoManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &asking{state: []byte("state"), held: true}
		seal := newSeals(nil)
		c := call("s", "x", `{}`)
		for i := range askedOfAll {
			ask(t, seal.around("caller "+strconv.Itoa(i/askedOfOne), inner), c)
		}
		res, err := seal.around("one more", inner).Call(t.Context(), c)
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnanswered {
			t.Fatalf("one too many: %+v, %v", res, err)
		}
		if n := len(inner.resumed); n != 1 || !inner.resumed[0].Gone {
			t.Errorf("the server was not told: %+v", inner.resumed)
		}
	})
}

// Two processes with one ring of keys open each other's states, but for those of calls
// that wait in the other one.
func TestSealAcrossProcesses(t *testing.T) {
	ring := seal.New()
	for _, tt := range []struct {
		held bool
		code string
	}{{false, ""}, {true, dragoman.CodeUnknownOutcome}} {
		inner := &asking{state: []byte("state"), held: tt.held}
		c := call("s", "x", `{}`)
		asks := ask(t, newSeals(ring).around("ann", inner), c)
		c.Answers = &dragoman.Answers{State: asks.State}
		res, err := newSeals(ring).around("ann", inner).Call(t.Context(), c)
		code := ""
		if res.Problem != nil {
			code = res.Problem.Code
		}
		if err != nil || code != tt.code {
			t.Errorf("held %t: %+v, %v; want %q", tt.held, res.Problem, err, tt.code)
		}
	}
}
