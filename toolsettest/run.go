package toolsettest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// patience is how long something may take that is told, not waited for.
const patience = 20 * time.Second

// Run checks a toolset. around returns the toolset to be checked, which lists and
// calls what inner does, under any public names; it is called for each check, and
// cleans up with t.Cleanup.
func Run(t *testing.T, around func(t *testing.T, inner *Inner) dragoman.Toolset) {
	for _, c := range []struct {
		name  string
		check func(*check)
	}{
		{"the list stays while nothing changes", (*check).listStays},
		{"a change is told", (*check).changeIsTold},
		{"equal tools are the same tools", (*check).equalToolsStay},
		{"arguments and results pass as they are", (*check).bytesPass},
		{"a tool that fails is a result", (*check).failureIsResult},
		{"a problem is a result, and no better than it is", (*check).problemIsResult},
		{"calls side by side", (*check).sideBySide},
		{"the end of the context ends the call", (*check).endsWithContext},
		{"a call that is not wanted any more does not run", (*check).notWanted},
		{"progress comes before the result", (*check).progressComes},
		{"somebody slow holds up nobody else", (*check).slowListener},
		{"a question is a result", (*check).questionIsResult},
		{"who cannot be asked is not asked", (*check).cannotBeAsked},
		{"answers are good once", (*check).answersOnce},
		{"answers without a call", (*check).answersWithoutCall},
		{"nobody answers", (*check).nobodyAnswers},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := NewInner()
			c.check(&check{T: t, inner: inner, tools: around(t, inner)})
		})
	}
}

// A check is one toolset under test.
type check struct {
	*testing.T
	inner *Inner
	tools dragoman.Toolset
}

func (c *check) list() *dragoman.List {
	c.Helper()
	l, err := c.tools.List(c.Context())
	if err != nil || l == nil {
		c.Fatalf("List = %v, %v", l, err)
	}
	return l
}

// tool returns a tool by its original name.
func (c *check) tool(original string) *dragoman.Tool {
	c.Helper()
	all := c.list().Tools.All()
	for i := range all {
		if all[i].Original == original {
			return &all[i]
		}
	}
	c.Fatalf("the tool %q is not listed", original)
	return nil
}

func (c *check) call(call dragoman.Call) dragoman.Result {
	c.Helper()
	res, err := c.tools.Call(c.Context(), call)
	if err != nil {
		c.Fatalf("Call: %v", err)
	}
	set := 0
	for _, is := range []bool{res.Content != nil, res.Problem != nil, res.Asks != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		c.Fatalf("a result has either content, or a problem, or asks; this one: %+v", res)
	}
	return res
}

// eventually waits for something that is told to the inner toolset only.
func (c *check) eventually(what string, happened func() bool) {
	c.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !happened(); <-tick.C {
		if time.Now().After(end) {
			c.Fatalf("waited in vain: %s", what)
		}
	}
}

func (c *check) listStays() {
	first, tools := c.list(), c.list().Tools
	for range 3 {
		if l := c.list(); l != first && l.Tools != tools {
			c.Error("another list, though nothing changed")
		}
	}
	if tools.Len() < 7 {
		c.Errorf("%d tools are listed", tools.Len())
	}
}

func (c *check) changeIsTold() {
	before := c.list()
	if before.Changed == nil {
		c.Fatal("the list never changes")
	}
	n := before.Tools.Len()
	c.inner.Change()
	for now := before; now.Tools == before.Tools; {
		select {
		case <-now.Changed:
			last := now
			if now = c.list(); now == last {
				c.Fatal("Changed is closed, and the list is the same")
			}
		case <-time.After(patience):
			c.Fatal("nobody was told that the list changed")
		}
	}
	if after := c.list().Tools.Len(); after != n+1 || before.Tools.Len() != n {
		c.Errorf("there were %d tools and are %d; the old list has %d", n, after, before.Tools.Len())
	}
}

func (c *check) equalToolsStay() {
	tools := c.list().Tools
	for range 3 {
		c.inner.Touch()
		if c.list().Tools != tools {
			c.Error("equal tools are not the same Tools")
		}
	}
}

func (c *check) bytesPass() {
	arguments := json.RawMessage(`{"z":9007199254740993,"a":"\u00e9","z1":1.0}`)
	res := c.call(dragoman.Call{Tool: c.tool(Echo), Arguments: arguments})
	if !bytes.Contains(res.Content, arguments) || res.Failed {
		c.Errorf("echo of %s: %s", arguments, res.Content)
	}
	if res.Ran == dragoman.RanNot {
		c.Error("it did run")
	}
}

func (c *check) failureIsResult() {
	if res := c.call(dragoman.Call{Tool: c.tool(Fail)}); !res.Failed || res.Content == nil || res.Ran == dragoman.RanNot {
		c.Errorf("%+v", res)
	}
}

func (c *check) problemIsResult() {
	res := c.call(dragoman.Call{Tool: c.tool(Lost)})
	if res.Problem == nil || res.Problem.Message == "" || res.Ran == dragoman.RanNot {
		c.Errorf("%+v", res)
	}
}

func (c *check) sideBySide() {
	tool := c.tool(Echo)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			arguments := fmt.Appendf(nil, `{"i":"number %d"}`, i)
			res, err := c.tools.Call(c.Context(), dragoman.Call{Tool: tool, Arguments: arguments})
			if err != nil || !bytes.Contains(res.Content, arguments) {
				c.Errorf("echo of %s: %s, %+v, %v", arguments, res.Content, res.Problem, err)
			}
			if _, err := c.tools.List(c.Context()); err != nil {
				c.Error(err)
			}
		})
	}
	wg.Wait()
}

