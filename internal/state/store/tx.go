package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Tx is a transaction, for the function that it is given to and no longer.
type Tx struct {
	// ctx is here, and not in every method, because a Tx lives no longer than one
	// call of Read or Write. That of a writer never ends with a caller: a group is not
	// given up halfway because one of them left.
	ctx  context.Context
	on   querier
	prep func(string) (*sql.Stmt, error) // nil where nobody prepares
	// locks takes a lock until the transaction ends; nil where there is one writer.
	locks func(key int64) error
	held  map[int64]bool
	clock string // the query for the database's time; empty where it is ours
	// schema is the query for the columns of all tables.
	schema string
	now    time.Time // zero until somebody asks

	count  *atomic.Int64 // of statements
	raised []string      // topics
	noted  noted         // by the functions before, and by this one
	undo   []note        // what this function noted over
	// mark makes a savepoint; nil where nothing is undone alone. marked says that the
	// function has one: what changes nothing needs none.
	mark   func() error
	marked bool
	// found is what [Tx.Once] has found; nil where something may change.
	found map[any]any
	// wrote says that a function has changed something, or tried to; broken is the
	// first statement that failed, after which PostgreSQL does nothing more.
	wrote  bool
	broken error
}

// Lock lets nobody else who locks the same go on until this transaction has ended, in
// whichever process. A function that reads and then writes what it found begins with
// it, and names all keys of a topic at once. The audit log's comes last, since every
// change ends with its record. In a file there is one writer, and nothing to do.
func (tx *Tx) Lock(topic string, keys ...string) error {
	if tx.locks == nil {
		return nil
	}
	numbers := make([]int64, len(keys))
	for i, key := range keys {
		numbers[i] = lockNumber(topic, key)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		if tx.held[number] {
			continue
		}
		if err := tx.failed(tx.locks(number)); err != nil {
			return explained(err)
		}
		if tx.held == nil {
			tx.held = map[int64]bool{}
		}
		tx.held[number] = true
	}
	return nil
}

