// Package nodes knows which processes serve on a store: the replicas of a gateway. Each
// has a row, and says every few seconds that it lives, by the database's clock. There is no
// leader, and none of them does anything for another but to remove rows of the dead.
//
// A single gateway on a file needs none of it and joins nothing: a nil [Node] is one that
// is alone.
package nodes

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Times of a node.
const (
	// Every is how often a node says that it lives.
	Every = 3 * time.Second
	// Lease is how long it is taken to live after it said so.
	Lease = 15 * time.Second
	// Skew is by how much two clocks may differ before that is said.
	Skew = 5 * time.Second

	shown = 10 * time.Minute // how long people see one that is dead
)

// Info is what a node says of itself.
type Info struct {
	// Version is its program's.
	Version string
	// Setup is a digest of the configuration in effect: nodes of one gateway have one.
	Setup string
	// Address is where it listens, for people; it may be empty.
	Address string
}

// A Node is this process among those that serve on a store. Make it with [Join]; it is safe
// for concurrent use, and nil is a process that is alone.
type Node struct {
	db     *store.DB
	number int64
	info   atomic.Pointer[Info]
	alive  atomic.Int64 // how many live, itself included, as it saw last
	ahead  atomic.Int64 // how far this machine's clock was before the database's; a time.Duration
	left   atomic.Bool

	mu     sync.Mutex
	said   time.Time // when it said last that it lives, by the database's clock
	began  time.Time // when it began to say so; zero while it does not
	missed time.Time // when it could not last, or not for long
	before time.Time // said, as it was then

	clock func() time.Time
	now   func(*store.Tx) (time.Time, error)
}

// Join makes this process a node of a store. It lives for [Lease], and on as long as
// [Node.Keep] runs.
func Join(ctx context.Context, db *store.DB, info Info) (*Node, error) {
	return join(ctx, db, info, (*store.Tx).Now)
}

func join(ctx context.Context, db *store.DB, info Info, now func(*store.Tx) (time.Time, error)) (*Node, error) {
	n := &Node{db: db, clock: time.Now, now: now}
	n.info.Store(&info)
	began := n.clock()
	err := db.Write(ctx, func(tx *store.Tx) (err error) {
		if _, err := tx.Exec("INSERT INTO node_numbers (id, last) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET last = node_numbers.last + 1"); err != nil {
			return err
		}
		if err := tx.Row("SELECT last FROM node_numbers WHERE id = 1", nil, &n.number); err != nil {
			return err
		}
		n.said, err = n.beat(tx, began)
		return err
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ID names the node: n and a number that no other node of the store has, had, or will have.
// It is empty for a process that is alone.
func (n *Node) ID() string {
	if n == nil {
		return ""
	}
	return id(n.number)
}

func id(number int64) string { return "n" + strconv.FormatInt(number, 10) }

// Count returns how many nodes live, this one included, as it saw when it last said that it
// lives itself. It asks nobody, and is never less than one.
func (n *Node) Count() int {
	if n == nil {
		return 1
	}
	return int(max(1, n.alive.Load()))
}

// Ahead returns how far this machine's clock is before the database's, as it was when the node
// last said that it lives; it is negative behind it. Less than what that took is not seen.
func (n *Node) Ahead() time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(n.ahead.Load())
}

// Use says that another configuration is in effect, from the next beat on.
func (n *Node) Use(setup string) {
	if n != nil {
		info := *n.info.Load()
		info.Setup = setup
		n.info.Store(&info)
	}
}

// Listens says where the node listens, from the next beat on.
func (n *Node) Listens(address string) {
	if n != nil {
		info := *n.info.Load()
		info.Address = address
		n.info.Store(&info)
	}
}

// Keep says that the node lives until ctx ends. Where that cannot be said, it says so to log
// once, and tries again: others take the node for dead meanwhile, and it is back with the
// next beat, under its name.
func (n *Node) Keep(ctx context.Context, log *slog.Logger) {
	if n == nil {
		return
	}
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	said, wrong := false, false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := n.Beat(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrClosed):
		case err != nil && !said:
			log.Warn("other replicas may take this one for dead: it cannot write to the store", "node", n.ID(), "error", err)
		case err == nil && said:
			log.Info("other replicas know this one again", "node", n.ID())
		}
		said = err != nil
		if err == nil {
			wrong = n.tellClock(log, wrong)
		}
	}
}

// tellClock says to log that this machine's clock differs from the database's by more than
// [Skew], and that it does no more, once each. It reports whether it differs.
func (n *Node) tellClock(log *slog.Logger, said bool) bool {
	ahead := n.Ahead()
	wrong := ahead.Abs() > Skew
	switch {
	case wrong && !said:
		log.Warn("the clock of this machine is not the database's, so that access tokens, and what else names a time, may end early or late here: set it by NTP", "node", n.ID(), "ahead", ahead.Round(time.Millisecond))
	case !wrong && said:
		log.Info("the clock of this machine is the database's again", "node", n.ID())
	}
	return wrong
}