func (c *check) endsWithContext() {
	why := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(c.Context())
	tool := c.tool(Wait)
	ended := make(chan dragoman.Result)
	go func() {
		res, err := c.tools.Call(ctx, dragoman.Call{Tool: tool})
		if !errors.Is(err, why) {
			c.Errorf("the call ended with %v, want the cause of its context", err)
		}
		ended <- res
	}()
	<-c.inner.started
	cancel(why)
	select {
	case res := <-ended:
		if res.Content != nil || res.Ran == dragoman.RanNot {
			c.Errorf("a call that ran and was ended: %+v", res)
		}
	case <-time.After(patience):
		c.Fatal("the call goes on")
	}
	c.eventually("the end of the call", func() bool { return c.inner.Ended() == 1 })
}

func (c *check) notWanted() {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	res, err := c.tools.Call(ctx, dragoman.Call{Tool: c.tool(Write)})
	if err == nil && res.Problem == nil && res.Content == nil {
		c.Error("neither a result nor an error")
	}
	if res.Ran == dragoman.RanNot && c.inner.Ran(Write) != 0 {
		c.Error("it ran, and the result says that it did not")
	}
}

func (c *check) progressComes() {
	var returned atomic.Bool
	var last dragoman.Progress
	c.call(dragoman.Call{Tool: c.tool(Steps), Progress: func(p dragoman.Progress) {
		if returned.Load() {
			c.Error("progress after the call has returned")
		}
		last = p
	}})
	returned.Store(true)
	if last.Progress != 3 || last.Total != 3 {
		c.Errorf("the last progress was %+v", last)
	}
}

func (c *check) slowListener() {
	slow, release := make(chan struct{}), make(chan struct{})
	ended := make(chan struct{})
	tool, echo := c.tool(Steps), c.tool(Echo)
	go func() {
		defer close(ended)
		var once sync.Once
		_, err := c.tools.Call(c.Context(), dragoman.Call{Tool: tool, Progress: func(dragoman.Progress) {
			once.Do(func() { close(slow) })
			<-release
		}})
		if err != nil {
			c.Error(err)
		}
	}()
	<-slow
	other := make(chan struct{})
	go func() {
		defer close(other)
		if _, err := c.tools.Call(c.Context(), dragoman.Call{Tool: echo}); err != nil {
			c.Error(err)
		}
	}()
	select {
	case <-other:
	case <-time.After(patience):
		c.Error("a listener that is slow holds up another call")
	}
	close(release)
	<-ended
}

// asked makes the call that asks, and returns what it asks.
func (c *check) asked() (dragoman.Call, dragoman.Result) {
	c.Helper()
	call := dragoman.Call{Tool: c.tool(Ask), Can: dragoman.AskForm}
	res := c.call(call)
	if res.Asks == nil || len(res.Asks.Questions) != 1 || len(res.Asks.State) == 0 {
		c.Fatalf("a call that asks: %+v", res)
	}
	return call, res
}

// answers are the answers to what res asks.
func answers(res dragoman.Result) *dragoman.Answers {
	reply := json.RawMessage(`{"action":"accept","content":{"n":3.0}}`)
	return &dragoman.Answers{
		State: bytes.Clone(res.Asks.State), Ran: res.Ran,
		Replies: map[string]json.RawMessage{res.Asks.Questions[0].Key: reply},
	}
}

func (c *check) questionIsResult() {
	call, res := c.asked()
	q := res.Asks.Questions[0]
	if q.Kind != dragoman.AskForm || !bytes.Contains(q.Params, []byte(`"How many?"`)) || res.Ran == dragoman.RanYes {
		c.Errorf("asks %+v, ran %s", q, res.Ran)
	}
	if len(res.Asks.State) > 64<<10 {
		c.Errorf("a state of %d bytes", len(res.Asks.State))
	}
	call.Answers = answers(res)
	res = c.call(call)
	if !bytes.Contains(res.Content, []byte(`"n":3.0`)) || res.Ran == dragoman.RanNot {
		c.Errorf("with the answers: %+v", res)
	}
}

func (c *check) cannotBeAsked() {
	if res := c.call(dragoman.Call{Tool: c.tool(Ask)}); res.Asks != nil {
		c.Errorf("asked %+v", res.Asks.Questions)
	}
}

func (c *check) answersOnce() {
	call, res := c.asked()
	held := res.Asks.Held
	call.Answers = answers(res)
	c.call(call)
	call.Answers = answers(res)
	res = c.call(call)
	if held && (res.Content != nil || res.Ran == dragoman.RanNot) {
		c.Errorf("the same answers a second time: %+v", res)
	}
}

func (c *check) answersWithoutCall() {
	call := dragoman.Call{Tool: c.tool(Write), Can: dragoman.AskForm}
	for _, state := range []string{"", "x", "state of nobody"} {
		call.Answers = &dragoman.Answers{State: []byte(state)}
		if res := c.call(call); res.Problem == nil || res.Ran == dragoman.RanNot {
			c.Errorf("with the state %q: %+v", state, res)
		}
	}
	if n := c.inner.Ran(Write); n != 0 {
		c.Errorf("the tool ran %d times", n)
	}
}

func (c *check) nobodyAnswers() {
	call, res := c.asked()
	call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran, Gone: true}
	// What comes of the call is of no use to anybody.
	if got, err := c.tools.Call(c.Context(), call); err != nil || got.Asks != nil || got.Ran == dragoman.RanNot && res.Ran != dragoman.RanNot {
		c.Errorf("%+v, %v", got, err)
	}
	if res.Asks.Held {
		c.eventually("that nobody answers", func() bool { return c.inner.Gone() == 1 })
	}
}