// lockNumber is what a lock is called at PostgreSQL, where all programs that share a
// database share its advisory locks.
func lockNumber(topic, key string) int64 {
	sum := sha256.Sum256([]byte("dragoman lock\x00" + topic + "\x00" + key))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Now returns the time at the database, in UTC and in microseconds: the same for all
// of a transaction, and for all processes that share the store.
func (tx *Tx) Now() (time.Time, error) {
	if !tx.now.IsZero() {
		return tx.now, nil
	}
	if tx.clock == "" {
		tx.now = time.Now().UTC().Truncate(time.Microsecond)
		return tx.now, nil
	}
	var now int64
	if err := tx.Row(tx.clock, nil, &now); err != nil {
		return time.Time{}, err
	}
	tx.now = FromTime(now)
	return tx.now, nil
}

// Raise says that something of a topic has changed, once this transaction has ended
// well: whoever watches it with [DB.Changed] looks again, in whichever process.
func (tx *Tx) Raise(topic string) {
	tx.wrote = true
	if !slices.Contains(tx.raised, topic) {
		tx.raised = append(tx.raised, topic)
	}
}

// noted is what functions leave for those that come after them in the same transaction.
type noted struct {
	known map[string]any
	last  map[string]func(*Tx) error
}

// A note is what stood under a key.
type note struct {
	key   string
	value any
	last  func(*Tx) error // nil where there was nothing
}

// unnote takes back what this function has noted.
func (tx *Tx) unnote() {
	for _, n := range slices.Backward(tx.undo) {
		if n.last == nil {
			delete(tx.noted.known, n.key)
			delete(tx.noted.last, n.key)
			continue
		}
		tx.noted.known[n.key], tx.noted.last[n.key] = n.value, n.last
	}
	tx.undo = tx.undo[:0]
}

// Known returns what a function before has noted under a key in this transaction with
// [Tx.Note]; nil where none has, or what it did was undone.
func (tx *Tx) Known(key string) any { return tx.noted.known[key] }

// Note lets functions that come later in this transaction know something, and has last run
// once, as the transaction's last thing: what many of them change a row to is read once
// and written once.
func (tx *Tx) Note(key string, value any, last func(*Tx) error) {
	if tx.noted.known == nil {
		tx.noted = noted{map[string]any{}, map[string]func(*Tx) error{}}
	}
	tx.undo = append(tx.undo, note{key, tx.noted.known[key], tx.noted.last[key]})
	tx.noted.known[key], tx.noted.last[key] = value, last
	tx.wrote = true
}

// finish does what was left for the end of the transaction.
func (tx *Tx) finish(topics []string) error {
	tx.mark = nil // it is everybody's
	for _, key := range slices.Sorted(maps.Keys(tx.noted.last)) {
		if err := tx.noted.last[key](tx); err != nil {
			return err
		}
	}
	return tx.raise(topics)
}

// raise writes down what was raised, in one order for all, as the last thing of a
// transaction.
func (tx *Tx) raise(topics []string) error {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	for _, topic := range topics {
		if _, err := tx.Exec("INSERT INTO topics (name, n) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = topics.n + 1", topic); err != nil {
			return err
		}
	}
	return nil
}

// failed notes that a statement failed.
func (tx *Tx) failed(err error) error {
	if err != nil && tx.broken == nil && !errors.Is(err, sql.ErrNoRows) {
		tx.broken = err
	}
	return err
}

type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (changed int64, err error) {
	tx.wrote = true
	result, err := tx.exec(query, args)
	if tx.failed(err) != nil {
		return 0, explained(err)
	}
	return result.RowsAffected()
}

// changes makes the savepoint of a function that is about to change something.
func (tx *Tx) changes() error {
	if tx.mark == nil || tx.marked {
		return nil
	}
	err := tx.mark()
	tx.marked = err == nil
	return err
}

// reads reports whether a query changes nothing.
func reads(query string) bool { return strings.HasPrefix(query, "SELECT ") }

func (tx *Tx) exec(query string, args []any) (sql.Result, error) {
	tx.count.Add(1)
	if err := tx.changes(); err != nil {
		return nil, err
	}
	if tx.prep == nil {
		return tx.on.ExecContext(tx.ctx, query, args...)
	}
	stmt, err := tx.prep(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(tx.ctx, args...)
}

// Row runs a query and scans its one row into dest. It returns [sql.ErrNoRows]
// when there is none. Where ctx has ended it does not begin; in a file it is not interrupted,
// since watching ctx costs more than finding a row does.
func (tx *Tx) Row(query string, args []any, dest ...any) error {
	tx.count.Add(1)
	if !reads(query) {
		if err := tx.changes(); err != nil {
			return explained(tx.failed(err))
		}
	}
	if tx.prep == nil {
		return explained(tx.failed(tx.on.QueryRowContext(tx.ctx, query, args...).Scan(dest...)))
	}
	if err := context.Cause(tx.ctx); err != nil {
		return tx.failed(err)
	}
	stmt, err := tx.prep(query)
	if err != nil {
		return explained(tx.failed(err))
	}
	return explained(tx.failed(stmt.QueryRowContext(context.Background(), args...).Scan(dest...)))
}

// Rows runs a query and calls each for every row, until it returns an error.
func (tx *Tx) Rows(query string, args []any, each func(scan func(dest ...any) error) error) (err error) {
	tx.count.Add(1)
	if !reads(query) {
		if err := tx.changes(); tx.failed(err) != nil {
			return explained(err)
		}
	}
	rows, err := tx.on.QueryContext(tx.ctx, query, args...)
	if tx.failed(err) != nil {
		return explained(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return explained(tx.failed(rows.Err()))
}

// Once returns what find does, which runs once for each key in a transaction that reads,
// where all stays as it is. In one that writes it runs each time.
func (tx *Tx) Once(key any, find func() (any, error)) (any, error) {
	if found, ok := tx.found[key]; ok {
		return found, nil
	}
	found, err := find()
	if err == nil && tx.found != nil {
		tx.found[key] = found
	}
	return found, err
}

// Time returns a time as it is stored: microseconds since 1970. The zero time is
// stored as 0.
func Time(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromTime returns the time that [Time] stored, in UTC.
func FromTime(stored int64) time.Time {
	if stored == 0 {
		return time.Time{}
	}
	return time.UnixMicro(stored).UTC()
}
