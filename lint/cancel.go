package lint

import (
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Cancellation is a call that was cancelled while it ran.
type Cancellation struct {
	// Tool is the tool that was called. Usual is how long the same call took
	// before, After when it was cancelled.
	Tool         *Tool
	Usual, After time.Duration
	// Answer is what came all the same.
	Answer
}

// What a call has to take to be cancelled: long enough that a cancellation is
// not overtaken by the answer, and not so long that it is worth no second time.
const (
	leastCancelled = 800 * time.Millisecond
	mostCancelled  = 20 * time.Second
	cancelledAfter = 200 * time.Millisecond
)

// cancel repeats the first call that took its time, and cancels it soon. In the modern era over HTTP clients cancel by closing the
// stream, after which nobody can see what the server does.
func (w *watcher) cancel() {
	if w.live.Web != nil && (w.main.client.modern() || w.live.Transport == "sse") {
		return
	}
	for _, c := range w.live.Calls {
		if c.Probe != CallValid || c.Result == nil || isError(c.Result) || c.Took < leastCancelled || c.Took > mostCancelled {
			continue
		}
		if w.over() || len(w.live.Calls) >= w.budget.Calls {
			return
		}
		w.live.Cancelled = w.cancelled(c)
		return
	}
}

func (w *watcher) cancelled(c Called) *Cancellation {
	m := w.message(w.main, "tools/call", params("name", string(rawjson.Quote(c.Tool.Name)), "arguments", string(c.Arguments)))
	m.words = "a call of " + quote(c.Tool.Name) + " that is cancelled"
	result := &Cancellation{Tool: c.Tool, Usual: c.Took, After: cancelledAfter}
	var sending sync.WaitGroup
	sending.Add(1)
	stop := time.AfterFunc(result.After, func() {
		defer sending.Done()
		w.send(w.main, raw{
			body:   []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + m.id + `,"reason":"nobody wants it any more"}}`),
			silent: true, method: "notifications/cancelled", header: modernHeader(w.main, "notifications/cancelled"),
		}, patience)
	})
	result.Answer = w.send(w.main, m, c.Took+c.Took/2)
	if stop.Stop() {
		sending.Done() // it was faster this time
	}
	sending.Wait()
	return result
}
