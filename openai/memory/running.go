package memory

import (
	"context"
	"sync"
)

// Running knows which requests are being answered in this process, so that a
// request that a client sends again joins the first run instead of doing again
// what may have changed something. The zero value is ready; it is safe for
// concurrent use. A nil Running knows of none.
type Running struct {
	mu   sync.Mutex
	runs map[asking]*run
}

// asking names a request of an owner.
type asking struct{ owner, key string }

type run struct {
	done    chan struct{} // closed at its end; nil while none runs
	waiting int           // requests that wait for their turn
}

// Begin marks a request as being answered and returns what to call when it is not
// any more. With wait true it waits until no other such request is being answered,
// or returns the error of ctx; without, the request runs beside the other, and
// nobody waits for it.
func (r *Running) Begin(ctx context.Context, owner, key string, wait bool) (end func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	of := asking{owner, key}
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.runs[of]
	if own == nil {
		if r.runs == nil {
			r.runs = map[asking]*run{}
		}
		own = &run{}
		r.runs[of] = own
	}
	if own.done != nil && !wait {
		return func() {}, nil
	}
	own.waiting++
	for own.done != nil && err == nil {
		err = r.wait(ctx, own.done)
	}
	own.waiting--
	if err != nil {
		r.clean(of, own)
		return nil, err
	}
	done := make(chan struct{})
	own.done = done
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if own.done != done {
			return // it has ended
		}
		close(done)
		own.done = nil
		r.clean(of, own)
	}, nil
}

// wait waits for the end of a run, without the lock.
func (r *Running) wait(ctx context.Context, done <-chan struct{}) error {
	r.mu.Unlock()
	defer r.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clean forgets a run that nobody is interested in.
func (r *Running) clean(of asking, own *run) {
	if own.done == nil && own.waiting == 0 {
		delete(r.runs, of)
	}
}

// Waited reports whether another request waits for the end of this one.
func (r *Running) Waited(owner, key string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.runs[asking{owner, key}]
	return own != nil && own.waiting > 0
}
