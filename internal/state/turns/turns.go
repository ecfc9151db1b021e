// Package turns keeps what clients do not see of their conversations in the store, so
// that it survives the process and is there for others: a [memory.Store] with a cache.
package turns

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// Config bounds what is kept.
type Config struct {
	Bounds
	// Log is told what cannot be read; nil for nobody.
	Log *slog.Logger
	// Single says that no replica keeps turns in the same store: other processes do so for
	// an upgrade at most. Then what is not there is asked for once.
	Single bool
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
	rooms  content.Rooms
	cached bounded.Map[*cached]
	// none are owners that have nothing; nil while nobody would say when they have. It is
	// replaced when one of them may have: what was read before goes with the old one.
	none atomic.Pointer[bounded.Map[struct{}]]

	others *others // nil where there may be replicas
	known  known
}

// topic is raised when an owner has its first turn.
const topic = "turns"

// noneBytes bounds what is known of owners that have nothing.
const noneBytes = 8 << 20

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
	t.known.owners.Bytes, t.known.owners.Age = knownBytes, knownFor
	if config.Single {
		t.others = &others{db: db, changed: t.known.owners.Clear}
	}
	t.Use(config.Bounds)
	return t
}

// Use makes these the bounds, for what is kept and used from now on.
func (t *Turns) Use(b Bounds) {
	t.cached.Bound(b.Bytes, b.TTL)
	t.bounds.Store(&b)
}

// kind is what turns are in the store.
func (t *Turns) kind() *content.Kind {
	b := t.bounds.Load()
	return &content.Kind{Name: "turn", Keyed: true, Life: b.TTL, Bytes: b.Bytes, Vault: t.vault, Rooms: &t.rooms}
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
	t.known.add(owner, keys)
	defer t.known.add(owner, keys)
	id := rand.Text()
	err = t.db.Write(ctx, func(tx *store.Tx) error {
		there, err := t.kind().Any(tx, owner)
		if err != nil {
			return err
		}
		if !there {
			tx.Raise(topic)
		}
		return t.kind().Put(tx, owner, id, document, keys...)
	})
	if none := t.none.Load(); none != nil {
		none.Delete(owner, "") // the topic says so a moment later
	}
	return err
}

// keys returns the keys under which the owner may have turns, which one request reads where
// they are not known; nil where they are not.
func (t *Turns) keys(ctx context.Context, owner string) *ownKeys {
	if t.others == nil || !t.others.alone.Load() {
		return nil
	}
	own := t.known.own(owner) // what is kept from here on is added to it
	switch whole, read := own.begin(); {
	case whole:
		return own
	case !read:
		return nil
	}
	var prints []uint64
	err := t.db.Read(ctx, func(tx *store.Tx) (err error) {
		prints, err = t.kind().Prints(tx, owner, mostKnown+1)
		return err
	})
	if err == nil {
		t.known.grew(owner, own, own.add(prints))
	}
	if !own.end(err == nil) {
		return nil
	}
	return own
}

// Find implements [memory.Store]. What is cached costs no statement, but for turns that another
// process may have gone on with. What cannot be read is not there, and that is said in the log:
// conversations go on.
func (t *Turns) Find(ctx context.Context, owner string, keys []string) (map[string]*memory.Turn, error) {
	found := map[string]*memory.Turn{}
	var missing, used []string
	alone := t.others != nil && t.others.alone.Load()
	for _, key := range keys {
		switch c, ok := t.cached.Get(owner, key); {
		case !ok:
			missing = append(missing, key)
		case !alone && c.turn.GoesOn(): // maybe elsewhere; what is here counts where the store has nothing
			missing, found[key] = append(missing, key), c.turn
		case time.Now().After(c.tell):
			used = append(used, key)
			fallthrough
		default:
			found[key] = c.turn
		}
	}
	if len(missing) > 0 {
		if own := t.keys(ctx, owner); own != nil {
			missing = slices.DeleteFunc(missing, func(key string) bool { return !own.has(key) })
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

// read reads the turns that stand under keys.
func (t *Turns) read(tx *store.Tx, owner string, keys []string, into map[string]*memory.Turn) error {
	found, err := t.kind().Find(tx, owner, keys)
	for key, document := range found {
		if err == nil {
			into[key], err = memory.Decode(document)
		}
	}
	return err
}

// use lets what is in use live as long again. Nobody waits for it.
func (t *Turns) use(owner string, keys []string) {
	if len(keys) == 0 {
		return
	}
	t.db.Append(func(tx *store.Tx) error { return t.kind().Use(tx, owner, keys) }, nil)
}

// Drop implements [memory.Store]. Nothing is written where nothing is there, and nothing
// read where the owner is known to have nothing. While the store is in trouble the
// conversation goes on, which is said in the log: what it keeps itself takes the place.
func (t *Turns) Drop(ctx context.Context, owner, key string) error {
	t.cached.Delete(owner, key)
	if own := t.keys(ctx, owner); own != nil && !own.has(key) {
		return nil
	}
	none := t.none.Load()
	if none != nil {
		if _, ok := none.Get(owner, ""); ok {
			return nil
		}
	}
	var any, there bool
	err := t.db.Read(ctx, func(tx *store.Tx) (err error) {
		if any, err = t.kind().Any(tx, owner); err == nil && any {
			there, err = t.kind().Has(tx, owner, key)
		}
		return err
	})
	if none != nil && err == nil && !any {
		none.Put(owner, "", struct{}{}, int64(len(owner)))
	}
	if err != nil && ctx.Err() == nil {
		t.log.Error("what is remembered of a conversation cannot be read", "error", err)
		return nil
	}
	if err != nil || !there {
		return err
	}
	err = t.db.Write(ctx, func(tx *store.Tx) error { return t.kind().Drop(tx, owner, key) })
	if code, _ := store.Refusal(err); code != "" && ctx.Err() == nil {
		t.log.Error("what is remembered of a conversation cannot be forgotten", "error", err)
		return nil
	}
	return err
}

// Any implements [memory.Store]. Where nothing of the owner is cached the store is asked:
// another process may have kept something this very moment, of a conversation that goes on
// here.
func (t *Turns) Any(ctx context.Context, owner string) (any bool) {
	if t.cached.Has(owner) {
		return true
	}
	if own := t.keys(ctx, owner); own != nil {
		return own.any()
	}
	none := t.none.Load()
	err := t.db.Read(ctx, func(tx *store.Tx) (err error) {
		any, err = t.kind().Any(tx, owner)
		return err
	})
	if none != nil && err == nil && !any {
		none.Put(owner, "", struct{}{}, int64(len(owner)))
	}
	return any || err != nil // whoever reads it says what is wrong
}

// Forget empties what is known here of owners: somebody was erased.
func (t *Turns) Forget() {
	t.cached.Clear()
	t.known.owners.Clear()
	if t.none.Load() != nil {
		t.none.Store(&bounded.Map[struct{}]{Bytes: noneBytes, Age: time.Hour})
	}
}

// Watch lets it be known what is not there, until ctx ends.
func (t *Turns) Watch(ctx context.Context) {
	if t.others != nil {
		var all sync.WaitGroup
		all.Go(func() { t.others.watch(ctx) })
		defer all.Wait()
	}
	changed := t.db.Changed(ctx, topic)
	defer t.none.Store(nil)
	for {
		t.none.Store(&bounded.Map[struct{}]{Bytes: noneBytes, Age: time.Hour})
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
