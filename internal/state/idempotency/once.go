// Package idempotency answers a request that is sent again with the answer of the first
// one, so that what may change something runs once. The client says by a key which
// requests are one: the header Idempotency-Key of
// draft-ietf-httpapi-idempotency-key-header-07.
//
// Who sends a request again while the first one runs gets its answer as it comes,
// from the beginning. The first client may go meanwhile: the request ends when
// nobody is left. Answers are kept in the store where there is one ([Claims]), so that
// they are those of all processes; else in memory, and end with the process.
package idempotency

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Errors of [Requests.Serve], which has answered nothing then.
var (
	// ErrOther means that the key belongs to another request of the same owner (422
	// in section 2.7 of the draft).
	ErrOther = errors.New("the key was used for another request")
	// ErrLarge means that the request runs and its answer has outgrown what is kept.
	ErrLarge = errors.New("the answer to the first request is too large to be given again")
	// ErrRunning means that another process runs the request, and goes on to.
	ErrRunning = errors.New("another process runs the request")
)

// Config says how many answers are kept, and for how long.
type Config struct {
	Bytes int64         `yaml:"bytes" unit:"bytes" doc:"Total size of the answers that are kept. When there is no room for one more, the oldest go; a request that may have changed something is not run again then, but refused."`
	TTL   time.Duration `yaml:"ttl" doc:"Time after its last use that an answer is kept."`
}

// SetDefaults gives every field its default.
func (c *Config) SetDefaults() { *c = Config{Bytes: 64 << 20, TTL: 24 * time.Hour} }

// maxAnswer is what is kept of one answer, in bytes. A larger one is passed on and not
// kept.
const maxAnswer = 4 << 20

// leastMarks is what there is for marks at the least, in bytes: some ten thousand of
// them.
const leastMarks = 8 << 20

// A Key says which requests are one.
type Key struct {
	// Owner is whom the request belongs to. Nobody else reaches its answer.
	Owner string
	// Apart tells those apart who are one owner; empty where nothing does.
	Apart string
	// Name is what the client says.
	Name string
	// Print is a digest of what has to be equal in both requests.
	Print [32]byte
}

// A Run is one request while it runs, as its handler sees it.
type Run struct {
	// Again reports that the request has run before, that it may have changed
	// something, and that its answer is lost.
	Again bool
	// Changed is to be set once the request may have changed something.
	Changed bool
	// Answered is to be set when the answer is complete and is the one to be given
	// again. One with an error status is never kept.
	Answered bool
	// Claim is to be part of each transaction that writes down what the request is about
	// to change; nil where nothing has to be. It fails with [ErrRunning] where another
	// process was quicker: then nothing may be changed, and the request ends. Unless its answer
	// has begun by then, what it says is dropped, and the other's answer is given.
	Claim func(*store.Tx) error
	// Held is [ErrRunning] where the process was taken for dead, and another one has taken the
	// request's place: what that keeps of it counts. Another error says that the store does not
	// tell. It asks the store only where this process has not been heard of for long enough. Nil:
	// no other process can take it.
	Held func(context.Context) error
	// Hold claims the request once it is known which it is: see [Requests.Later]. It is nil
	// where there is nothing to claim any more.
	Hold func(context.Context, Key) error
}

// A Handler answers a request.
type Handler func(http.ResponseWriter, *http.Request, *Run)

// Requests are the requests that have a key. Make it with [New].
type Requests struct {
	mu      sync.Mutex
	flights map[string]*flight // those that run, by owner and name
	answers bounded.Map[*answer]
	marks   bounded.Map[[32]byte] // prints of those that changed something and have no answer
	claims  *Claims               // in place of answers and marks; nil where they are here
	log     *slog.Logger
}

// New returns Requests that keep answers as config says: in claims, or, where that is
// nil, in memory. A log of nil discards what goes wrong.
func New(config Config, claims *Claims, log *slog.Logger) *Requests {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Requests{claims: claims, log: log, flights: map[string]*flight{}}
	s.Use(config)
	return s
}

