package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/result"
)

// TestLive: nothing is kept while nobody watches; while somebody does, so much and no more,
// and each sees what they may.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *Live
		l := &Live{}
		s := &Session{Caller: caller.Caller{ID: "ada", Name: "ada"}, live: l, door: "api"}
		if none.On() || none.begin(s) != nil || l.begin(s) != nil || l.Seq() != 0 {
			t.Error("something is kept that nobody looks at")
		}
		l.Watch()
		shape := func(*dragoman.Tool) *result.Shape { return &result.Shape{} }
		big := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 100_000) + `"}]}`)
		var first *Run
		for n := range maxRuns + 5 {
			if n == maxRunsPerSecond {
				time.Sleep(time.Second) // in the bubble's time, as below
			}
			r := l.begin(s)
			if n == 0 {
				first = r
			}
			for range 20 {
				l.add(r, step(dragoman.Event{Phase: dragoman.Execute, Call: &dragoman.Call{Name: "tool"}, Result: &dragoman.Result{Content: big}}, shape))
			}
			l.end(r, nil)
		}
		all := l.List(func(string) bool { return true })
		total := 0
		for _, r := range all {
			for _, s := range r.Steps {
				total += len(s.Came) + len(s.Shown)
			}
		}
		if len(all) > maxRuns || len(all) < 10 || total > maxLiveBytes {
			t.Errorf("%d runs of %d bytes are kept", len(all), total)
		}
		if _, ok := l.Get(first.ID, func(string) bool { return true }); ok {
			t.Error("the oldest is still there")
		}
		if r := all[0]; r.Caller != "ada" || r.Ended.IsZero() || len(r.Steps) == 0 || !strings.HasSuffix(r.Steps[0].Came, "…") {
			t.Errorf("%+v", r)
		}
		bob := func(caller string) bool { return caller == "bob" }
		if _, ok := l.Get(all[0].ID, bob); ok || len(l.List(bob)) > 0 || l.Running(bob) > 0 {
			t.Error("bob sees what ada does")
		}
		time.Sleep(Watched)
		if l.On() || l.begin(s) != nil {
			t.Error("what runs is kept for ever")
		}
	})
}

// TestLiveOfABusyProcess: watching costs the same however much runs. What a second has no
// time for is counted, what is kept and what somebody waits for is shown all the same.
func TestLiveOfABusyProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Live{}
		l.Watch()
		told := func(request string) bool {
			s := &Session{Caller: caller.Caller{ID: "ada"}, live: l, Request: request}
			asks := s.watched()
			if s.watched() != asks {
				t.Error("it is decided twice")
			}
			return asks
		}
		for n := range maxRunsPerSecond {
			if !told("") {
				t.Fatalf("number %d of a second is not told", n)
			}
		}
		if told("") || l.Lost() != 1 {
			t.Errorf("more are told in a second; %d are lost", l.Lost())
		}
		kept := &Session{Caller: caller.Caller{ID: "bob"}, live: l}
		l.Book = &shelfOfRuns{whose: "bob"}
		if !kept.watched() || told("") {
			t.Error("what is kept is told, whatever else runs, and nothing else for it")
		}
		l.Await("mine")
		if !told("mine") || told("mine") {
			t.Error("what somebody waits for is told once, whatever else runs")
		}
		for n := range 2 * maxAwaited {
			l.Await(strings.Repeat("x", n+1))
		}
		if len(l.awaited) != maxAwaited {
			t.Errorf("%d are awaited", len(l.awaited))
		}
		time.Sleep(time.Second)
		if !told("") {
			t.Error("the next second has no room")
		}
	})
}

// TestAddressOfARun: the number of a run, which stands in its address, is that of no run of
// another process: of a replica, or of this one once it was restarted.
func TestAddressOfARun(t *testing.T) {
	all := func(string) bool { return true }
	before, after := &Live{}, &Live{}
	for _, l := range []*Live{before, after} {
		l.Watch()
		for range 50 {
			l.begin(&Session{Caller: caller.Caller{ID: "ada"}, live: l, door: "api"})
		}
	}
	for _, r := range before.List(all) {
		if _, ok := before.Get(r.ID, all); !ok || r.ID == 0 {
			t.Errorf("there is no run %d", r.ID)
		}
		if _, ok := after.Get(r.ID, all); ok {
			t.Fatalf("%d is a run of both", r.ID)
		}
	}
}

// TestCancelledRun: whoever looks at a run that its caller gave up reads that, and not what
// Go calls it.
func TestCancelledRun(t *testing.T) {
	for err, want := range map[error]string{
		nil:                    "",
		errors.New("no model"): "no model",
		fmt.Errorf("asking the model: %w", context.Canceled): "cancelled",
	} {
		var l Live
		l.Watch()
		r := l.begin(&Session{Caller: caller.Caller{ID: "ada"}, live: &l})
		if l.end(r, err); r.Failed != want {
			t.Errorf("%v is shown as %q", err, r.Failed)
		}
	}
}