// Beat says once that the node lives.
func (n *Node) Beat(ctx context.Context) error {
	began := n.clock()
	n.mu.Lock()
	n.began = began
	n.mu.Unlock()
	var now time.Time
	err := n.db.Write(ctx, func(tx *store.Tx) (err error) {
		if n.left.Load() {
			return nil
		}
		now, err = n.beat(tx, began)
		return err
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.began = (time.Time{}); err != nil && ctx.Err() == nil || n.stalls(began) {
		n.missed, n.before = time.Now(), n.said
	}
	if err == nil {
		n.said = now
	}
	return err
}

// stalls reports whether what began then has taken so long that leases may have ended
// meanwhile: a database that stands still fails nothing.
func (n *Node) stalls(began time.Time) bool { return n.clock().Sub(began) > Lease-2*Every }

// beat writes the node's row, removes those that are long dead, counts the living, and
// returns the time. began is when it was asked for that.
func (n *Node) beat(tx *store.Tx, began time.Time) (now time.Time, err error) {
	if now, err = n.now(tx); err != nil {
		return now, err
	}
	off := apart(now, began, n.clock())
	n.ahead.Store(int64(off))
	ahead := off.Microseconds()
	info := n.info.Load()
	known, err := tx.Exec("UPDATE nodes SET version = $2, setup = $3, address = $4, beat = $5, lease = $6, ahead = $7 WHERE number = $1",
		n.number, info.Version, info.Setup, info.Address, store.Time(now), store.Time(now.Add(Lease)), ahead)
	if err == nil && known == 0 {
		err = n.enter(tx, info, now, ahead)
	}
	if err != nil {
		return now, err
	}
	var alive, dead int64
	if err := tx.Row("SELECT coalesce(sum(CASE WHEN lease > $1 THEN 1 ELSE 0 END), 0), coalesce(sum(CASE WHEN lease <= $2 THEN 1 ELSE 0 END), 0) FROM nodes",
		[]any{store.Time(now), store.Time(now.Add(-shown))}, &alive, &dead); err != nil {
		return now, err
	}
	n.alive.Store(alive)
	if dead > 0 {
		_, err = tx.Exec("DELETE FROM nodes WHERE lease <= $1", store.Time(now.Add(-shown)))
	}
	return now, err
}

// apart returns how far a clock is, at least, before one that was asked for its time between
// two moments of the first: what the answer was late by is nobody's clock.
func apart(said, began, ended time.Time) time.Duration {
	switch {
	case said.Before(began):
		return began.Sub(said)
	case said.After(ended):
		return ended.Sub(said)
	}
	return 0
}

// enter makes the node's row. Where the database has lost the last of what was written, on a
// standby that took over or in a backup, it may have lost that the number was given, too:
// nobody else gets it.
func (n *Node) enter(tx *store.Tx, info *Info, now time.Time, ahead int64) error {
	if _, err := tx.Exec("INSERT INTO node_numbers (id, last) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET last = excluded.last WHERE node_numbers.last < excluded.last", n.number); err != nil {
		return err
	}
	_, err := tx.Exec("INSERT INTO nodes (number, version, setup, address, began, beat, lease, ahead) VALUES ($1, $2, $3, $4, $5, $5, $6, $7)",
		n.number, info.Version, info.Setup, info.Address, store.Time(now), store.Time(now.Add(Lease)), ahead)
	return err
}

// Leave removes the node's row: others know at once that it is gone, and it says nothing
// more.
func (n *Node) Leave(ctx context.Context) error {
	if n == nil || n.left.Swap(true) {
		return nil
	}
	return n.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM nodes WHERE number = $1", n.number)
		return err
	})
}

// Alive reports whether another node of this id lives. Where this one could not write to the
// store a while ago, or had to wait for it for long, others may not have been able to say that
// they live either: those that lived before are given the time of a lease.
func (n *Node) Alive(tx *store.Tx, id string) (bool, error) {
	n.mu.Lock()
	before, grace := n.before, time.Since(n.missed) < Lease
	if !n.began.IsZero() && n.stalls(n.began) {
		before, grace = n.said, true
	}
	n.mu.Unlock()
	digits, ok := strings.CutPrefix(id, "n")
	number, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return false, nil
	}
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	var lease int64
	err = tx.Row("SELECT lease FROM nodes WHERE number = $1", []any{number}, &lease)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && (lease > store.Time(now) || grace && lease > store.Time(before)), err
}

// A Standing is how a node stands.
type Standing struct {
	ID string `json:"id"`
	Info
	Began time.Time `json:"began"`
	// Silent is how long ago it last said that it lives, and Alive whether it is taken to.
	Silent time.Duration `json:"silent"`
	Alive  bool          `json:"alive"`
	// Ahead is how far its clock is before the database's; it is negative behind it.
	Ahead time.Duration `json:"ahead"`
}

// Skewed reports whether its clock differs from the database's by more than [Skew].
func (s *Standing) Skewed() bool { return s.Ahead.Abs() > Skew }

// List returns the nodes, those that died a short while ago included, in the order in which
// they came.
func List(tx *store.Tx) (all []Standing, err error) {
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	err = tx.Rows("SELECT number, version, setup, address, began, beat, lease, ahead FROM nodes ORDER BY number", nil, func(scan func(...any) error) error {
		var s Standing
		var number, began, beat, lease, ahead int64
		err := scan(&number, &s.Version, &s.Setup, &s.Address, &began, &beat, &lease, &ahead)
		s.ID, s.Began, s.Silent = id(number), store.FromTime(began), max(0, now.Sub(store.FromTime(beat)))
		s.Alive, s.Ahead = lease > store.Time(now), time.Duration(ahead)*time.Microsecond
		all = append(all, s)
		return err
	})
	return all, err
}