// Use makes this the configuration. Where it has less room, the oldest answers go.
func (s *Requests) Use(config Config) {
	if s.claims != nil {
		s.claims.config.Store(&config)
	}
	s.answers.Bound(config.Bytes, config.TTL)
	s.marks.Bound(max(config.Bytes/4, leastMarks), config.TTL)
}

// An answer is one that is kept.
type answer struct {
	print  [32]byte
	status int
	header http.Header
	body   []byte
}

// Serve answers a request with the answer of the first one that had the same key,
// or else lets handler answer it. Nothing may be read of the request's body in
// handler but what is in memory.
func (s *Requests) Serve(w http.ResponseWriter, r *http.Request, key Key, handler Handler) error {
	for {
		f, first, err := s.join(w, r, key, handler)
		switch {
		case errors.Is(err, errFailed):
		case f == nil || err != nil:
			return err
		case f.follow(w, r, first):
			if r.Context().Err() != nil {
				return nil
			}
			return f.refusal()
		}
		// That one ends without an answer to be given again: it failed, or everybody
		// had left it.
		select {
		case <-f.done:
		case <-r.Context().Done():
			return nil
		}
	}
}

// join returns the flight of a request, which begins here where there is none; nil
// where the request is answered or refused already.
func (s *Requests) join(w http.ResponseWriter, r *http.Request, key Key, handler Handler) (f *flight, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := key.id()
	if f := s.flights[id]; f != nil {
		if f.print != key.Print {
			return nil, false, ErrOther
		}
		return f, false, f.enter()
	}
	mark, again := s.marks.Get(key.owner(), key.Name)
	if again && mark != key.Print {
		return nil, false, ErrOther
	}
	if a, ok := s.answers.Get(key.owner(), key.Name); ok {
		if a.print != key.Print {
			return nil, false, ErrOther
		}
		s.mu.Unlock()
		defer s.mu.Lock()
		begin(w, a.status, a.header, true)
		_, _ = w.Write(a.body)
		return nil, false, nil
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	f = newFlight(key.Print, ctx, cancel)
	s.flights[id] = f
	go s.fly(f, key, r.WithContext(ctx), &Run{Again: again}, handler)
	return f, true, nil
}

// fly runs a request and keeps what became of it.
func (s *Requests) fly(f *flight, key Key, r *http.Request, run *Run, handler Handler) {
	defer f.cancel(nil)
	keep := s.keep
	f.land(func() {
		if s.claims != nil {
			if keep = s.claimed(f, key, run); keep == nil {
				return
			}
		}
		handler(f, r, run)
		if f.beaten() {
			s.give(f, key)
		}
	})
	a := f.answer()
	if a != nil && (!run.Answered || a.status >= 400) {
		a = nil
	}
	if keep != nil {
		keep(key, run, a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flights, key.id())
	f.end()
}

// keep keeps an answer here; nil is none that is to be given again.
func (s *Requests) keep(key Key, run *Run, a *answer) {
	if a != nil {
		s.answers.Put(key.owner(), key.Name, a, int64(len(a.body))+headerSize(a.header))
	}
	// The mark outlives the answer, which others may push out.
	if run.Changed || run.Again {
		s.marks.Put(key.owner(), key.Name, key.Print, int64(len(key.owner())+len(key.Name)))
	}
}

// claimed looks what is written down of a request, and returns how what becomes of it is
// kept; nil where it is answered, or refused, by what is written down.
func (s *Requests) claimed(f *flight, key Key, run *Run) func(Key, *Run, *answer) {
	found, _, err := s.claims.await(f.ctx, key)
	switch {
	case err != nil:
		f.refuse(err)
		return nil
	case found != nil && found.print != key.print():
		f.refuse(ErrOther)
		return nil
	case found != nil && found.answer != nil:
		s.replay(f, key, found.answer)
		return nil
	}
	run.Again = found != nil
	h := s.claims.begin(key, run.Again)
	heard := func(err error) error {
		f.beat(errors.Is(err, ErrRunning))
		return err
	}
	run.Held = func(ctx context.Context) error { return heard(h.held(ctx)) }
	run.Claim = func(tx *store.Tx) error { return heard(h.claim(tx)) }
	end := s.live(f.ctx, h)
	return func(_ Key, run *Run, a *answer) {
		end(func(ctx context.Context) error { return h.end(ctx, a, run.Changed) })
	}
}

// live tells others that a request still runs, until end is called with how to write down what
// became of it.
func (s *Requests) live(ctx context.Context, h *holding) (end func(write func(context.Context) error)) {
	ctx = context.WithoutCancel(ctx)
	alive, stop := context.WithCancel(ctx)
	var living sync.WaitGroup
	living.Go(func() { h.live(alive) })
	return func(write func(context.Context) error) {
		stop()
		living.Wait()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		defer s.claims.here.Delete(h.id)
		if err := write(ctx); err != nil {
			s.log.Error("what became of a request that is claimed was not written down", "error", err)
		}
	}
}

// Hold claims a key for a request that comes with none, and whose handler knows by itself what
// the one before it did. It waits for one that runs: a while where that is elsewhere, then it is
// [ErrRunning]. Of one that came to its end nothing is known here; one that died, and may have
// changed something, is told in run until a request after it is answered, which knew what that
// did. The print of the key does not count. While the store cannot be used nobody is waited for:
// what only reads may run, and what changes something has to be claimed there first.
func (s *Requests) Hold(ctx context.Context, key Key, run *Run) (end func(), err error) {
	end = s.Later(run)
	if run.Hold != nil {
		err = run.Hold(ctx, key)
	}
	return end, err
}

// Later is [Requests.Hold] for a request of which all has to be read before its key is known:
// its handler calls run.Hold then. Nothing is claimed before.
func (s *Requests) Later(run *Run) (end func()) {
	if s.claims == nil {
		return func() {}
	}
	var h *holding
	var let func(write func(context.Context) error)
	run.Hold = func(ctx context.Context, key Key) error {
		found, over, err := s.claims.await(ctx, key)
		if err != nil && (errors.Is(err, ErrRunning) || ctx.Err() != nil) {
			return err
		}
		run.Again, run.Hold = found != nil, nil
		h = s.claims.begin(key, run.Again)
		h.over.Store(over)
		run.Held = h.held
		let = s.live(ctx, h)
		return nil
	}
	run.Claim = func(tx *store.Tx) error {
		if h == nil {
			return nil
		}
		return h.claim(tx)
	}
	return func() {
		if h != nil {
			let(func(ctx context.Context) error { return h.release(ctx, run.Again && !run.Answered) })
		}
	}
}

// give waits for the answer of another process that was quicker, and gives that; where none
// comes in time, or none that is to be given again, it is [ErrRunning].
func (s *Requests) give(f *flight, key Key) {
	found, _, err := s.claims.await(f.ctx, key)
	if err != nil || found == nil || found.print != key.print() || found.answer == nil {
		f.refuse(cmp.Or(err, ErrRunning))
		return
	}
	f.beat(false)
	clear(f.header)
	s.replay(f, key, found.answer)
}

func (s *Requests) replay(f *flight, key Key, a *answer) {
	s.claims.used(key)
	begin(f, a.status, a.header, true)
	_, _ = f.Write(a.body)
}

// id tells one request from others, and owner whose it is among all who are told apart.
func (k Key) id() string    { return k.owner() + "\x00" + k.Name }
func (k Key) owner() string { return k.Owner + "\x00" + k.Apart }

func headerSize(h http.Header) (size int64) {
	for name, values := range h {
		size += int64(len(name))
		for _, v := range values {
			size += int64(len(v))
		}
	}
	return size
}

// Replayed is a header of answers that were given before, as other APIs have it.
const Replayed = "Idempotent-Replayed"

func begin(w http.ResponseWriter, status int, header http.Header, again bool) {
	maps.Copy(w.Header(), header.Clone())
	if again {
		w.Header().Set(Replayed, "true")
	}
	w.WriteHeader(status)
}
