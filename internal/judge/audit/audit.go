// Package audit is the log of who did what: one record for every decision, one
// before each call that may change something, and one for what came of each call.
//
// Each start of a process writes a log of its own, which nobody else writes, so that
// replicas wait for nobody. Its records form a chain: each holds the hash of the one
// before, so that nobody can change, remove, insert or reorder one without changing all
// that follow, and [Log.Verify] names the first that does not fit. Logs name each other:
// each begins with the heads that no other log names yet, and says every minute how far
// the others have come ([Log.Witness]), and an intent names the record of its approval,
// whichever log that is in. So nobody takes a log away, or cuts one off, unnoticed.
// Whoever can write to the store can of course write all of it anew; that is found by
// keeping a head elsewhere from time to time ([Log.Head], and the log of the gateway,
// which says it when it starts and stops).
//
// [Log.Intent] returns once the record is on disk. When it fails, the call must
// not run. [Log.Append] is for everything else: it waits for nothing, and what it
// cannot write is counted, said, and recorded as a gap as soon as writing works
// again.
//
// This package only writes down what it is told. internal/reach/sandbox decides.
package audit

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
)

// What is kept of arguments.
const (
	None   = "none"
	Digest = "digest"
	Full   = "full"
)

// maxWaiting bounds the arguments, in bytes, of records that wait for the disk
// without anybody waiting for them.
const maxWaiting = 32 << 20

// Config says what is written down.
type Config struct {
	Arguments string        `yaml:"arguments" enum:"none,digest,full" doc:"What is kept of a call's arguments: nothing, the SHA-256 of their canonical form, or the arguments with it. They may hold what is nobody's business."`
	Retention time.Duration `yaml:"retention" doc:"How long records are kept, such as 2160h for 90 days. The chain stays verifiable: the hash of the last one that was removed is recorded."`
	Off       bool          `yaml:"off" doc:"Whether nothing is written down at all."`
}

// SetDefaults keeps digests, for 90 days.
func (c *Config) SetDefaults() {
	*c = Config{Arguments: Digest, Retention: 90 * 24 * time.Hour}
}

// Log is the audit log. Make it with [New]; it is safe for concurrent use.
type Log struct {
	db     *store.DB
	config atomic.Pointer[Config]
	log    *slog.Logger
	now    func() time.Time
	step   int64 // records that are removed at a time

	name          string // of this process's log
	node, version string // of the process; set before anything is written

	witnessing sync.Mutex
	seen       map[string]uint64 // through which record of other logs their heads are named

	lost    atomic.Uint64 // records that are not in the log and not in a gap yet
	waiting atomic.Int64  // bytes of records that nobody waits for

	mu       sync.Mutex
	failures uint64
	last     error
	said     time.Time // when the last failure was logged
}

// New returns a new log in db. A log of nil discards what went wrong.
func New(db *store.DB, config Config, log *slog.Logger) *Log {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Log{db: db, log: log, now: time.Now, step: defaultStep, name: strings.ToLower(rand.Text()[:nameLength])}
	l.Use(config)
	return l
}

// Of says which replica writes the log, empty for a process that is none, and its
// program's version. It is for the time before anything is written.
func (l *Log) Of(node, version string) { l.node, l.version = node, version }

// Use makes this the configuration, for records that are written from now on, and for how
// long all are kept.
func (l *Log) Use(config Config) {
	if config.Arguments == "" {
		config.Arguments = Digest
	}
	l.config.Store(&config)
}

// Intent writes r, and runs also in the same transaction, before r is written. It
// returns once all of it is on disk: then the call may run. An error means that
// nothing of it was kept, and that the call must not run; an error of also comes
// back as it is. Where the log is off, also runs all the same.
func (l *Log) Intent(ctx context.Context, r Record, also ...func(*store.Tx) error) error {
	if l.config.Load().Off && len(also) == 0 {
		return nil
	}
	l.prepare(&r)
	var refused bool // by also
	gap := l.lost.Swap(0)
	err := l.db.Write(ctx, func(tx *store.Tx) error {
		refused = false
		for _, fn := range also {
			if err := fn(tx); err != nil {
				refused = true
				return err
			}
		}
		if l.config.Load().Off {
			return nil
		}
		return l.add(tx, r, gap)
	})
	l.settle(gap, err)
	if err != nil && !refused && ctx.Err() == nil {
		l.failed(err)
	}
	return err
}

