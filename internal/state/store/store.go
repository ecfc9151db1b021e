// Package store keeps what must outlive the process, in a SQLite file or in a
// PostgreSQL database: the audit log, approvals and whatever else has to be there
// after a crash.
//
// There is one writer in a process and there are many readers. [DB.Write] returns
// once what it did is on disk; callers that come while the disk is busy share the
// next transaction and its one sync (group commit), and the failure of one undoes
// nothing of the others. [DB.Append] joins the next group without waiting for it.
//
// Several processes share the store, such as the gateway and "dragoman approve", or
// replicas: one that reads is not held up by one that writes. Who wants to write to a
// file waits for another process for [BusyTimeout]. On PostgreSQL they write side by
// side, so that a function that reads and then writes begins with [Tx.Lock].
//
// # SQL
//
// Statements are written once, for SQLite and PostgreSQL: parameters are $1, $2,
// …; types are TEXT, BIGINT and BYTEA; times are microseconds since 1970 in UTC, and
// now is [Tx.Now]. The few differences are in sqlite.go and postgres.go. Tables are
// made by the files in migrations, which are never changed once they are released: a
// change is a new file.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Limits of every store.
const (
	// BusyTimeout is how long a writer waits while another process writes.
	BusyTimeout = 10 * time.Second
	// DefaultMaxBytes bounds the file where nothing else is configured.
	DefaultMaxBytes = 16 << 30
	// DefaultRetention is how long stored responses are kept, as OpenAI keeps them.
	DefaultRetention = 30 * 24 * time.Hour

	maxAppends = 8192 // appended functions that wait for the next group
	maxGroup   = 512  // functions in one transaction
)

// Errors of the store. What SQLite says stands behind them.
var (
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrNewer: the file was written by a newer version of this program.
	ErrNewer = errors.New("the file was written by a newer Dragoman")
	// ErrForeign: the file, or the database, is not one of ours.
	ErrForeign = errors.New("the file is not a Dragoman store")
	// ErrUnknown: the database was told to commit and did not answer, nor when it was
	// asked again. What was written may be there or not.
	ErrUnknown = errors.New("whether it was written is not known: the database did not answer")
	// ErrBehind: more is appended than the disk takes, and the queue is full.
	ErrBehind = errors.New("the disk is too slow for what is appended")
)

// Config says where the store is.
type Config struct {
	Path      string        `yaml:"path" doc:"File of the store, made where it is missing; it and its folder are for this user alone. Default: dragoman/dragoman.db in $XDG_STATE_HOME, else in ~/.local/state; on macOS and Windows in the folder for data of applications. :memory: keeps everything in memory, until the process ends."`
	MaxBytes  int64         `yaml:"max_bytes" unit:"bytes" min:"1048576" doc:"Largest size of the file. When it is reached, or the disk is full, nothing more is written: tools that may change something are refused, others go on."`
	URL       secret.Text   `yaml:"url" doc:"A PostgreSQL database in place of the file, such as postgres://dragoman@db.example/dragoman?sslmode=verify-full: one that several gateways share, of version 14 or later."`
	ListenURL secret.Text   `yaml:"listen_url" doc:"The same database past a pooler, for the one connection of each process that hears at once what others change. Without it behind a pooler, each looks once a second."`
	KeyFile   string        `yaml:"key_file" doc:"File with the master key, 32 random bytes in base64: without it, nothing that is sealed or encrypted in the store can be read. Default: beside the file of the store, with .key after its name, made at first use. With url this or key is needed, the same for all gateways that share it."`
	Key       secret.Text   `yaml:"key" doc:"The master key itself, from a variable."`
	Retention time.Duration `yaml:"retention" doc:"How long responses that clients have stored are kept after they were made."`
	Quota     Quota         `yaml:"quota" doc:"How much may be stored. Who has reached it stores nothing more (429, quota_exceeded) until something is deleted or has expired."`
	Pooler    string        `yaml:"pooler" enum:"none,transaction" doc:"What stands between us and PostgreSQL: transaction for one that gives each transaction another connection, such as PgBouncer's pool_mode=transaction."`
}

// Quota bounds what is stored, counted once a minute.
type Quota struct {
	Owner int64 `yaml:"owner" unit:"bytes" min:"0" doc:"Size of all that one owner has: a key, and, of what is remembered of conversations, a person where requests name one. 0 is without end."`
	Total int64 `yaml:"total" unit:"bytes" min:"0" doc:"Size of all that all owners have. 0 is without end."`
}

// SetDefaults sets what is not about this machine.
func (c *Config) SetDefaults() {
	c.MaxBytes, c.Pooler = DefaultMaxBytes, PoolerNone
	c.Retention, c.Quota = DefaultRetention, Quota{Owner: 1 << 30, Total: 10 << 30}
}

// What may stand between us and PostgreSQL.
const (
	PoolerNone        = "none"
	PoolerTransaction = "transaction"
)

// Validate refuses settings that exclude each other.
func (c *Config) Validate() error {
	switch {
	case c.URL.IsZero() && !c.ListenURL.IsZero():
		return errors.New("listen_url is for a PostgreSQL database, and url names none")
	case !c.URL.IsZero() && c.Path != "":
		return errors.New("path and url name two stores; leave out one of them")
	case !c.Key.IsZero() && c.KeyFile != "":
		return errors.New("key and key_file name two master keys; leave out one of them")
	}
	return nil
}

