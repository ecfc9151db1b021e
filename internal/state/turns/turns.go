// Package turns keeps what clients do not see of their conversations in the store, so
// that it survives the process and is there for others: a [memory.Store] with a cache.
package turns

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// Config bounds what is kept.
type Config struct {
	Bounds
	// Log is told what cannot be read; nil for nobody.
	Log *slog.Logger
}

// Bounds are those of what is kept.
type Bounds struct {
	// Bytes is the most that is cached in all, and that is kept of one owner.
	Bytes int64
	// TTL is the time after its last use that a turn is kept.
	TTL time.Duration
}

// Turns are those of all owners. Make it with [New]; it is safe for concurrent use.
type Turns struct {
	db     *store.DB
	vault  *vault.Vault
	log    *slog.Logger
	bounds atomic.Pointer[Bounds]
	cached bounded.Map[*cached]
}

var _ memory.Store = (*Turns)(nil)

// A cached turn is found without a statement until its row has to be told that it is
// in use.
type cached struct {
	turn *memory.Turn
	tell time.Time
}

// New returns the turns that are kept in db, under the keys of v.
func New(db *store.DB, v *vault.Vault, config Config) *Turns {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	t := &Turns{db: db, vault: v, log: config.Log}
	t.Use(config.Bounds)
	return t
}

// Use makes these the bounds, for what is kept and used from now on.
func (t *Turns) Use(b Bounds) {
	t.cached.Bound(b.Bytes, b.TTL)
	t.bounds.Store(&b)
}

// remember puts a turn into the cache.
func (t *Turns) remember(owner, key string, turn *memory.Turn) {
	t.cached.Put(owner, key, &cached{turn, time.Now().Add(t.bounds.Load().TTL / 4)}, turn.Size()+int64(len(key)))
}

// Keep implements [memory.Store]. It returns once the turn is on disk; where it cannot
// be, this process has it.
func (t *Turns) Keep(ctx context.Context, owner string, keys []string, turn *memory.Turn) error {
	for _, key := range keys {
		t.remember(owner, key, turn)
	}
	document, err := turn.Encode()
	if err != nil || int64(len(document)) > t.bounds.Load().Bytes {
		return err
	}
	return t.db.Write(ctx, func(tx *store.Tx) error { return t.keep(tx, owner, keys, document) })
}

