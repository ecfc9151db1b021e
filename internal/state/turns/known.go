package turns

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Bounds of what is known of keys.
const (
	knownBytes = 32 << 20
	knownFor   = time.Hour // after its last use, and until what became too many is read again
	mostKnown  = 250_000   // keys of one owner; of who has more, the store is asked
	knownSize  = 32        // bytes for each
)

// known are the keys under which there may be turns, of owners who were asked for. Where this
// process alone keeps turns, the store need not be asked for others, and most that requests ask
// for are: whether one like it was made before, and what a conversation did in which nothing is
// hidden.
type known struct {
	mu     sync.Mutex
	owners bounded.Map[*ownKeys]
}

// ownKeys are those of one owner, as prints. Some may have gone.
type ownKeys struct {
	since time.Time

	mu      sync.Mutex
	all     map[uint64]struct{}
	whole   bool // no other key leads anywhere
	many    bool // nobody counts them
	reading bool
}

// own returns what is known of an owner, which may be nothing yet.
func (k *known) own(owner string) *ownKeys {
	k.mu.Lock()
	defer k.mu.Unlock()
	own, ok := k.owners.Get(owner, "")
	if !ok || time.Since(own.since) > knownFor && own.tooMany() {
		own = &ownKeys{since: time.Now(), all: map[uint64]struct{}{}}
		k.owners.Put(owner, "", own, 0)
	}
	return own
}

// grew counts how much is known of an owner, unless that was forgotten meanwhile.
func (k *known) grew(owner string, own *ownKeys, keys int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now, ok := k.owners.Get(owner, ""); ok && now == own {
		k.owners.Put(owner, "", own, int64(keys)*knownSize)
	}
}

// add makes keys known that are kept. It is called before they are, for who reads meanwhile,
// and after, for who has read meanwhile.
func (k *known) add(owner string, keys []string) {
	k.mu.Lock()
	own, ok := k.owners.Get(owner, "")
	k.mu.Unlock()
	if !ok {
		return // who asks will read them
	}
	prints := make([]uint64, len(keys))
	for i, key := range keys {
		prints[i] = content.Print(key)
	}
	k.grew(owner, own, own.add(prints))
}

func (o *ownKeys) add(prints []uint64) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range prints {
		if !o.many {
			o.all[p] = struct{}{}
		}
	}
	if len(o.all) > mostKnown {
		o.all, o.many = nil, true
	}
	return len(o.all)
}

func (o *ownKeys) tooMany() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.many
}

// of returns the keys of an owner, which one request reads where they are not known; nil where
// they are not.
func (k *known) of(ctx context.Context, db *store.DB, kind *content.Kind, owner string) *ownKeys {
	own := k.own(owner) // what is kept from here on is added to it
	own.mu.Lock()
	whole, wait := own.whole && !own.many, own.many || own.reading
	own.reading = own.reading || !own.whole
	own.mu.Unlock()
	switch {
	case whole:
		return own
	case wait:
		return nil
	}
	var prints []uint64
	err := db.Read(ctx, func(tx *store.Tx) (err error) {
		prints, err = kind.Prints(tx, owner, mostKnown+1)
		return err
	})
	if err == nil {
		k.grew(owner, own, own.add(prints))
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.whole, own.reading = err == nil, false; own.many || err != nil {
		return nil
	}
	return own
}

// has reports whether there may be a turn under a key.
func (o *ownKeys) has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.all[content.Print(key)]
	return ok || o.many
}

// any reports whether there may be a turn.
func (o *ownKeys) any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all) > 0 || o.many
}
