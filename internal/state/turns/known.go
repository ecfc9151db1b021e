package turns

import (
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/content"
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

// begin reports whether all keys are known, and if not, whether whoever asks is to read them.
func (o *ownKeys) begin() (whole, read bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.many || o.whole || o.reading {
		return o.whole && !o.many, false
	}
	o.reading = true
	return false, true
}

// end notes that the keys were read, or could not be, and reports whether all are known.
func (o *ownKeys) end(read bool) (whole bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole, o.reading = read, false
	return o.whole && !o.many
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
