package model

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errSilent is why an answer ends whose API sent nothing for too long.
var errSilent = errors.New("the model's API sent nothing for too long")

// A watched body ends where nothing comes for too long.
type watched struct {
	body   io.ReadCloser
	idle   time.Duration
	timer  *time.Timer
	silent atomic.Bool
	final  bool // the timer is not set again
	ended  bool // everything was read
}

// watch bounds the time in which a body makes no progress. Then its request is
// cancelled and the body closed, so that a Read that waits returns.
func watch(body io.ReadCloser, idle time.Duration, cancel context.CancelCauseFunc) *watched {
	w := &watched{body: body, idle: idle}
	w.timer = time.AfterFunc(idle, func() {
		w.silent.Store(true)
		cancel(errSilent)
		body.Close()
	})
	return w
}

// Read implements [io.Reader]. Its error is [errSilent] where that is the reason.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.body.Read(b)
	if n > 0 && !w.final {
		w.timer.Reset(w.idle)
	}
	w.ended = w.ended || err == io.EOF
	if err != nil && err != io.EOF && w.silent.Load() {
		err = errSilent
	}
	return n, err
}

// finish gives the rest of the body that long in all: what matters of it has
// arrived.
func (w *watched) finish(limit time.Duration) {
	w.final = true
	w.timer.Reset(limit)
}

// Close implements [io.Closer].
func (w *watched) Close() error {
	w.timer.Stop()
	return w.body.Close()
}
