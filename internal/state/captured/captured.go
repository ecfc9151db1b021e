// Package captured keeps conversations and calls that are over in the store, for people who
// look at what was done: encrypted under their owner's key, bounded in bytes for each
// caller, for a time. What is in one is the business of who keeps it.
package captured

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// Config is the section capture of the configuration.
type Config struct {
	Keep      string        `yaml:"keep" enum:"auto,on,off" doc:"Whether conversations and calls are kept in the store, with what was said in them, for the console: always, never, or where nobody is asked for a key (auto)."`
	Callers   []string      `yaml:"callers" doc:"Whose are kept, as patterns of names of keys or IDs of callers. Without any, everybody's."`
	Retention time.Duration `yaml:"retention" doc:"How long they are kept."`
	Bytes     int64         `yaml:"bytes" unit:"bytes" min:"1048576" doc:"The most that is kept of one caller; the oldest go first."`
}

// Values of Keep.
const (
	Auto = "auto"
	On   = "on"
	Off  = "off"
)

// SetDefaults gives every key its default.
func (c *Config) SetDefaults() {
	*c = Config{Keep: Auto, Retention: 7 * 24 * time.Hour, Bytes: 16 << 20}
}

// Bounds of what waits for the disk: bytes, and how many, so that records which have to be
// there find room among what is appended.
const (
	maxWaiting = 32 << 20
	maxPending = 500
)

// ErrNone: there is no such capture, or it is not theirs.
var ErrNone = errors.New("there is no such capture")

// Captures are those of all callers. Make them with [New]; they are safe for concurrent use.
type Captures struct {
	db      *store.DB
	vault   *vault.Vault
	log     *slog.Logger
	bounds  atomic.Pointer[Config]
	waiting atomic.Int64 // bytes
	pending atomic.Int64
	lost    atomic.Int64
	rooms   content.Rooms // by caller
}

// New returns the captures that are kept in db, under the keys of v. A log of nil discards
// what goes wrong.
func New(db *store.DB, v *vault.Vault, bounds Config, log *slog.Logger) *Captures {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Captures{db: db, vault: v, log: log}
	c.Use(bounds)
	return c
}

// Use makes these the bounds, for what is kept from now on.
func (c *Captures) Use(bounds Config) { c.bounds.Store(&bounds) }

// A Capture is one conversation or call.
type Capture struct {
	// ID tells it from all others: random text.
	ID string
	// Caller is the ID of whose it is, and Person who of those behind the caller, as
	// [store.Owner] has it behind the caller's ID: empty, or with a NUL at its beginning.
	Caller, Person string
	// Began is when it began.
	Began time.Time
	// Head is what a list shows of it, and Body the rest.
	Head, Body []byte
}

// Lost counts what could not be kept since the process began.
func (c *Captures) Lost() int64 { return c.lost.Load() }

// Keep keeps a capture soon; nobody waits for it. One for which there is no room is lost.
func (c *Captures) Keep(one Capture) {
	size := int64(len(one.Head) + len(one.Body))
	left := func() { c.waiting.Add(-size); c.pending.Add(-1) }
	if bytes, n := c.waiting.Add(size), c.pending.Add(1); bytes > maxWaiting || n > maxPending || size > c.bounds.Load().Bytes {
		left()
		c.missed(errFull)
		return
	}
	c.db.Append(func(tx *store.Tx) error { return c.put(tx, &one, size) }, func(err error) {
		if left(); err != nil {
			c.missed(err)
		}
	})
}

// errFull: there is no room.
var errFull = errors.New("too much waits for the store, or it is larger than what is kept of a caller")

// missed counts what could not be kept, and says so of the first and of each thousandth.
func (c *Captures) missed(err error) {
	if c.lost.Add(1)%1000 == 1 {
		c.log.Error("what was done could not be kept for the console", "error", err)
	}
}

func head(id string) string { return "capture head " + id }
func body(id string) string { return "capture " + id }

