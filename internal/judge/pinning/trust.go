// Package pinning keeps the book of what was approved of servers, as it was defined
// then: a tool whose definition is not the approved one (a "rug pull"), or that nobody
// approved, is held until somebody has looked at it. So are a server's prompts, its
// skills and its instructions, which models read as they read the tools.
//
// # What is trusted
//
// In the mode [pin.First] a server is trusted on first use: what it lists within
// [Learning] of the first time that it lists anything is approved as it is first
// seen, but for definitions that are poisoned by the look of them (rules X001 and
// X002 of package lint; of instructions X023). What changes, or joins the server later,
// waits. In the mode [pin.Explicit] everything waits. A server that a lock file names is
// judged by that file, in both modes, as far as the file says something of that kind:
// see package pin. What a person approves is approved in every mode.
//
// A definition is approved whole, with every field that it has. One that means the
// same (see [pin.Changes]) keeps its approval. Approvals are for the server that a
// label means: where the configuration gives the label to another one, all that it has
// waits.
//
// A server always has instructions, be it the empty text, which is never held: so the
// book has something of each server's texts from the first time on, and those that come
// later are a change.
//
// # The book
//
// All of it is in the store, with the definitions themselves, so that a person can
// be shown what changed: what is approved and what waits, each once for a name. What
// servers can make us keep is bounded. Several processes share the book: a gateway
// sees within a second what "dragoman pins" changes.
package pinning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Config says how servers are pinned.
type Config struct {
	Mode pin.Mode `yaml:"mode" enum:"auto,off,first,explicit" doc:"When a tool, prompt or skill, or the instructions of a server, are trusted. first: as the server first lists them; what changes or joins later is hidden until somebody approves it. explicit: when somebody has approved it, or the lock has it. off: always. auto: first where the store is open in any case (there are rules, keys or limits, or store.path is set), else off."`
	Lock string   `yaml:"lock" doc:"A file of pins, as dragoman lint --write-lock and dragoman pins lock write it. Of a server that it names only what it has, or what a person approved, is trusted; prompts, skills or instructions of which it says nothing are judged by the mode. It is read again when it changes. A relative path starts at the folder of the configuration file."`
}

// Learning is how long first use lasts: some servers list their tools bit by bit, or
// each caller's when that caller comes.
const Learning = time.Hour

// Bounds of what is kept of one server: definitions, and bytes of them. What
// goes beyond is held and not kept.
const (
	MaxApproved      = 5_000
	MaxApprovedBytes = 64 << 20
	MaxWaiting       = 2_000
	MaxWaitingBytes  = 16 << 20
)

// Errors of the book.
var (
	// ErrNotWaiting: no such definition waits for approval.
	ErrNotWaiting = errors.New("it does not wait for approval")
	// ErrChanged: another definition waits than the one that was looked at.
	ErrChanged = errors.New("its definition has changed since it was shown; look again")
	// ErrUnknown: nothing is known by that name.
	ErrUnknown = errors.New("nothing is pinned by that name")
)

// What happened to a pin.
type What string

// All that can happen. It stands in the audit log.
const (
	FirstUse  What = "first use" // trusted as it was first seen
	Locked    What = "locked"    // the lock file has it
	Held      What = "waits"     // seen, and held until somebody approves it
	Approved  What = "approved"  // by a person
	Forgotten What = "forgotten" // by a person
)

// An Event is something that happened to a pin.
type Event struct {
	Server string
	pin.Key
	Pin  pin.Digest
	What What
	// By is the person, where it was one, and Why the reason for which it waits.
	By, Why string
}

// Book is the book of what is approved. Make it with [New]; it is safe for concurrent
// use. A nil *Book trusts everything.
type Book struct {
	db     *store.DB
	mode   pin.Mode
	lock   *lockFile
	record func(*store.Tx, Event) error
	log    *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	seen    int64                // of pin_changes
	changed chan struct{}        // closed when something else may be approved
	unsure  time.Time            // when the store failed while somebody was judged; zero: it does not
	judged  map[string]*verdicts // by server, since then
}

