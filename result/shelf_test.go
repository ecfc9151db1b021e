package result

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// cutResult shapes a text of n characters so that it is cut, and returns its
// handle.
func cutResult(t *testing.T, shelf *Shelf, caller string, n int) string {
	t.Helper()
	shape := &Shape{Limit: MinLimit, Shelf: shelf, Caller: caller}
	m := shape.Message(call, dragoman.Result{Content: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", n) + `"}]}`)})
	if !m.Cut {
		t.Fatal("nothing was cut")
	}
	return m.Handle
}

func readable(shelf *Shelf, caller, handle string) bool {
	return shelf.Read(caller, json.RawMessage(`{"handle":"`+handle+`"}`)).Problem == nil
}

func TestShelfForgetsWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &Shelf{}
		handle := cutResult(t, shelf, "ann", 5000)
		time.Sleep(14 * time.Minute) // the bubble's clock
		if !readable(shelf, "ann", handle) {
			t.Error("gone after 14 minutes")
		}
		time.Sleep(14 * time.Minute)
		if !readable(shelf, "ann", handle) {
			t.Error("gone 14 minutes after it was used")
		}
		time.Sleep(15 * time.Minute)
		if readable(shelf, "ann", handle) {
			t.Error("kept for more than 15 minutes")
		}
		if results, bytes := shelf.Held(); results != 0 || bytes != 0 {
			t.Errorf("still %d results, %d bytes", results, bytes)
		}
	})
}

func TestShelfIsPerCaller(t *testing.T) {
	shelf := &Shelf{}
	handle := cutResult(t, shelf, "ann", 5000)
	if readable(shelf, "bob", handle) || readable(shelf, "", handle) {
		t.Error("somebody else read ann's result")
	}
	stranger := shelf.Read("bob", json.RawMessage(`{"handle":"`+handle+`"}`))
	nobody := shelf.Read("bob", json.RawMessage(`{"handle":"aaaaaaaaaaaaaaaa"}`))
	if stranger.Problem.Message != nobody.Problem.Message {
		t.Error("the answer tells that the handle exists")
	}
}

func TestShelfIsBounded(t *testing.T) {
	shelf := &Shelf{Bytes: 100_000}
	quiet := cutResult(t, shelf, "ann", 5_000)
	var loud []string
	for range 30 {
		loud = append(loud, cutResult(t, shelf, "bob", 10_000))
		if _, bytes := shelf.Held(); bytes > 100_000 {
			t.Fatalf("%d bytes", bytes)
		}
	}
	if !readable(shelf, "ann", quiet) {
		t.Error("bob's results drove ann's out")
	}
	if readable(shelf, "bob", loud[0]) || !readable(shelf, "bob", loud[29]) {
		t.Error("the oldest stayed, or the newest went")
	}
	// What cannot be kept is cut without a handle.
	shape := &Shape{Limit: MinLimit, Shelf: shelf}
	m := shape.Message(call, dragoman.Result{Content: []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 50_000) + `"}]}`)})
	if m.Handle != "" || !strings.Contains(m.Text, "was not kept") {
		t.Errorf("handle %q in %s", m.Handle, m.Text)
	}
}

func TestShelfToolset(t *testing.T) {
	shelf := &Shelf{}
	tools := shelf.For("ann")
	listed, err := tools.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := listed.Tools.All()
	if len(list) != 1 || list[0].Name != ReadMore {
		t.Fatalf("%v, %v", list, err)
	}
	if !json.Valid(list[0].Definition) || len(list[0].InputSchema) == 0 || list[0].Description == "" {
		t.Errorf("incomplete definition: %+v", list[0])
	}
	handle := cutResult(t, shelf, "ann", 5000)
	res, err := tools.Call(t.Context(), dragoman.Call{Tool: &list[0], Arguments: json.RawMessage(`{"handle":"` + handle + `","offset":4990}`)})
	if err != nil || !strings.Contains(string(res.Content), `"count":10,`) {
		t.Errorf("%s, %v, %v", res.Content, res.Problem, err)
	}
	other := dragoman.Tool{Name: "write_more", Original: "write_more"}
	if res, _ := tools.Call(t.Context(), dragoman.Call{Tool: &other}); res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownTool {
		t.Errorf("another tool was answered: %+v", res)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tools.Call(ended, dragoman.Call{Tool: &list[0]}); err == nil {
		t.Error("ran after its context had ended")
	}
}

func TestShelfConcurrently(t *testing.T) {
	shelf := &Shelf{Bytes: 300_000}
	var wg sync.WaitGroup
	var read atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			caller := fmt.Sprint("caller", i%3)
			for range 20 {
				handle := cutResult(t, shelf, caller, 5000)
				if readable(shelf, caller, handle) {
					read.Add(1)
				}
				if readable(shelf, fmt.Sprint("caller", (i+1)%3), handle) {
					t.Error("a result was read by somebody else")
				}
				if _, bytes := shelf.Held(); bytes > 300_000 {
					t.Errorf("%d bytes are held", bytes)
				}
			}
		})
	}
	wg.Wait()
	// A result is pushed out by others only when eight write at a time.
	if n := read.Load(); n < 100 {
		t.Errorf("%d of 160 results could be read right after they were cut", n)
	}
}

// Another process reads what this one cut, for the same caller alone, and forgets it no
// sooner than it is asked.
func TestShelfOfProcesses(t *testing.T) {
	outside := documents{}
	here, there := &Shelf{Beyond: outside}, &Shelf{Beyond: outside}
	handle := cutResult(t, here, "ann", 5000)
	if !readable(there, "ann", handle) {
		t.Error("another process does not find it")
	}
	if readable(there, "bob", handle) {
		t.Error("somebody else read ann's result at another process")
	}
	clear(outside)
	if !readable(there, "ann", handle) {
		t.Error("it is read from outside each time")
	}
	outside["ann "+handle] = []byte(`{"roots":[]}`)
	if readable(&Shelf{Beyond: outside}, "ann", handle) {
		t.Error("what is no result is read")
	}
}
