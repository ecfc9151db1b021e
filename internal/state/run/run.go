// Package run keeps what runs without anybody who waits for it, in the store: a run says
// numbered events, which any number of followers read, from any number on, in whichever
// process; and it outlives the process that has it.
//
//	held, err := runs.Begin(ctx, run.New{Owner: …, ID: …, Document: …})
//	held.Say(event)                      // numbered, on disk within [Block]
//	held.Keep(ctx, "model 1", document)  // what is not asked for again
//	held.End(ctx, "completed", nil)
//
//	for event, err := range runs.Follow(ctx, owner, id, -1) { … }
//
// One process has a run at a time, by a lease that it renews ([Runs.Watch]). Whoever takes
// a run raises its epoch, and everything that a holder writes says in its own transaction
// which epoch it knows ([Held.Fence]): a holder that was taken for dead writes nothing
// more. What a run waits for costs a row ([Held.Wait]).
//
// What a run has kept is there for whoever takes it: how it goes on from there, and what of
// it is done again, is its owner's business. See package api for responses that are made
// in the background.
package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
)

// States of a run.
const (
	Ready   = "ready"   // nobody has it, and somebody should
	Running = "running" // a process has it
	Waiting = "waiting" // it waits for somebody, and nobody has it
	Done    = "done"
)

// States are all of them.
var States = []string{Ready, Running, Waiting, Done}

// Outcomes of a run that is done.
const (
	Completed  = "completed"
	Incomplete = "incomplete"
	Failed     = "failed"
	Cancelled  = "cancelled"
)

// Errors of runs.
var (
	// ErrNone: the owner has no such run, or has it no longer.
	ErrNone = errors.New("there is no such run")
	// ErrLost: another process has the run, or nobody may have it any more.
	ErrLost = errors.New("the run is another's, or is over")
	// ErrCancelled: somebody has cancelled the run, or deleted it. It is an [ErrLost], too.
	ErrCancelled error = cancelled{}
	// ErrWaits: the run waits, and goes on later, perhaps elsewhere.
	ErrWaits = errors.New("the run waits")
	// ErrStopped: the process ends; the run goes on elsewhere, or here later.
	ErrStopped = errors.New("the process ends, and the run goes on later")
	// ErrSeveral: more than one run is called so, or begins so.
	ErrSeveral = errors.New("several runs begin so: say more of the id")
	// ErrGone: the events that are asked for are not kept any more.
	ErrGone = errors.New("the events of the run are not kept any more")
)

// Times of runs.
const (
	// DefaultLease is how long after its last sign of life a process is taken to be alive.
	DefaultLease = 15 * time.Second
	// DefaultLook is how often a process looks for runs that nobody has.
	DefaultLook = 2 * time.Second
	// Block is how long events wait for others, to be written with them.
	Block = 50 * time.Millisecond
	// maxBlock is how many bytes of events wait at most.
	maxBlock = 16 << 10
	// EventLife is how long events are kept after their run has ended.
	EventLife = time.Hour
	// maxLabel bounds the label of a run, in characters.
	maxLabel = 200
)

// Config says how runs are kept.
type Config struct {
	// Life is how long a run is kept after it was made; 30 days if zero.
	Life time.Duration
	// Lease and Look are [DefaultLease] and [DefaultLook] if zero.
	Lease, Look time.Duration
	// Patience is for how long it is tried to write what a run says and keeps while the store
	// cannot be used: as long as a database takes that fails over. Four leases if zero.
	Patience time.Duration
	// Most is how many runs this process has at a time; 64 if zero. Others are ready until
	// there is room.
	Most int
	// Woken reports, when a run begins to wait, whether what it waits for has come
	// already; nil: it has.
	Woken func(tx *store.Tx, waits string) (bool, error)
	// At is called by whoever has a run before and after it writes something down that
	// counts, with a name such as "before end", so that a test can hold it there; nil does
	// nothing.
	At func(point string)
	// Log is told what goes wrong; nil discards it.
	Log *slog.Logger
}

func (c *Config) at(point string) {
	if c.At != nil {
		c.At(point)
	}
}

// Runs are those of all owners. Make it with [Open]; it is safe for concurrent use.
type Runs struct {
	db     *store.DB
	vault  *vault.Vault
	config Config
	room   chan struct{} // gets a value when there may be room for one more

	mu      sync.Mutex
	held    map[string]*Held // by owner and id
	stopped bool
	// unseen is when the store could not be used last, or not for long.
	unseen time.Time
	clock  func() time.Time
	// draining: nothing more is taken.
	draining bool
	work     func(*Held)
	working  sync.WaitGroup
}

// Open returns the runs in db, under the keys of v.
func Open(db *store.DB, v *vault.Vault, config Config) *Runs {
	config.Life = cmp.Or(config.Life, store.DefaultRetention)
	config.Lease, config.Look = cmp.Or(config.Lease, DefaultLease), cmp.Or(config.Look, DefaultLook)
	config.Patience = cmp.Or(config.Patience, 4*config.Lease)
	config.Most = cmp.Or(config.Most, 64)
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Runs{db: db, vault: v, config: config, held: map[string]*Held{}, room: make(chan struct{}, 1), clock: time.Now}
}

// New is a run that begins.
type New struct {
	Owner, ID string
	// Label is for people.
	Label string
	// Document is what it is made of, for whoever has it.
	Document []byte
	// Events are its first ones.
	Events [][]byte
	// Also is done in the transaction that writes it down; nil for nothing.
	Also func(*store.Tx) error
}

