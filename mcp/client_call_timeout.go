package mcp

import (
	"sync"
	"time"
)

// A callTimeout is the time that a server has to answer a call. It begins with the
// first byte, and stands still while the server waits for us. Its zero value
// never runs out.
type callTimeout struct {
	mu    sync.Mutex
	left  time.Duration // when it last stood still
	since time.Time     // since then it runs; zero while it stands still
	timer *time.Timer   // nil before it was started first
	out   func()        // is called when it has run out
}

// set gives the time, and what happens when it is over.
func (w *callTimeout) set(d time.Duration, out func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.out = d, out
}

// start lets it run, unless it does.
func (w *callTimeout) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil || !w.since.IsZero() {
		return
	}
	w.since = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.left, w.out)
	} else {
		w.timer.Reset(w.left)
	}
}

// stop lets it stand still.
func (w *callTimeout) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil || w.since.IsZero() {
		return
	}
	w.timer.Stop()
	w.left, w.since = max(w.left-time.Since(w.since), 0), time.Time{}
}