func (c *Captures) put(tx *store.Tx, one *Capture, size int64) error {
	bounds, caller, owner := c.bounds.Load(), store.Owner(one.Caller), store.Owner(one.Caller+one.Person)
	if !c.rooms.Take(caller, size) {
		if err := c.makeRoom(tx, caller, size, bounds.Bytes); err != nil {
			return err
		}
	}
	shown, err := c.vault.Close(tx, owner, head(one.ID), one.Head)
	if err != nil {
		return err
	}
	kept, err := c.vault.Close(tx, owner, body(one.ID), one.Body)
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO captures (id, owner, caller, at, size, expires, head, content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING",
		one.ID, owner, caller, store.Time(one.Began), size, store.Time(time.Now().Add(bounds.Retention)), shown, kept)
	return err
}

// makeRoom removes the oldest of a caller who would have more than most.
func (c *Captures) makeRoom(tx *store.Tx, caller string, size, most int64) error {
	if err := tx.Lock("captures", caller); err != nil {
		return err
	}
	held, err := content.Held(tx, "captures", "caller", caller)
	if err != nil {
		return err
	}
	if excess := content.Excess(held, size, most); excess > 0 {
		oldest, args, err := content.Rows{Table: "captures", Whose: "caller", First: "at", ID: "id"}.Oldest(tx, caller, excess)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM captures WHERE "+oldest, args...); err != nil {
			return err
		}
		held -= excess // at the least
	}
	c.rooms.Counted(caller, held+size, most)
	return nil
}

// List returns captures of one caller, or of all where caller is empty, the newest first:
// those that began before a time, most at once, without their bodies. What its owner's key
// does not open is not there: it was erased.
func (c *Captures) List(ctx context.Context, caller string, before time.Time, most int) (all []Capture, err error) {
	err = c.db.Read(ctx, func(tx *store.Tx) error {
		all = nil
		now, err := tx.Now()
		if err != nil {
			return err
		}
		query, args := "SELECT id, owner, caller, at, head FROM captures WHERE at < $1 AND expires > $2", []any{store.Time(before), store.Time(now)}
		if caller != "" {
			query, args = query+" AND caller = $3", append(args, store.Owner(caller))
		}
		var closed []row
		if err := tx.Rows(fmt.Sprint(query, " ORDER BY at DESC, id LIMIT ", most), args, func(scan func(...any) error) error {
			var r row
			err := scan(&r.id, &r.owner, &r.caller, &r.at, &r.closed)
			closed = append(closed, r)
			return err
		}); err != nil {
			return err
		}
		for _, r := range closed {
			one := r.capture()
			one.Head, err = c.vault.Open(tx, r.owner, head(r.id), r.closed)
			if errors.Is(err, vault.ErrErased) {
				continue
			}
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// Get returns a capture of a caller, or whosever it is where caller is empty; or [ErrNone].
func (c *Captures) Get(ctx context.Context, caller, id string) (one Capture, err error) {
	err = c.db.Read(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		query, args := "SELECT id, owner, caller, at, head, content FROM captures WHERE id = $1 AND expires > $2", []any{id, store.Time(now)}
		if caller != "" {
			query, args = query+" AND caller = $3", append(args, store.Owner(caller))
		}
		var r row
		var content []byte
		if err := tx.Row(query, args, &r.id, &r.owner, &r.caller, &r.at, &r.closed, &content); err != nil {
			return err
		}
		one = r.capture()
		if one.Head, err = c.vault.Open(tx, r.owner, head(id), r.closed); err == nil {
			one.Body, err = c.vault.Open(tx, r.owner, body(id), content)
		}
		return err
	})
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, vault.ErrErased) {
		return Capture{}, ErrNone
	}
	return one, err
}

// row is one as it stands in the table.
type row struct {
	id, owner, caller string
	at                int64
	closed            []byte
}

func (r *row) capture() Capture {
	caller := strings.Join(store.OwnerParts(r.caller), "\x00")
	return Capture{ID: r.id, Caller: caller, Person: strings.TrimPrefix(strings.Join(store.OwnerParts(r.owner), "\x00"), caller), Began: store.FromTime(r.at)}
}