// Begin writes a run down and returns it as held here, once it is on disk; nil where this
// process has as many as it may: then the run is ready, for whoever takes it.
func (s *Runs) Begin(ctx context.Context, n New) (*Held, error) {
	held := s.reserve(n.Owner, n.ID)
	state, node, epoch := Ready, "", int64(0)
	if held != nil {
		state, node, epoch = Running, held.node, 1
	}
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		owner, lease := store.Owner(n.Owner), int64(0)
		if held != nil {
			lease = store.Time(now.Add(s.config.Lease))
		}
		closed, err := s.vault.Close(tx, owner, "run "+n.ID, n.Document)
		if err != nil {
			return err
		}
		if _, err = tx.Exec(`INSERT INTO runs (owner, id, label, state, outcome, node, epoch, attempt, lease, waits, due, last, made, ended, content, size, expires)
			VALUES ($1, $2, $3, $4, '', $5, $6, 0, $7, '', 0, $8, $9, 0, $10, $11, $12)`,
			owner, n.ID, clip.Text(n.Label, maxLabel), state, node, epoch, lease, len(n.Events)-1, store.Time(now), closed, len(n.Document), store.Time(now.Add(s.config.Life))); err != nil {
			return err
		}
		if err := s.block(tx, owner, n.ID, 0, n.Events); err != nil {
			return err
		}
		tx.Raise(topic(n.ID))
		if held == nil {
			tx.Raise(topicReady) // another process may have room
		}
		if n.Also != nil {
			return n.Also(tx)
		}
		return nil
	})
	if err != nil {
		if held != nil {
			s.leave(held)
		}
		return nil, fmt.Errorf("a run is not begun: %w", err)
	}
	if held != nil {
		held.begin(epoch, int64(len(n.Events)), n.Document)
	}
	return held, nil
}

// block writes events down, the first of which has a number.
func (s *Runs) block(tx *store.Tx, owner, id string, first int64, events [][]byte) error {
	if len(events) == 0 {
		return nil
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	plain := bytes.Join(events, []byte("\n"))
	closed, err := s.vault.Close(tx, owner, fmt.Sprintf("events %s %d", id, first), plain)
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO run_events (owner, run, first, last, content, size, expires) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		owner, id, first, first+int64(len(events))-1, closed, len(plain), store.Time(now.Add(s.config.Life)))
	return err
}

// topic is raised when a run has said something, or its state has changed. Runs share
// topics, so that there are not ever more of them.
func topic(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("runs %02x", h.Sum32()%64)
}

// Cancel ends a run, wherever it is, unless it is done, and returns it as it is then. Also
// is done in the transaction that ends it; nil for nothing.
func (s *Runs) Cancel(ctx context.Context, owner, id string, also func(*store.Tx) error) (r Run, err error) {
	cancelled := false
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		cancelled = false
		// Its row is locked first, so that it does not end elsewhere meanwhile.
		if _, err := tx.Exec("UPDATE runs SET epoch = epoch WHERE owner = $1 AND id = $2", store.Owner(owner), id); err != nil {
			return err
		}
		if r, err = get(tx, owner, id); err != nil || r.State == Done {
			return err
		}
		if r.State == Running {
			tx.Raise(topicOver)
		}
		if cancelled = true; also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		if err := s.end(tx, store.Owner(owner), id, Cancelled); err != nil {
			return err
		}
		r, err = get(tx, owner, id)
		return err
	})
	if err == nil && cancelled {
		s.drop(owner, id, ErrCancelled)
	}
	return r, err
}

// end writes down that a run is over, whoever has it.
func (s *Runs) end(tx *store.Tx, owner, id, outcome string) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE runs SET state = 'done', outcome = $1, node = '', epoch = epoch + 1, lease = 0, waits = '', ended = $2, content = $3, size = 0 WHERE owner = $4 AND id = $5",
		outcome, store.Time(now), []byte{}, owner, id); err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE run_events SET expires = $1 WHERE owner = $2 AND run = $3", store.Time(now.Add(EventLife)), owner, id); err != nil {
		return err
	}
	_, err = tx.Exec("DELETE FROM run_steps WHERE owner = $1 AND run = $2", owner, id)
	tx.Raise(topic(id))
	return err
}

// Delete ends a run, where it is not over, and forgets all of it.
func (s *Runs) Delete(ctx context.Context, owner, id string, also func(*store.Tx) error) error {
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec("DELETE FROM runs WHERE owner = $1 AND id = $2 AND state = 'running'", store.Owner(owner), id)
		if err != nil {
			return err
		}
		if n > 0 {
			tx.Raise(topicOver)
		}
		for _, statement := range []string{"DELETE FROM runs WHERE owner = $1 AND id = $2", "DELETE FROM run_events WHERE owner = $1 AND run = $2", "DELETE FROM run_steps WHERE owner = $1 AND run = $2"} {
			if _, err := tx.Exec(statement, store.Owner(owner), id); err != nil {
				return err
			}
		}
		tx.Raise(topic(id))
		if also != nil {
			return also(tx)
		}
		return nil
	})
	if err == nil {
		s.drop(owner, id, ErrCancelled)
	}
	return err
}

// drop tells the holder in this process, where there is one, that it has the run no more.
func (s *Runs) drop(owner, id string, why error) {
	s.mu.Lock()
	held := s.held[owner+"\x00"+id]
	s.mu.Unlock()
	if held != nil {
		held.stop(why)
	}
}
