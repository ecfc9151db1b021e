package lint

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Pair is a call that was made while others ran, and what it got when it was made
// alone.
type Pair struct {
	Called
	Alone json.RawMessage
}

// atOnce is how many calls are made at the same time.
const atOnce = 4

// together makes calls at the same time that got the same answer twice when each was
// made alone. They are calls of different tools, or with different arguments, as far as
// there are any.
func (w *watcher) together() {
	var steady []Pair
	for i := 1; i < len(w.live.Calls); i++ {
		a, b := w.live.Calls[i-1], w.live.Calls[i]
		if a.Probe == CallValid && b.Probe == CallAgain && a.Tool == b.Tool && a.succeeded() && b.succeeded() && sameJSON(a.Result, b.Result) {
			steady = append(steady, Pair{a, a.Result})
		}
	}
	if len(steady) == 0 || w.over() || len(w.live.Calls)+atOnce > w.budget.Calls {
		return
	}
	pairs := make([]Pair, atOnce)
	messages := make([]raw, atOnce)
	for i := range pairs {
		pairs[i] = steady[i%len(steady)]
		pairs[i].Probe = CallWatch
		messages[i] = w.message(w.main, "tools/call", params("name", string(rawjson.Quote(pairs[i].Tool.Name)), "arguments", string(pairs[i].Arguments)))
		messages[i].words = "calls at the same time"
	}
	var all sync.WaitGroup
	for i := range pairs {
		all.Go(func() { pairs[i].Answer = w.send(w.main, messages[i], w.budget.Answer) })
	}
	all.Wait()
	w.live.Together = pairs
}

// alone makes the calls of together that got another answer once more, one after the
// other: what reads differently now has changed, and the others had no part in it.
func (w *watcher) alone() {
	w.live.Together = slices.DeleteFunc(w.live.Together, func(p Pair) bool {
		if w.over() || p.Result == nil || sameJSON(p.Result, p.Alone) {
			return false
		}
		again := w.call(Called{Tool: p.Tool, Probe: CallWatch, Arguments: p.Arguments})
		return again.Result == nil || !sameJSON(again.Result, p.Alone)
	})
}

// checkTogether looks for calls that got another answer, or none, while others ran.
func checkTogether(_ *Server, l *Live, say Say) {
	for _, p := range l.Together {
		switch {
		case p.Err == errGone: // E006 and R003 have it
		case p.failed(), p.Result != nil && isError(p.Result) && !isError(p.Alone):
			say(of(p.Called, ""), "of %d calls at the same time one of %s failed, which alone succeeds: %s", len(l.Together), quote(p.Tool.Name), p.says())
			return
		case p.Result != nil && !sameJSON(p.Result, p.Alone):
			say(of(p.Called, ""), "of %d calls at the same time one of %s got another result than it gets alone", len(l.Together), quote(p.Tool.Name))
			return
		}
	}
}

// others lists the tools to a client of another name, and keeps the list where it is
// another one for no other reason.
func (w *watcher) others(c *connection) {
	here := w.live.Lists[0]
	there := w.list(c, "tools/list", "tools")
	if here.Err != nil || there.Err != nil || there.Endless != "" || sameSet(here.Items, there.Items) {
		w.live.Lists = append(w.live.Lists, there)
		return
	}
	again, still := w.list(w.main, "tools/list", "tools"), w.list(c, "tools/list", "tools")
	for _, list := range append(w.live.Lists, again) {
		if !sameSet(here.Items, list.Items) {
			w.live.Lists = append(w.live.Lists, again, there) // it differs from one time to the next
			return
		}
	}
	if !sameSet(there.Items, still.Items) {
		w.live.Lists = append(w.live.Lists, there, still) // so it does to this client
		return
	}
	// And once more in the first name, but on a new connection: it may differ between any two.
	fresh, err := w.connect(ownName)
	if err != nil {
		return
	}
	defer w.disconnect(fresh)
	if same := w.list(fresh, "tools/list", "tools"); !sameSet(here.Items, same.Items) {
		w.live.Lists = append(w.live.Lists, same)
		return
	}
	w.live.OtherClient = &there
}

// moved lists what is no tool again, after tools were called that only read.
func (w *watcher) moved() {
	if w.probe == ProbeAll || len(w.live.Calls) == 0 {
		return
	}
	for method, before := range w.live.Others {
		if w.over() || before.Err != nil || before.Endless != "" {
			continue
		}
		key := map[string]string{"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}[method]
		after, still := w.list(w.main, method, key), w.list(w.main, method, key)
		if after.Err == nil && !sameSet(before.Items, after.Items) && sameSet(after.Items, still.Items) {
			w.live.Moved = append(w.live.Moved, method)
		}
	}
}
