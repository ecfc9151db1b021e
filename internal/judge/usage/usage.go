// Package usage keeps what callers used of models and tools: how often, how long, how many
// tokens, at what price. It is written within 5 seconds, a batch in a transaction, never
// twice, and added up: by the hour for a week, and then by the day.
//
// It limits nobody: that is the business of the packages limit and budget.
package usage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Bounds of what is kept.
const (
	// writeAfter is how long something waits to be written together with more.
	writeAfter = 4 * time.Second
	// maxPending is how many sums wait at most; what would be one more is counted for
	// its caller alone.
	maxPending = 20_000
	// hourly is how long hours are kept apart.
	hourly = 7 * 24
	// DefaultRetention is how long usage is kept.
	DefaultRetention = 90 * 24 * time.Hour
)

// Config is the section usage of the configuration.
type Config struct {
	Off       bool          `yaml:"off" doc:"Keeps no usage."`
	Retention time.Duration `yaml:"retention" min:"0" doc:"How long usage is kept. 0s keeps it for ever."`
}

// A Key is what something was used of. Model is for messages of models; Server and Tool
// for calls of tools.
type Key struct{ Caller, Model, Server, Tool string }

// A Sum is how much. Cost is in millionths of the currency that prices are in.
type Sum struct {
	Calls     int64 `json:"calls"`
	Errors    int64 `json:"errors"`
	Micros    int64 `json:"microseconds"`
	Input     int64 `json:"input_tokens"`
	Output    int64 `json:"output_tokens"`
	Cached    int64 `json:"cached_tokens"`
	Reasoning int64 `json:"reasoning_tokens"`
	Repairs   int64 `json:"repairs"`
	Cuts      int64 `json:"truncated"`
	Cost      int64 `json:"cost_millionths"`
	// Times are how long calls took, of those that were counted since there are such counts.
	Times Times `json:"-"`
}

// Add adds to a sum.
func (s *Sum) Add(more Sum) {
	s.Calls, s.Errors, s.Micros = s.Calls+more.Calls, s.Errors+more.Errors, s.Micros+more.Micros
	s.Input, s.Output, s.Cached, s.Reasoning = s.Input+more.Input, s.Output+more.Output, s.Cached+more.Cached, s.Reasoning+more.Reasoning
	s.Repairs, s.Cuts, s.Cost = s.Repairs+more.Repairs, s.Cuts+more.Cuts, s.Cost+more.Cost
	s.Times.Add(more.Times)
}

// place is where a sum belongs.
type place struct {
	Key
	hour int64
}

// A Book keeps usage. A nil Book keeps nothing. Make it with [New] and end it with Close.
type Book struct {
	db  *store.DB
	log *slog.Logger

	mu      sync.Mutex
	pending map[place]Sum
	names   map[string]string          // of callers, which are not known to be written
	said    map[string]int64           // on which day since 1970 they were to be written last
	timer   *time.Timer                // runs while something is pending
	writing map[chan struct{}]struct{} // what is being written; each is closed once that is over
	closed  bool

	spending spending
}

// New returns a book in a store. A log of nil discards what goes wrong.
func New(db *store.DB, log *slog.Logger) *Book {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Book{db: db, log: log, pending: map[place]Sum{}, names: map[string]string{}, said: map[string]int64{}, writing: map[chan struct{}]struct{}{}}
}

// hour numbers the hours since 1970, in UTC.
func hour(t time.Time) int64 { return t.Unix() / 3600 }

// Add notes that something was used.
func (b *Book) Add(k Key, s Sum) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	p := place{k, hour(time.Now())}
	sum, known := b.pending[p]
	if !known && len(b.pending) >= maxPending {
		p.Model, p.Server, p.Tool = observe.Other, "", ""
		sum = b.pending[p]
	}
	sum.Add(s)
	b.pending[p] = sum
	b.spending.add(p, s, 1)
	b.soon()
}