func (t *Turns) keep(tx *store.Tx, owner string, keys []string, document []byte) error {
	owner = store.Owner(owner)
	if err := tx.Lock("turns", owner); err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if err := t.makeRoom(tx, owner, now, int64(len(document))); err != nil {
		return err
	}
	id, expires := rand.Text(), store.Time(now.Add(t.bounds.Load().TTL))
	closed, err := t.vault.Close(tx, owner, place(id), document)
	if err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO turns (owner, id, content, size, expires) VALUES ($1, $2, $3, $4, $5)", owner, id, closed, len(document), expires); err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := tx.Exec(`INSERT INTO turn_keys (owner, digest, turn, expires) VALUES ($1, $2, $3, $4)
			ON CONFLICT (owner, digest) DO UPDATE SET turn = excluded.turn, expires = excluded.expires`, owner, digest(key), id, expires); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes what has expired, and what was used longest ago, of an owner
// who would have more than it may.
func (t *Turns) makeRoom(tx *store.Tx, owner string, now time.Time, size int64) error {
	for _, table := range []string{"turns", "turn_keys"} {
		if _, err := tx.Exec("DELETE FROM "+table+" WHERE owner = $1 AND expires <= $2", owner, store.Time(now)); err != nil {
			return err
		}
	}
	var held int64
	if err := tx.Row("SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM turns WHERE owner = $1", []any{owner}, &held); err != nil {
		return err
	}
	for held+size > t.bounds.Load().Bytes {
		var id string
		var freed int64
		if err := tx.Row("SELECT id, size FROM turns WHERE owner = $1 ORDER BY expires, id LIMIT 1", []any{owner}, &id, &freed); err != nil {
			return err
		}
		if err := remove(tx, owner, id); err != nil {
			return err
		}
		held -= freed
	}
	return nil
}

func remove(tx *store.Tx, owner, id string) error {
	_, err := tx.Exec("DELETE FROM turns WHERE owner = $1 AND id = $2", owner, id)
	if err == nil {
		_, err = tx.Exec("DELETE FROM turn_keys WHERE owner = $1 AND turn = $2", owner, id)
	}
	return err
}

// Find implements [memory.Store]. What is cached costs no statement. What cannot be
// read is not there, and that is said in the log: conversations go on.
func (t *Turns) Find(ctx context.Context, owner string, keys []string) (map[string]*memory.Turn, error) {
	found := map[string]*memory.Turn{}
	var missing, used []string
	for _, key := range keys {
		switch c, ok := t.cached.Get(owner, key); {
		case !ok:
			missing = append(missing, key)
		case time.Now().After(c.tell):
			used = append(used, key)
			fallthrough
		default:
			found[key] = c.turn
		}
	}
	if len(missing) > 0 {
		read := map[string]*memory.Turn{}
		err := t.db.Read(ctx, func(tx *store.Tx) error {
			clear(read)
			return t.read(tx, owner, missing, read)
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			t.log.Error("what is remembered of a conversation cannot be read", "error", err)
			clear(read)
		}
		for key, turn := range read {
			found[key] = turn
			used = append(used, key)
		}
	}
	for _, key := range used {
		t.remember(owner, key, found[key])
	}
	t.use(owner, used)
	return found, nil
}

// read reads the turns that stand under keys. What its owner's key does not open is not
// there: it was erased.
func (t *Turns) read(tx *store.Tx, owner string, keys []string, into map[string]*memory.Turn) error {
	owner = store.Owner(owner)
	now, err := tx.Now()
	if err != nil {
		return err
	}
	for _, key := range keys {
		var id string
		var closed []byte
		err := tx.Row(`SELECT t.id, t.content FROM turn_keys k JOIN turns t ON t.owner = k.owner AND t.id = k.turn
			WHERE k.owner = $1 AND k.digest = $2 AND t.expires > $3`, []any{owner, digest(key), store.Time(now)}, &id, &closed)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		document, err := t.vault.Open(tx, owner, place(id), closed)
		if errors.Is(err, vault.ErrErased) {
			continue
		}
		if err != nil {
			return err
		}
		if into[key], err = memory.Decode(document); err != nil {
			return err
		}
	}
	return nil
}

// use lets what is in use live as long again. Nobody waits for it.
func (t *Turns) use(owner string, keys []string) {
	if len(keys) == 0 {
		return
	}
	owner = store.Owner(owner)
	t.db.Append(func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		expires := store.Time(now.Add(t.bounds.Load().TTL))
		for _, key := range keys {
			if _, err := tx.Exec("UPDATE turns SET expires = $1 WHERE owner = $2 AND id = (SELECT turn FROM turn_keys WHERE owner = $2 AND digest = $3)", expires, owner, digest(key)); err != nil {
				return err
			}
			if _, err := tx.Exec("UPDATE turn_keys SET expires = $1 WHERE owner = $2 AND digest = $3", expires, owner, digest(key)); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}

// Drop implements [memory.Store]. Nothing is written where nothing is there.
func (t *Turns) Drop(ctx context.Context, owner, key string) error {
	t.cached.Delete(owner, key)
	owner = store.Owner(owner)
	var there bool
	err := t.db.Read(ctx, func(tx *store.Tx) error {
		return tx.Row("SELECT EXISTS (SELECT 1 FROM turn_keys WHERE owner = $1 AND digest = $2)", []any{owner, digest(key)}, &there)
	})
	if err != nil && ctx.Err() == nil {
		t.log.Error("what is remembered of a conversation cannot be read", "error", err)
		return nil
	}
	if err != nil || !there {
		return err
	}
	return t.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM turn_keys WHERE owner = $1 AND digest = $2", owner, digest(key))
		return err
	})
}

// Forget empties the cache: somebody was erased.
func (t *Turns) Forget() { t.cached.Clear() }

// Any implements [memory.Store]: another process may have kept something.
func (t *Turns) Any(context.Context, string) bool { return true }

// place is what a turn's content is bound to.
func place(id string) string { return "turn " + id }

// digest is what a key is stored as: it may hold words of its owner.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
