package run

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// A Held is a run that this process has. It is safe for concurrent use.
type Held struct {
	Owner, ID string
	// Document is what it is made of, and Attempt how often a process died with it.
	Document []byte
	Attempt  int

	runs   *Runs
	node   string
	began  atomic.Bool // what follows is known
	epoch  int64
	ctx    context.Context
	cancel context.CancelCauseFunc

	writing sync.Mutex // one block is written at a time
	mu      sync.Mutex
	said    [][]byte // events that are not on disk
	bytes   int
	next    int64 // the number of the first of them
	timer   *time.Timer
	failing time.Time // since when they cannot be written; zero where they can
}

// reserve makes room for one more run; nil where there is none, or this process has it.
func (s *Runs) reserve(owner, id string) *Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := owner + "\x00" + id
	if s.stopped || s.draining || len(s.held) >= s.config.Most || s.held[key] != nil {
		return nil
	}
	h := &Held{Owner: owner, ID: id, runs: s, node: rand.Text()}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	s.held[key] = h
	return h
}

// leave gives up a place.
func (s *Runs) leave(h *Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := h.Owner + "\x00" + h.ID; s.held[key] == h {
		delete(s.held, key)
	}
	select {
	case s.room <- struct{}{}:
	default:
	}
}

func (h *Held) begin(epoch, next int64, document []byte) {
	h.epoch, h.next, h.Document = epoch, next, document
	h.began.Store(true)
}

// Context ends when this process has the run no more, for the reason that its cause says.
func (h *Held) Context() context.Context { return h.ctx }

// stop ends the holding here. What was not written is not.
func (h *Held) stop(why error) {
	h.cancel(why)
	h.mu.Lock()
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Unlock()
	h.runs.leave(h)
}

// GiveUp ends the holding here, for a reason: the run is taken again once its lease is over.
func (h *Held) GiveUp(why error) { h.stop(why) }

// Fence is to be part of each transaction that writes down what the run does. It fails
// with [ErrLost], or [ErrCancelled], where this process has the run no more: then nothing may be done.
func (h *Held) Fence(tx *store.Tx) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	n, err := tx.Exec("UPDATE runs SET lease = $1 WHERE owner = $2 AND id = $3 AND epoch = $4 AND state = 'running'",
		store.Time(now.Add(h.runs.config.Lease)), store.Owner(h.Owner), h.ID, h.epoch)
	if err == nil && n == 0 {
		err = h.lost(tx)
	}
	return err
}

// lost says why this process has the run no more.
func (h *Held) lost(tx *store.Tx) error {
	var outcome string
	err := tx.Row("SELECT outcome FROM runs WHERE owner = $1 AND id = $2", []any{store.Owner(h.Owner), h.ID}, &outcome)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && outcome == Cancelled:
		return ErrCancelled
	case err != nil:
		return err
	}
	return ErrLost
}

// cancelled is the type of [ErrCancelled].
type cancelled struct{}

// Error implements error.
func (cancelled) Error() string { return "the run was cancelled" }

// Is makes it an [ErrLost].
func (cancelled) Is(target error) bool { return target == ErrLost }

// write runs fn in a transaction of the holder's. Whoever is told that it has the run no
// more stops.
func (h *Held) write(ctx context.Context, fn func(*store.Tx) error) error {
	if err := context.Cause(h.ctx); err != nil {
		return err
	}
	err := h.runs.db.Write(ctx, func(tx *store.Tx) error {
		if err := h.Fence(tx); err != nil {
			return err
		}
		return fn(tx)
	})
	if errors.Is(err, ErrLost) {
		h.stop(err)
	}
	return err
}

// Say adds an event, a document without line breaks. It is on disk with others soon. One
// that cannot be written for long ends the holding.
func (h *Held) Say(event []byte) {
	h.mu.Lock()
	if h.ctx.Err() != nil {
		h.mu.Unlock()
		return
	}
	event = oneLine(event)
	h.said, h.bytes = append(h.said, event), h.bytes+len(event)
	full := h.bytes >= maxBlock && h.failing.IsZero()
	if len(h.said) == 1 && !full {
		h.timer = time.AfterFunc(Block, h.flushSoon)
	}
	h.mu.Unlock()
	if full {
		h.flushSoon()
	}
}

// oneLine returns a document without line breaks, which stand between events.
func oneLine(event []byte) []byte { return bytes.ReplaceAll(event, []byte("\n"), []byte(" ")) }

// Next returns the number that the next event gets.
func (h *Held) Next() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next + int64(len(h.said))
}

func (h *Held) flushSoon() {
	if err := h.Flush(h.ctx); err != nil && h.ctx.Err() == nil && !h.flushAgain(err) {
		h.runs.config.Log.Error("what a run says cannot be written down, so it is given up here", "run", h.ID, "error", err)
		h.stop(err)
	}
}

