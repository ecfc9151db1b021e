package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// LookEvery is how often a process looks whether others have changed something, where
// nobody tells it sooner.
const LookEvery = time.Second

// topics tell those who watch that something has changed. Nothing is asked of the
// database while nobody watches.
type topics struct {
	db  *DB
	ctx context.Context // until the store is closed
	end context.CancelFunc
	all sync.WaitGroup

	hint  chan struct{} // others may have changed something
	ours  chan struct{} // we have
	mu    sync.Mutex
	watch map[string]map[chan struct{}]bool
	runs  bool
}

func newTopics(db *DB) *topics {
	ctx, end := context.WithCancel(context.Background())
	return &topics{db: db, ctx: ctx, end: end, hint: make(chan struct{}, 1), ours: make(chan struct{}, 1), watch: map[string]map[chan struct{}]bool{}}
}

// Changed returns a channel that gets a value when something of a topic may have
// changed ([Tx.Raise]), at once where this process has done it and within [LookEvery]
// where another has; changes in quick succession may be one value. The first is there at
// once: whoever watches from now on has not heard of what changed before. It ends with ctx.
func (db *DB) Changed(ctx context.Context, topic string) <-chan struct{} {
	t, changed := db.topics, make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watch[topic] == nil {
		t.watch[topic] = map[chan struct{}]bool{}
	}
	t.watch[topic][changed] = true
	if !t.runs && t.ctx.Err() == nil {
		t.runs = true
		t.all.Go(t.look) // whose first look is told to all
	} else {
		signal(changed)
	}
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if delete(t.watch[topic], changed); len(t.watch[topic]) == 0 {
			delete(t.watch, topic)
		}
		signal(t.hint) // whoever looks may stop
	})
	return changed
}

// Raised returns how often a topic was raised, by all processes.
func (tx *Tx) Raised(topic string) (n int64, err error) {
	err = tx.Row("SELECT n FROM topics WHERE name = $1", []any{topic}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// raised wakes those who watch topics that this process has raised, and tells others.
func (t *topics) raised(topics []string) {
	if len(topics) == 0 {
		return
	}
	t.wake(topics...)
	signal(t.ours)
}

func (t *topics) wake(topics ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range topics {
		for changed := range t.watch[topic] {
			signal(changed)
		}
	}
}

// look compares what the topics have now with what they had, as long as anybody
// watches. A database that was away may be another one now, a standby that has not got the last
// changes, in which later ones have their numbers again: all look.
func (t *topics) look() {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	t.all.Go(func() { t.db.on.news(ctx, t.ours, func() { signal(t.hint) }) })
	ticker := time.NewTicker(LookEvery)
	defer ticker.Stop()
	seen := map[string]int64{}
	for first := true; ; {
		if !t.wanted() {
			return
		}
		if now, err := t.numbers(ctx); err == nil {
			// What changed before the first look nobody has compared, so that all look.
			for _, topic := range t.watched() {
				if now[topic] != seen[topic] || first {
					t.wake(topic)
				}
			}
			seen, first = now, false
		} else {
			first = true
		}
		select {
		case <-ticker.C:
		case <-t.hint:
		case <-ctx.Done():
			t.wake(t.watched()...) // they find the store closed
			return
		}
	}
}

// wanted reports whether anybody watches; if not, looking has ended.
func (t *topics) wanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs = len(t.watch) > 0
	return t.runs
}

func (t *topics) watched() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.watch))
}

func (t *topics) numbers(ctx context.Context) (map[string]int64, error) {
	now := map[string]int64{}
	err := t.db.read(ctx, func(tx *Tx) error {
		return tx.Rows("SELECT name, n FROM topics", nil, func(scan func(...any) error) error {
			var name string
			var n int64
			err := scan(&name, &n)
			now[name] = n
			return err
		})
	})
	return now, err
}

func (t *topics) close() {
	t.end()
	t.all.Wait()
}
