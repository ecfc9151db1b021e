// Package vault has the keys of a store. One master key, which is outside of it, wraps
// all others, which are rows: generations of the keys that seal what leaves us
// ([seal.Ring]), and a key for each owner, which content that is kept is encrypted
// under, so that it is gone, in every copy, when that row is.
//
// Losing the master key loses both: what was sealed cannot be opened, and what was kept
// cannot be read.
package vault

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// topic is raised when there is another generation of keys; its lock is for making one.
const topic = "vault"

// Ages of generations of keys that seal.
const (
	// settling is how old a generation is before it seals: every process has read it.
	settling = time.Minute
	// turning is how old the newest may become.
	turning = 30 * 24 * time.Hour
	// fading is how long one is kept after it was made: it seals until the next one has
	// settled, and what it sealed last is good for the longest life of a purpose.
	fading = turning + 31*24*time.Hour + time.Hour
	// dropping is how often keys of owners who have nothing are looked for.
	dropping = time.Hour
)

// A Vault is the keys of a store. Make it with [Open]; it is safe for concurrent use.
type Vault struct {
	db     *store.DB
	seals  wrapper // of generations
	owners wrapper // of the keys of owners
	ring   *seal.Ring
	now    func(*store.Tx) (time.Time, error)
	all    sync.Mutex // one reads generations at a time
}

// A generation is a key that seals, and when it was made.
type generation struct {
	seal.Key
	made time.Time
}

// Open finds the master key, makes the first keys where there are none, and reads them.
func Open(ctx context.Context, db *store.DB, config store.Config) (*Vault, error) {
	var wrapped int
	if err := db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row("SELECT (SELECT count(*) FROM seal_keys) + (SELECT count(*) FROM owner_keys)", nil, &wrapped)
	}); err != nil {
		return nil, err
	}
	key, err := masterOf(config, db, wrapped > 0)
	if err != nil {
		return nil, err
	}
	v := &Vault{db: db, seals: key.of("seal"), owners: key.of("owner"), ring: seal.New(), now: (*store.Tx).Now}
	return v, v.turn(ctx)
}

// Ring returns the keys that seal. They are the newest as long as [Vault.Keep] runs.
func (v *Vault) Ring() *seal.Ring { return v.ring }

// Keep makes a new generation when it is time, reads those of other processes, and
// drops those that nothing good is sealed with, and keys of owners who have nothing, until
// ctx ends. What goes wrong is given to failed; it is tried again.
func (v *Vault) Keep(ctx context.Context, failed func(error)) {
	changed := v.db.Changed(ctx, topic)
	ticker := time.NewTicker(settling / 2)
	defer ticker.Stop()
	drop := time.NewTicker(dropping)
	defer drop.Stop()
	for {
		do := v.turn
		select {
		case <-changed:
		case <-ticker.C:
		case <-drop.C:
			do = v.dropUnused
		case <-ctx.Done():
			return
		}
		if err := do(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
			failed(err)
		}
	}
}

// turn reads the generations, and makes one where that is due.
func (v *Vault) turn(ctx context.Context) error {
	v.all.Lock()
	defer v.all.Unlock()
	var all []generation
	var now time.Time
	if err := v.db.Read(ctx, func(tx *store.Tx) (err error) {
		all, now, err = v.generations(tx)
		return err
	}); err != nil {
		return err
	}
	if due(all, now) {
		if err := v.db.Write(ctx, func(tx *store.Tx) (err error) {
			all, now, err = v.make(tx)
			return err
		}); err != nil {
			return err
		}
	}
	v.ring.Set(ordered(all, now)...)
	return nil
}

// due reports whether there has to be another generation, or one too many is there.
// They come newest first.
func due(all []generation, now time.Time) bool {
	return len(all) == 0 || now.Sub(all[0].made) >= turning || now.Sub(all[len(all)-1].made) >= fading
}

// make makes a generation where that is due still, and drops what has faded.
func (v *Vault) make(tx *store.Tx) (all []generation, now time.Time, err error) {
	if err := tx.Lock(topic, "generations"); err != nil {
		return nil, now, err
	}
	if all, now, err = v.generations(tx); err != nil || !due(all, now) {
		return all, now, err
	}
	if _, err := tx.Exec("DELETE FROM seal_keys WHERE made <= $1", store.Time(now.Add(-fading))); err != nil {
		return nil, now, err
	}
	if len(all) == 0 || now.Sub(all[0].made) >= turning {
		key := seal.NewKey()
		if _, err := tx.Exec("INSERT INTO seal_keys (id, made, wrapped) VALUES ($1, $2, $3)",
			int64(key.ID), store.Time(now), v.seals.wrap(name(key.ID), key.Secret[:])); err != nil {
			return nil, now, err
		}
	}
	tx.Raise(topic)
	return v.generations(tx)
}

// generations returns those that are there, newest first, and the time.
func (v *Vault) generations(tx *store.Tx) (all []generation, now time.Time, err error) {
	if now, err = v.now(tx); err != nil {
		return nil, now, err
	}
	err = tx.Rows("SELECT id, made, wrapped FROM seal_keys ORDER BY made DESC, id", nil, func(scan func(...any) error) error {
		var id, made int64
		var wrapped []byte
		if err := scan(&id, &made, &wrapped); err != nil {
			return err
		}
		secret, err := v.seals.unwrap(name(uint32(id)), wrapped)
		all = append(all, generation{seal.Key{ID: uint32(id), Secret: secret}, store.FromTime(made)})
		return err
	})
	return all, now, err
}

// ordered returns the keys with the one that seals first: the newest that every process
// has read, or else the oldest, which all have.
func ordered(all []generation, now time.Time) []seal.Key {
	first := len(all) - 1
	for i, g := range all {
		if now.Sub(g.made) >= settling {
			first = i
			break
		}
	}
	keys := []seal.Key{all[first].Key}
	for i, g := range all {
		if i != first {
			keys = append(keys, g.Key)
		}
	}
	return keys
}

func name(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
