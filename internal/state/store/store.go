// Package store keeps what must outlive the process: one SQLite file for the
// audit log, approvals and whatever else has to be there after a crash.
//
// There is one writer and there are many readers. [DB.Write] returns once what it
// did is on disk; callers that come while the disk is busy share the next
// transaction and its one sync (group commit), each behind a savepoint of its
// own, so that the failure of one undoes nothing of the others. [DB.Append] joins
// the next group without waiting for it.
//
// Several processes share the file, such as the gateway and "dragoman approve":
// write-ahead logging lets them read while one writes, and who wants to write
// waits for the other for [BusyTimeout].
//
// # SQL
//
// Statements are written once, for SQLite and PostgreSQL: parameters are $1, $2,
// …; types are TEXT, BIGINT and BYTEA; times are microseconds since 1970 in UTC.
// The few differences are in sqlite.go. Tables are made by the files in
// migrations, which are never changed once they are released: a change is a new
// file.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Limits of every store.
const (
	// BusyTimeout is how long a writer waits while another process writes.
	BusyTimeout = 10 * time.Second
	// DefaultMaxBytes bounds the file where nothing else is configured.
	DefaultMaxBytes = 16 << 30

	maxAppends = 8192 // appended functions that wait for the next group
	maxGroup   = 512  // functions in one transaction
	readers    = 4    // connections that read
)

// Errors of the store. What SQLite says stands behind them.
var (
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrNewer: the file was written by a newer version of this program.
	ErrNewer = errors.New("the file was written by a newer Dragoman")
	// ErrForeign: the file is not one of ours.
	ErrForeign = errors.New("the file is not a Dragoman store")
	// ErrBehind: more is appended than the disk takes, and the queue is full.
	ErrBehind = errors.New("the disk is too slow for what is appended")
)

// Config says where the store is.
type Config struct {
	Path     string `yaml:"path" doc:"File of the store, made where it is missing; it and its folder are for this user alone. Default: dragoman/dragoman.db in $XDG_STATE_HOME, else in ~/.local/state; on macOS and Windows in the folder for data of applications. :memory: keeps everything in memory, until the process ends."`
	MaxBytes int64  `yaml:"max_bytes" unit:"bytes" min:"1048576" doc:"Largest size of the file. When it is reached, or the disk is full, nothing more is written: tools that may change something are refused, others go on."`
}

// SetDefaults sets what is not about this machine.
func (c *Config) SetDefaults() { c.MaxBytes = DefaultMaxBytes }

// DB is an open store. It is safe for concurrent use.
type DB struct {
	path    string
	place   *place // nil in memory
	queue   *queue
	writer  *writer
	reading *sql.DB // nil where the writer's connection is the only one: in memory
	ended   chan struct{}
}

// Open opens the store, or makes it, and brings its tables up to date. ctx bounds
// the opening alone.
func Open(ctx context.Context, config Config) (*DB, error) {
	path := config.Path
	if path == "" {
		var err error
		if path, err = DefaultPath(); err != nil {
			return nil, err
		}
	}
	if path != Memory {
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("store %s: %w", path, err)
		}
	}
	db, err := open(ctx, path, config.MaxBytes)
	if cannotOpen(err) && denied(path) {
		err = errors.New("the file is another user's: be that user, such as with sudo, or name another file in store.path")
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, explained(err))
	}
	return db, nil
}

func open(ctx context.Context, path string, maxBytes int64) (*DB, error) {
	db := &DB{path: path, queue: newQueue(), ended: make(chan struct{})}
	if path != Memory {
		if err := prepareFile(path); err != nil {
			return nil, err
		}
		var err error
		if db.place, err = hold(path); err != nil {
			return nil, err
		}
	}
	var err error
	if db.writer, err = openWriter(ctx, path, maxBytes); err != nil {
		db.place.release()
		return nil, err
	}
	if path != Memory {
		if db.reading, err = openReaders(path); err != nil {
			db.writer.close()
			db.place.release()
			return nil, err
		}
	}
	go db.write()
	return db, nil
}

// Path returns the file that the store is in.
func (db *DB) Path() string { return db.path }

// Write runs fn in a transaction and returns once what it did is on disk; the
// power may fail after that. When fn fails, nothing of it is kept and Write
// returns its error. Other functions may run in the same transaction before and
// after fn, and it sees what those before it did. fn must not wait for anybody
// but the database, and must not use the DB itself.
//
// When ctx ends before fn began, it never runs. After that Write waits, so that
// nil means that it is on disk and an error that it is not, with one exception
// that no database can spare us: when the disk fails while it syncs, what was
// written may be found later all the same. Where the file was removed or replaced
// meanwhile, it is ErrGone, until it is there again.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return db.run(ctx, &job{fn: fn, ended: make(chan struct{}), sync: true})
}

// Append lets fn run in the next group's transaction, and waits for nothing. What
// it did survives the end of the process, and is on disk when the next Write is,
// or a moment later. done, which may be nil, is told what came of it, at once when
// the queue is full (ErrBehind); it must not block.
func (db *DB) Append(fn func(*Tx) error, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	if err := db.queue.add(&job{fn: fn, done: done}); err != nil {
		done(err)
	}
}

// Read runs fn on a snapshot. It neither waits for writers nor holds them up.
func (db *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	if db.reading == nil {
		return db.run(ctx, &job{fn: fn, ended: make(chan struct{})})
	}
	tx, err := db.reading.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		if errors.Is(err, sql.ErrConnDone) || db.queue.isClosed() {
			return ErrClosed
		}
		return explained(err)
	}
	defer tx.Rollback() // a reader has nothing to commit
	return fn(&Tx{ctx: ctx, on: tx})
}

// run queues j and waits for it.
func (db *DB) run(ctx context.Context, j *job) error {
	if err := db.queue.add(j); err != nil {
		return err
	}
	select {
	case <-j.ended:
	case <-ctx.Done():
		if j.withdraw() {
			return context.Cause(ctx)
		}
		<-j.ended
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

// Close writes what is queued and closes the file. Whatever is called later
// returns ErrClosed.
func (db *DB) Close() error {
	if !db.queue.close() {
		<-db.ended
		return nil
	}
	<-db.ended
	var err error
	if db.reading != nil {
		err = db.reading.Close()
	}
	err = errors.Join(err, db.writer.close())
	db.place.release()
	return err
}