// flushAgain has what could not be written tried again, and reports false where it is too
// late for that, or the same would be written twice.
func (h *Held) flushAgain(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.said) == 0 {
		return true // somebody else has written it meanwhile
	}
	if h.failing.IsZero() {
		h.failing = time.Now()
	}
	if errors.Is(err, store.ErrUnknown) || !h.passes(err, h.failing) {
		return false
	}
	if h.timer != nil {
		h.timer.Stop()
	}
	h.timer = time.AfterFunc(store.LookEvery, h.flushSoon)
	return true
}

// passes reports whether what could not be written since a time may be written yet.
func (h *Held) passes(err error, since time.Time) bool {
	switch {
	case errors.Is(err, ErrLost), errors.Is(err, store.ErrClosed), errors.Is(err, vault.ErrOtherKey):
		return false
	}
	return time.Since(since) < h.runs.config.Patience
}

// Flush writes down what was said.
func (h *Held) Flush(ctx context.Context) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	first, events := h.unsaid()
	if len(events) == 0 {
		return nil
	}
	if err := h.write(ctx, func(tx *store.Tx) error { return h.add(tx, first, events) }); err != nil {
		return err
	}
	h.wrote(len(events))
	return nil
}

func (h *Held) unsaid() (first int64, events [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next, h.said
}

// add writes events down as part of a transaction.
func (h *Held) add(tx *store.Tx, first int64, events [][]byte) error {
	if len(events) == 0 {
		return nil
	}
	owner := store.Owner(h.Owner)
	if err := h.runs.block(tx, owner, h.ID, first, events); err != nil {
		return err
	}
	_, err := tx.Exec("UPDATE runs SET last = $1 WHERE owner = $2 AND id = $3", first+int64(len(events))-1, owner, h.ID)
	tx.Raise(topic(h.ID))
	return err
}

// wrote forgets the first n events, which are on disk.
func (h *Held) wrote(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = h.said[n:]
	h.next += int64(n)
	h.bytes, h.failing = 0, time.Time{}
	for _, event := range h.said {
		h.bytes += len(event)
	}
	if len(h.said) > 0 {
		h.timer = time.AfterFunc(Block, h.flushSoon)
	}
}

// End writes down that the run is over, what it said, with its last events, and what also
// does, in one transaction: nobody hears of the end before it has come. This process has it
// no more then.
func (h *Held) End(ctx context.Context, outcome string, also func(*store.Tx) error, last ...[]byte) error {
	return h.over(ctx, ErrLost, last, func(tx *store.Tx) error {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		return h.runs.end(tx, store.Owner(h.Owner), h.ID, outcome)
	})
}

// Wait lets the run wait, for what its owner names, and so long at most, by the store's
// clock, which need not be this process's; for that time alone where it names nothing.
// Nobody has it then, and it costs its rows; whoever takes it later has its steps. Who
// brings what it waits for says so with [Wake]. What has come before it waits, it does not
// wait for.
func (h *Held) Wait(ctx context.Context, waits string, most time.Duration) error {
	return h.over(ctx, ErrWaits, nil, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		due := now.Add(most)
		if waits == "" {
			return h.put(tx, Waiting, "", due)
		}
		if err := tx.Lock(topicReady, waits); err != nil {
			return err
		}
		come := h.runs.config.Woken == nil
		if !come {
			if come, err = h.runs.config.Woken(tx, waits); err != nil {
				return err
			}
		}
		if come {
			return h.put(tx, Ready, "", time.Time{})
		}
		return h.put(tx, Waiting, waits, due)
	})
}

// Release gives the run back: whoever takes it goes on.
func (h *Held) Release(ctx context.Context) error {
	return h.over(ctx, ErrStopped, nil, func(tx *store.Tx) error { return h.put(tx, Ready, "", time.Time{}) })
}

func (h *Held) put(tx *store.Tx, state, waits string, due time.Time) error {
	_, err := tx.Exec("UPDATE runs SET state = $1, node = '', lease = 0, waits = $2, due = $3 WHERE owner = $4 AND id = $5", state, waits, store.Time(due), store.Owner(h.Owner), h.ID)
	tx.Raise(topic(h.ID))
	if state == Ready {
		tx.Raise(topicReady)
	}
	return err
}

// over ends the holding with a transaction, in which what was said is written down.
func (h *Held) over(ctx context.Context, why error, last [][]byte, fn func(*store.Tx) error) error {
	h.runs.config.at("before " + why.Error())
	defer h.runs.config.at("after " + why.Error())
	h.writing.Lock()
	defer h.writing.Unlock()
	first, events := h.unsaid()
	for _, event := range last {
		events = append(slices.Clip(events), oneLine(event))
	}
	err := h.write(ctx, func(tx *store.Tx) error {
		if err := h.add(tx, first, events); err != nil {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		return fmt.Errorf("what became of a run is not written down: %w", err)
	}
	h.stop(why)
	return nil
}

// Said returns the events that the run has said so far, as they are on disk.
func (h *Held) Said(ctx context.Context) ([][]byte, error) {
	return h.runs.Said(ctx, h.Owner, h.ID)
}
