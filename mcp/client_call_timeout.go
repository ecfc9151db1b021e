package mcp

import (
	"sync"
	"time"
)

// A callTimeout is the time that a server has for a call: first that in which something has
// to leave, and from the first byte on the time to answer, which stands still while the
// server waits for us. Its zero value never runs out.
type callTimeout struct {
	mu      sync.Mutex
	left    time.Duration // when it last stood still; none for as long as it takes
	since   time.Time     // since then it runs; zero while it stands still
	timer   *time.Timer   // nil before anything was waited for
	started bool          // the first byte has left
	out     func(error)   // is called when it has run out, with why, and must not come back here
}

// set begins to wait for the first byte. d is the time to answer, which is given from then
// on; zero for any.
func (w *callTimeout) set(unsent, d time.Duration, out func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.out = d, out
	w.timer = time.AfterFunc(unsent, w.over)
}

// over ends the call, unless the timer fired for a time that is not the one that runs now.
func (w *callTimeout) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.started:
		w.out(errUnsent)
	case !w.since.IsZero() && time.Since(w.since) >= w.left:
		w.out(errTimeUp)
	}
}

// start lets the time to answer run, unless it does.
func (w *callTimeout) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.started
	w.started = true
	switch {
	case w.timer == nil || !w.since.IsZero():
	case w.out == nil, first && w.left == 0:
		w.left, w.out = 0, nil
		w.timer.Stop()
	default:
		w.since = time.Now()
		w.timer.Reset(w.left)
	}
}

// stop lets it stand still.
func (w *callTimeout) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.timer.Stop()
	if !w.since.IsZero() {
		w.left, w.since = max(w.left-time.Since(w.since), 0), time.Time{}
	}
}
