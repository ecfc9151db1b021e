package memory

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Running knows which requests are being answered in this process, so that a
// request that a client sends again joins the first run instead of doing again
// what may have changed something, and one that goes on behind a request that its
// client gave up waits for what that did. The zero value is ready; it is safe for
// concurrent use. A nil Running knows of none.
type Running struct {
	mu     sync.Mutex
	runs   map[asking]*run
	behind map[asking][]*turning
}

// asking names a request of an owner.
type asking struct{ owner, key string }

// A turning is a request by what its turn is kept under where its answer breaks off.
type turning struct {
	left <-chan struct{} // closed when nobody waits for its answer any more
	over chan struct{}   // closed when its turn is kept
}

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

// parting is how long a client that goes on behind a request is given to be seen leaving that,
// which it does over another connection.
const parting = 500 * time.Millisecond

// Mark marks a request of ctx by the keys under which its turn is kept where its answer breaks
// off, and returns what to call when it is kept.
func (r *Running) Mark(ctx context.Context, owner string, keys []string) (end func()) {
	if r == nil || len(keys) == 0 {
		return func() {}
	}
	m := &turning{ctx.Done(), make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behind == nil {
		r.behind = map[asking][]*turning{}
	}
	for _, key := range keys {
		of := asking{owner, key}
		r.behind[of] = append(r.behind[of], m)
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, key := range keys {
			of := asking{owner, key}
			if r.behind[of] = slices.DeleteFunc(r.behind[of], func(other *turning) bool { return other == m }); len(r.behind[of]) == 0 {
				delete(r.behind, of)
			}
		}
		close(m.over)
	})
}

// Await waits until the turns of requests that are marked by one of keys, and whose clients have
// left, are kept, or returns the error of ctx. A request whose client stays has another one
// beside it, and nobody waits for it.
func (r *Running) Await(ctx context.Context, owner string, keys []string) error {
	marked := r.marked(owner, keys)
	if len(marked) == 0 {
		return nil
	}
	stays, cancel := context.WithTimeout(ctx, parting)
	defer cancel()
	for _, m := range marked {
		select {
		case <-m.left:
		case <-m.over:
		case <-stays.Done():
		}
		select {
		case <-m.left:
		default:
			continue
		}
		select {
		case <-m.over:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// marked returns the requests that are marked by one of keys.
func (r *Running) marked(owner string, keys []string) (all []*turning) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.behind) == 0 {
		return nil
	}
	for _, key := range keys {
		for _, m := range r.behind[asking{owner, key}] {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}