// Behind returns [store.ErrBusy] where an intent would have to wait for long.
func (l *Log) Behind() error { return l.db.Behind() }

// Append writes r soon, and waits for nothing. What cannot be written is counted
// and said in the log.
func (l *Log) Append(r Record) {
	if l.config.Load().Off {
		return
	}
	l.prepare(&r)
	size := int64(len(r.Arguments) + 1024)
	if l.waiting.Add(size) > maxWaiting {
		l.waiting.Add(-size)
		l.lost.Add(1)
		l.failed(store.ErrBehind)
		return
	}
	gap := l.lost.Swap(0)
	l.db.Append(func(tx *store.Tx) error { return l.add(tx, r, gap) }, func(err error) {
		l.waiting.Add(-size)
		l.settle(gap, err)
		if err != nil {
			l.lost.Add(1)
			l.failed(err)
		}
	})
}

// Tx returns a function that writes r in a transaction of somebody else's, for a
// change that must not happen without its record, and returns where it stands: the zero
// Head where the log is off.
func (l *Log) Tx(r Record) func(*store.Tx) (Head, error) {
	l.prepare(&r)
	return func(tx *store.Tx) (Head, error) {
		if l.config.Load().Off {
			return Head{}, nil
		}
		return l.insert(tx, r)
	}
}

// prepare sets what the log sets, and drops what it must not keep.
func (l *Log) prepare(r *Record) {
	if r.Time.IsZero() {
		r.Time = l.now()
	}
	r.Time = r.Time.UTC().Truncate(time.Microsecond)
	defer r.tidy()
	if l.config.Load().Arguments == None || l.config.Load().Off {
		r.Digest, r.Arguments = Hash{}, nil
		return
	}
	form := r.Arguments
	if len(form) > 0 && (r.Digest == Hash{} || l.config.Load().Arguments == Full) {
		canonicalForm, err := canonical.JSON(form)
		if err != nil { // kept as text: the log has to take what was sent
			canonicalForm = quoted(form)
		}
		form = canonicalForm
		if r.Digest == (Hash{}) {
			r.Digest = sum(form)
		}
	}
	if r.Arguments = nil; l.config.Load().Arguments == Full {
		r.Arguments = form
	}
}

// add writes how many records were lost before, and r.
func (l *Log) add(tx *store.Tx, r Record, gap uint64) error {
	if gap > 0 {
		if _, err := l.insert(tx, Record{Kind: Gap, Time: r.Time, Count: gap}); err != nil {
			return err
		}
	}
	_, err := l.insert(tx, r)
	return err
}

// settle takes a gap back that did not reach the disk, and says when all is well
// again.
func (l *Log) settle(gap uint64, err error) {
	switch {
	case err != nil:
		l.lost.Add(gap)
	case gap > 0:
		l.mu.Lock()
		l.said = time.Time{}
		l.mu.Unlock()
		l.log.Warn("the audit log can be written again; a record says how many are missing", "missing", gap)
	}
}

// failed counts and says what could not be written, at most once a minute.
func (l *Log) failed(err error) {
	l.mu.Lock()
	l.failures++
	l.last = err
	now := l.now()
	say := l.said.IsZero() || now.Sub(l.said) >= time.Minute
	if say {
		l.said = now
	}
	failures := l.failures
	l.mu.Unlock()
	if say {
		l.log.Error("the audit log cannot be written: tools that may change something are refused until it can", "error", err, "failures", failures, "missing", l.lost.Load())
	}
}

// Failures returns how often writing failed since the start, and the last reason.
func (l *Log) Failures() (n uint64, last error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures, l.last
}