// A database is what a store is in.
type database interface {
	// group runs jobs in one transaction, as far as that is possible, and says in each
	// what came of it. An error is one of all those that have none.
	group(jobs []*job) error
	// most is how many jobs a group may have.
	most() int
	// read runs fn on a snapshot; errNoReaders says that only the writer can.
	read(ctx context.Context, fn func(*Tx) error) error
	// overwrite runs a job alone and sees to it that what it removed is gone from the
	// files as well.
	overwrite(j *job) error
	// backup writes a copy of all of it to a file that is empty.
	backup(ctx context.Context, file string) error
	// fill runs fn in one transaction, however long it takes.
	fill(ctx context.Context, fn func(*Tx) error) error
	// size is how many bytes it takes.
	size(ctx context.Context) (int64, error)
	// statements is how many were run for functions.
	statements() int64
	// close ends all connections. Nothing runs any more.
	close() error
	// name says to people which store it is, without secrets.
	name() string
	// news tells others that something has changed, and calls look when others may
	// have changed something, until ctx ends. It returns at once where nobody can say so.
	news(ctx context.Context, changed <-chan struct{}, look func())
}

var errNoReaders = errors.New("no readers")

// DB is an open store. It is safe for concurrent use.
type DB struct {
	queue  *queue
	on     database
	ended  chan struct{}
	topics *topics
	health health
	tell   atomic.Pointer[func(kind string, took time.Duration)] // nil for nobody
	waited atomic.Uint64
}

// Waited returns how many functions were given to [DB.Read] and [DB.Write] so far: what
// requests have waited for.
func (db *DB) Waited() uint64 { return db.waited.Load() }

// Open opens the store, or makes it, and brings its tables up to date. ctx bounds
// the opening alone.
func Open(ctx context.Context, config Config) (*DB, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	var on database
	var err error
	if config.URL.IsZero() {
		on, err = openFile(ctx, config)
	} else {
		on, err = openPostgres(ctx, config)
	}
	if err != nil {
		return nil, err
	}
	db := &DB{queue: newQueue(on.most()), on: on, ended: make(chan struct{})}
	db.topics = newTopics(db)
	go db.write()
	return db, nil
}

// String names the store to people: its file, or its database without the password.
func (db *DB) String() string { return db.on.name() }

// Statements returns how many statements functions have run here since the store was opened.
func (db *DB) Statements() int64 { return db.on.statements() }

// Write runs fn in a transaction and returns once what it did is on disk; the
// power may fail after that. When fn fails, nothing of it is kept and Write
// returns its error. Other functions may run in the same transaction before and
// after fn, and it sees what those before it did. fn must not wait for anybody
// but the database, and must not use the DB itself. It may run several times, and
// only what the last one did counts: it changes nothing but the database and what it
// sets anew each time.
//
// When ctx ends before fn began, it never runs. After that Write waits, so that
// nil means that it is on disk and an error that it is not, with two exceptions
// that no database can spare us: when the disk fails while it syncs, what was
// written may be found later all the same; and [ErrUnknown]. Where the file was removed
// or replaced meanwhile, it is [ErrGone], until it is there again.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	db.waited.Add(1)
	return db.timed("write", func() error {
		return db.run(ctx, &job{fn: fn, ended: make(chan struct{}), sync: true})
	})
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
	db.waited.Add(1)
	return db.read(ctx, fn)
}

func (db *DB) read(ctx context.Context, fn func(*Tx) error) error {
	if db.queue.isClosed() {
		return ErrClosed
	}
	err := db.timed("read", func() error { return db.on.read(ctx, fn) })
	if ctx.Err() == nil {
		db.health.read(err)
	}
	switch {
	case errors.Is(err, errNoReaders):
		return db.run(ctx, &job{fn: fn, ended: make(chan struct{})})
	case err != nil && errors.Is(err, sql.ErrConnDone), err != nil && db.queue.isClosed() && isClosedPool(err):
		return ErrClosed
	}
	return err
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

// Close writes what is queued and closes the store. Whatever is called later
// returns ErrClosed.
func (db *DB) Close() error {
	if !db.queue.close() {
		<-db.ended
		return nil
	}
	<-db.ended
	db.topics.close()
	return db.on.close()
}

// write runs groups until the queue is closed and empty.
func (db *DB) write() {
	defer close(db.ended)
	for {
		jobs := db.queue.next()
		if len(jobs) == 0 {
			return
		}
		if j := jobs[0]; j.alone != nil {
			j.err = explained(j.alone())
		} else if err := db.on.group(jobs); err != nil {
			for _, j := range jobs {
				if j.err == nil {
					j.err = explained(err)
				}
			}
		}
		db.queue.idle()
		var raised []string
		for _, j := range jobs {
			db.health.came(j.err)
			if j.err == nil {
				raised = append(raised, j.raised...)
			}
			j.finish()
		}
		db.topics.raised(raised)
	}
}

// isClosedPool reports whether an error is one of a pool that was closed meanwhile.
func isClosedPool(err error) bool { return err.Error() == "sql: database is closed" }