// Named notes what rules call a caller, which is written together with what the caller
// uses, once a day: names go with the usage of their callers ([Book.Tidy]). A caller without
// a name is left alone.
func (b *Book) Named(caller, name string) {
	if b == nil || name == "" || name == caller {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	today := hour(time.Now()) / 24
	if isNew := b.spending.named(caller, name); !isNew && b.said[caller] == today || len(b.names) >= maxPending {
		return
	}
	if len(b.said) >= maxPending {
		clear(b.said)
	}
	b.names[caller], b.said[caller] = name, today
}

// soon has what is pending written within the time. mu is held.
func (b *Book) soon() {
	if b.timer == nil && len(b.pending) > 0 {
		b.timer = time.AfterFunc(writeAfter, b.flush)
	}
}

// A batch is what is written in one transaction, or not at all.
type batch struct {
	id    string
	sums  map[place]Sum
	names map[string]string
}

// flush writes what is pending.
func (b *Book) flush() {
	b.mu.Lock()
	b.timer = nil
	of := batch{rand.Text(), b.pending, map[string]string{}}
	if len(of.sums) == 0 {
		b.mu.Unlock()
		return
	}
	for p := range of.sums { // a name is written with what its caller used, and never without
		if name, ok := b.names[p.Caller]; ok {
			of.names[p.Caller] = name
			delete(b.names, p.Caller)
		}
	}
	b.pending = map[place]Sum{}
	b.spending.sent(of)
	written := b.begin()
	b.mu.Unlock()
	defer written()
	b.keep(of)
}

// begin notes that something is being written until the function is called that it
// returns. mu is held.
func (b *Book) begin() (written func()) {
	over := make(chan struct{})
	b.writing[over] = struct{}{}
	return func() {
		b.mu.Lock()
		delete(b.writing, over)
		b.mu.Unlock()
		close(over)
	}
}

// settle waits for what is being written now, and for nothing that begins meanwhile: who
// asks often, beside much that is used, comes to an end.
func (b *Book) settle() {
	b.mu.Lock()
	writing := slices.Collect(maps.Keys(b.writing))
	b.mu.Unlock()
	for _, over := range writing {
		<-over
	}
}

// keep writes a batch, and again where it cannot be, or is not known to be, written: the
// one of its id counts once.
func (b *Book) keep(of batch) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	for range 3 {
		if err = b.db.Write(ctx, of.write); err == nil || !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	if err == nil {
		return
	}
	b.log.Warn("usage could not be written down", "error", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spending.drop(of.id)
	if errors.Is(err, store.ErrUnknown) {
		b.spending.lost(of)
		return // once too few rather than twice
	}
	if b.closed || len(b.pending)+len(of.sums) > maxPending {
		b.spending.lost(of)
		return
	}
	maps.Copy(b.names, of.names)
	for p, s := range of.sums { // it is not there: later, with what came meanwhile
		sum := b.pending[p]
		sum.Add(s)
		b.pending[p] = sum
	}
	b.soon()
}

// write adds a batch to what there is.
func (of batch) write(tx *store.Tx) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	changed, err := tx.Exec("INSERT INTO usage_batches (id, at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", of.id, store.Time(now))
	if err != nil || changed == 0 {
		return err
	}
	for _, p := range ordered(of.sums) { // one order for all, so that nobody waits in a circle
		if err := add(tx, p.hour, 1, p.Key, of.sums[p]); err != nil {
			return err
		}
	}
	for _, caller := range slices.Sorted(maps.Keys(of.names)) {
		if _, err := tx.Exec("INSERT INTO usage_callers (caller, name) VALUES ($1, $2) ON CONFLICT (caller) DO UPDATE SET name = excluded.name", caller, of.names[caller]); err != nil {
			return err
		}
	}
	return nil
}

// add adds a sum to the row where it belongs.
func add(tx *store.Tx, period, hours int64, k Key, s Sum) error {
	args := []any{period, hours, k.Caller, k.Model, k.Server, k.Tool}
	for _, n := range s.numbers() {
		args = append(args, *n)
	}
	_, err := tx.Exec(addRow, args...)
	return err
}

// Once calls f where no process on the store has called it for the same words before the
// time until which that is remembered; f must not block. Where the store does not say, it
// is called: rather twice than never. Nobody waits for it but Flush.
func (b *Book) Once(words string, until time.Time, f func()) {
	b.mu.Lock()
	closed := b.closed
	var written func()
	if !closed {
		written = b.begin()
	}
	b.mu.Unlock()
	if closed {
		f()
		return
	}
	sum := sha256.Sum256([]byte(words))
	id := "once " + base64.RawURLEncoding.EncodeToString(sum[:]) // it may name somebody
	first := false
	b.db.Append(func(tx *store.Tx) error {
		n, err := tx.Exec("INSERT INTO usage_batches (id, at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", id, store.Time(until))
		first = n > 0
		return err
	}, func(err error) {
		defer written()
		if first || err != nil {
			f()
		}
	})
}

// Flush writes what is pending now.
func (b *Book) Flush() {
	if b != nil {
		b.flush()
		b.settle()
	}
}

// Close writes what is pending. What is added later is not kept.
func (b *Book) Close() {
	if b == nil {
		return
	}
	b.Flush()
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.settle() // what began between the two
}
