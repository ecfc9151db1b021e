package idempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"sync"
)

// errLeft is why a request ends that nobody waits for any more.
var errLeft = errors.New("every client is gone")

// A flight is a request that runs. It is the [http.ResponseWriter] of its handler,
// and any number of clients follow what is written. What is written lies in memory,
// so that more can follow from the beginning; once that is too much, it is kept for
// those alone who follow already, and the handler waits for the slowest of them.
type flight struct {
	print  [32]byte
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when its outcome is kept

	header http.Header // the handler's

	mu        sync.Mutex
	moved     chan struct{} // closed at each change, and made anew
	status    int           // 0 before the answer begins
	said      http.Header   // what header was then
	body      []byte        // from the offset gone on
	gone      int64
	followers map[*follower]struct{}
	entering  int   // are about to follow
	full      bool  // the handler waits for room
	left      bool  // everybody went before the end
	over      bool  // nothing more is written
	refused   error // nothing is answered
	lost      bool  // another process runs the request: what is said before an answer begins is dropped
	broken    any   // what the handler panicked with; told once it is over
}

// A follower is a client that gets the answer.
type follower struct{ at int64 }

func newFlight(print [32]byte, ctx context.Context, cancel context.CancelCauseFunc) *flight {
	return &flight{
		print: print, ctx: ctx, cancel: cancel, done: make(chan struct{}), header: http.Header{},
		moved: make(chan struct{}), followers: map[*follower]struct{}{}, entering: 1,
	}
}

// move tells everybody that something has changed.
func (f *flight) move() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// Header implements [http.ResponseWriter].
func (f *flight) Header() http.Header { return f.header }

// WriteHeader implements [http.ResponseWriter].
func (f *flight) WriteHeader(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dropped() {
		f.begin(status)
	}
}

// dropped reports that nobody is told what is written now. f.mu is held.
func (f *flight) dropped() bool { return f.lost && f.status == 0 }

// beat says whether another process runs the request.
func (f *flight) beat(lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = lost
}

// beaten reports that another process runs the request, and nothing of an answer was said.
func (f *flight) beaten() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped()
}

func (f *flight) begin(status int) {
	if f.status != 0 || status < 200 {
		return
	}
	f.status, f.said = status, maps.Clone(f.header)
	f.move()
}

// Write implements [http.ResponseWriter].
func (f *flight) Write(p []byte) (written int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped() {
		return len(p), nil
	}
	f.begin(http.StatusOK)
	for written < len(p) {
		room := maxAnswer - len(f.body)
		if room <= 0 {
			if room = f.forget(); room == 0 {
				if err := f.wait(); err != nil {
					return written, err
				}
				continue
			}
		}
		n := min(room, len(p)-written)
		f.body = append(f.body, p[written:written+n]...)
		written += n
		f.move()
	}
	return written, nil
}

// FlushError is what [http.ResponseController] looks for. Followers flush what they
// pass on.
func (f *flight) FlushError() error { return nil }

// Flush implements [http.Flusher].
func (f *flight) Flush() {}

// forget drops what every follower has, and returns how much.
func (f *flight) forget() int {
	if f.entering > 0 || f.left {
		return 0
	}
	least := f.gone + int64(len(f.body))
	for each := range f.followers {
		least = min(least, each.at)
	}
	n := int(least - f.gone)
	f.body, f.gone = f.body[n:], least
	return n
}

// wait waits for room, without the lock.
func (f *flight) wait() error {
	moved := f.moved
	f.full = true
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-moved:
		return nil
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
}

// errFailed: the answer is an error. It is for those who were there when it was said:
// who comes later tries again.
var errFailed = errors.New("the answer is an error")

// enter lets one more follow.
func (f *flight) enter() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.status >= 400:
		return errFailed
	case f.gone > 0:
		return ErrLarge
	}
	f.entering++
	return nil
}

// land runs the handler to its end, which [flight.end] tells.
func (f *flight) land(handler func()) {
	defer func() {
		broken := recover()
		if broken != nil && broken != http.ErrAbortHandler {
			broken = fmt.Sprintf("%v\n\n%s", broken, debug.Stack()) // who follows panics elsewhere
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.broken = broken
		if broken == nil && f.refused == nil {
			f.begin(http.StatusOK)
		}
	}()
	handler()
}

// refuse says why the request is not answered.
func (f *flight) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = err
}

// refusal returns why the request was not answered; nil where it was.
func (f *flight) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// end tells everybody that nothing more comes. The outcome is kept by then: a client
// that has seen the end may ask again at once.
func (f *flight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.move()
	close(f.done)
}

// answer returns the whole answer; nil where it is not there.
func (f *flight) answer() *answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil || f.gone > 0 || f.left || f.refused != nil {
		return nil
	}
	return &answer{print: f.print, status: f.status, header: f.said, body: bytes.Clone(f.body)}
}

// follow passes the answer on to a client that has entered, as it comes. It reports
// false where everybody else had left before.
func (f *flight) follow(w http.ResponseWriter, r *http.Request, first bool) bool {
	me := f.arrive()
	if me == nil {
		return false
	}
	defer func() {
		if f.leave(me, errLeft) {
			<-f.done // no request outlives its handler
		}
	}()
	client, begun := r.Context().Done(), false
	for {
		f.mu.Lock()
		status, moved, over, broken := f.status, f.moved, f.over, f.broken
		part := f.body[me.at-f.gone:]
		f.mu.Unlock()
		if status != 0 && !begun {
			begin(w, status, f.said, !first)
			begun = true
		}
		switch {
		case len(part) > 0:
			if _, err := w.Write(part); err != nil {
				return true
			}
			f.advance(me, len(part))
		case over && broken != nil:
			panic(broken) // the connection breaks, as it did for the handler
		case over:
			return true
		default:
			if begun && http.NewResponseController(w).Flush() != nil {
				return true
			}
			select {
			case <-moved:
			case <-client:
				// The last one to leave waits for the end, which may have something
				// to say: the gateway stops.
				if !f.leave(me, context.Cause(r.Context())) {
					return true
				}
				client = nil
			}
		}
	}
}

// arrive makes a client that has entered a follower; nil where there is nothing to
// follow any more.
func (f *flight) arrive() *follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entering--
	if f.left {
		return nil
	}
	me := &follower{}
	f.followers[me] = struct{}{}
	f.room()
	return me
}

// room wakes the handler where it waits for followers.
func (f *flight) room() {
	if f.full {
		f.full = false
		f.move()
	}
}

// advance says that a follower has n bytes more.
func (f *flight) advance(me *follower, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	me.at += int64(n)
	f.room()
}

// leave ends a following, and reports whether it was the last one before the end:
// nobody is left to run for.
func (f *flight) leave(me *follower, why error) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.followers[me]; !ok {
		return false
	}
	delete(f.followers, me)
	f.room()
	if len(f.followers) > 0 || f.entering > 0 || f.over {
		return false
	}
	f.left = true
	f.cancel(why)
	return true
}
