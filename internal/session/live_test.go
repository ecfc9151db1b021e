package session

import (
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
		time.Sleep(Watched) // in the bubble's time
		if l.On() || l.begin(s) != nil {
			t.Error("what runs is kept for ever")
		}
	})
}