// New returns the book in db. record, which may be nil, writes down what happens, in
// the transaction in which it does. A lock file that cannot be read is an error.
func New(db *store.DB, config Config, record func(*store.Tx, Event) error, log *slog.Logger) (*Book, error) {
	if record == nil {
		record = func(*store.Tx, Event) error { return nil }
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	mode := config.Mode
	if mode == "" || mode == pin.Auto {
		mode = pin.First
	}
	b := &Book{
		db: db, mode: mode, record: record, log: log, now: time.Now,
		changed: make(chan struct{}), judged: map[string]*verdicts{},
	}
	if config.Lock != "" {
		var err error
		if b.lock, err = openLock(config.Lock); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Pins reports whether a server with that mode of its own is pinned.
func (b *Book) Pins(own pin.Mode) bool { return b != nil && own.Or(b.mode) != pin.Off }

// Changed returns a channel that is closed when something else may be approved than
// before. Whoever judged a server before judges it again then. It is nil, and so never
// closed, for a nil Book.
func (b *Book) Changed() <-chan struct{} {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// move says that something else may be approved now. mu is held.
func (b *Book) move() {
	b.judged = map[string]*verdicts{}
	close(b.changed)
	b.changed = make(chan struct{})
}

// lookEvery is how often a gateway looks whether another process, or the lock file,
// has changed what is approved; and tryEvery how often servers are judged again where
// the store failed.
const (
	lookEvery = time.Second
	tryEvery  = 10 * time.Second
)

// Watch sees what others change, until ctx ends.
func (b *Book) Watch(ctx context.Context) {
	if b == nil {
		return
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		b.look(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look looks once. What was trusted while the store cannot be read stays so; the next
// look finds out.
func (b *Book) look(ctx context.Context) {
	relocked, err := b.lock.refresh()
	if err != nil {
		b.log.Error("the lock of pins cannot be read, so what it said before holds", "error", err)
	}
	n, err := b.changes(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	again := !b.unsure.IsZero() && b.now().Sub(b.unsure) >= tryEvery
	if relocked || err == nil && (n != b.seen || again) {
		if err == nil {
			b.seen = n
		}
		b.move()
	}
}

// List returns what is approved, what waits and what has passed, of one server or,
// where the label is empty, of all, sorted by server, kind and name.
func (b *Book) List(ctx context.Context, server string) (all []Pin, err error) {
	err = b.db.Read(ctx, func(tx *store.Tx) error {
		all, err = list(tx, server)
		return err
	})
	return all, err
}

// Approve approves the definition that waits under a key, if it is the one with that
// digest: the one that whoever approves was shown.
func (b *Book) Approve(ctx context.Context, server string, key pin.Key, digest pin.Digest, by string) error {
	return b.change(ctx, server, func(tx *store.Tx) error {
		waiting, err := get(tx, server, key, Waiting)
		switch {
		case errors.Is(err, ErrUnknown):
			return fmt.Errorf("%s/%s: %w", server, key, ErrNotWaiting)
		case err != nil:
			return err
		case waiting.Pin != digest:
			return fmt.Errorf("%s/%s: %w", server, key, ErrChanged)
		}
		waiting.State, waiting.Reason, waiting.By, waiting.At = Standing, ByPerson, by, b.now()
		if err := put(tx, &waiting); err != nil {
			return err
		}
		if err := remove(tx, server, key, Waiting, Passed); err != nil {
			return err
		}
		return b.record(tx, Event{Server: server, Key: key, Pin: digest, What: Approved, By: by})
	})
}

// Forget drops what is known under a key, or, where that is zero, of a server, as if
// it had never been seen. It returns how many definitions were approved.
func (b *Book) Forget(ctx context.Context, server string, key pin.Key, by string) (approved int, err error) {
	if server == "" {
		return 0, ErrUnknown
	}
	err = b.change(ctx, server, func(tx *store.Tx) error {
		all, err := list(tx, server)
		if err != nil {
			return err
		}
		found := false
		approved = 0
		for _, p := range all {
			if key != (pin.Key{}) && p.Key != key {
				continue
			}
			found = true
			if err := remove(tx, server, p.Key, p.State); err != nil {
				return err
			}
			if p.State != Standing || p.None() {
				continue
			}
			approved++
			if err := b.record(tx, Event{Server: server, Key: p.Key, Pin: p.Pin, What: Forgotten, By: by}); err != nil {
				return err
			}
		}
		if !found {
			return ErrUnknown
		}
		return nil
	})
	return approved, err
}

// topic is that of what is known of servers; its locks are their labels.
const topic = "pins"

// change runs a change of a server's that a person makes, and counts it.
func (b *Book) change(ctx context.Context, server string, fn func(*store.Tx) error) error {
	var n int64
	err := b.db.Write(ctx, func(tx *store.Tx) (err error) {
		if err = tx.Lock(topic, server); err != nil {
			return err
		}
		if n, err = count(tx); err != nil {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = n
	b.move()
	return nil
}
