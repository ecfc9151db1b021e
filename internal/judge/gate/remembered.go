package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// How long, and of how many conversations, it is remembered that they have read
// something that strangers may have written.
const (
	taintAge   = 12 * time.Hour
	taintBytes = 16 << 20
	// maxUntold is how many of them wait at most for a store that cannot be written, and
	// mostTold how many are written in one transaction: others wait meanwhile.
	maxUntold, mostTold = 10_000, 100
)

// How long a call that asks may go on, and how many of them there are at a time, where
// this process remembers them: what is forgotten does not go on. What stands in the store
// are those that have gone on, for as long as a state can come back.
const (
	legAge   = time.Hour
	legBytes = 16 << 20
)

// A remembered is what one call leaves behind for others: in the store, else in this
// process.
type remembered struct {
	db      *store.DB // nil for this process alone
	log     *slog.Logger
	tainted bounded.Map[time.Time] // conversations that read something of strangers: when the store is to be told again
	legs    bounded.Map[struct{}]  // that calls may go on with, once; unused with a store

	mu     sync.Mutex
	untold map[conversation]bool // are tainted, and the store does not know yet
	again  *time.Timer           // runs while there are any
}

// A conversation is a caller's.
type conversation struct{ caller, id string }

func newRemembered(db *store.DB, log *slog.Logger) *remembered {
	return &remembered{
		db: db, log: log, untold: map[conversation]bool{},
		tainted: bounded.Map[time.Time]{Bytes: taintBytes, Age: taintAge},
		legs:    bounded.Map[struct{}]{Bytes: legBytes, Age: legAge},
	}
}

// errLegSpent: the call has gone on with these answers, or others, already.
var errLegSpent = errors.New("the call has gone on already")

// leg returns the name of a leg that a caller's call may go on with once.
func (m *remembered) leg(caller string) string {
	leg := rand.Text()
	if m.db == nil {
		m.legs.Put(caller, leg, struct{}{}, int64(len(leg)))
	}
	return leg
}

// spend uses a leg, where this process remembers it, and returns what does so in the
// transaction of what goes on, where the store does. It is [errLegSpent] where the leg was
// used before.
func (m *remembered) spend(caller, leg string) (func(*store.Tx) error, error) {
	if m.db == nil {
		if _, ok := m.legs.Take(caller, leg); !ok {
			return nil, errLegSpent
		}
		return nil, nil
	}
	return func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		n, err := tx.Exec("INSERT INTO legs (owner, id, expires) VALUES ($1, $2, $3) ON CONFLICT (owner, id) DO NOTHING",
			store.Owner(caller), leg, store.Time(now.Add(seal.Continuation.Life)))
		if err == nil && n == 0 {
			err = errLegSpent
		}
		return err
	}, nil
}

// isTainted reports whether a conversation has read something of strangers. One of which
// nobody knows has.
func (m *remembered) isTainted(ctx context.Context, caller, conversation string) bool {
	if _, ok := m.tainted.Get(caller, conversation); ok || m.db == nil {
		return ok
	}
	var tainted bool
	err := m.db.Read(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		return tx.Row("SELECT EXISTS (SELECT 1 FROM taints WHERE owner = $1 AND digest = $2 AND expires > $3)",
			[]any{store.Owner(caller), content.Digest(conversation), store.Time(now)}, &tainted)
	})
	if err != nil && ctx.Err() == nil {
		m.log.Error("whether a conversation has read something of strangers is not known, so that it is taken to have", "error", err)
	}
	if err != nil {
		return true
	}
	if tainted {
		m.tainted.Put(caller, conversation, time.Time{}, 0)
	}
	return tainted
}

// taint remembers that a conversation has. It returns once others know, or where that cannot
// be written down now: then it is as soon as it can.
func (m *remembered) taint(ctx context.Context, caller, id string) {
	tell, ok := m.tainted.Get(caller, id)
	if ok && (m.db == nil || time.Now().Before(tell)) {
		return
	}
	m.tainted.Put(caller, id, time.Time{}, 0)
	if m.db == nil {
		return
	}
	one := conversation{caller, id}
	if err := m.tell(context.WithoutCancel(ctx), one); err != nil {
		m.log.Error("that a conversation has read something of strangers is known to this process alone until it can be written down", "error", err)
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.untold) < maxUntold {
			m.untold[one] = true
		}
		m.tellSoon()
	}
}

// tell writes down that conversations are tainted.
func (m *remembered) tell(ctx context.Context, all ...conversation) error {
	err := m.db.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		for _, c := range all {
			if _, err := tx.Exec("INSERT INTO taints (owner, digest, expires) VALUES ($1, $2, $3) ON CONFLICT (owner, digest) DO UPDATE SET expires = excluded.expires",
				store.Owner(c.caller), content.Digest(c.id), store.Time(now.Add(taintAge))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range all {
		m.tainted.Put(c.caller, c.id, time.Now().Add(taintAge/4), 0)
	}
	return nil
}

// tellSoon has what could not be written down tried again. mu is held.
func (m *remembered) tellSoon() {
	if m.again == nil && len(m.untold) > 0 {
		m.again = time.AfterFunc(store.LookEvery, m.tellUntold)
	}
}

// tellUntold writes down what could not be when it came.
func (m *remembered) tellUntold() {
	m.mu.Lock()
	all := slices.SortedFunc(maps.Keys(m.untold), func(a, b conversation) int {
		return cmp.Or(cmp.Compare(a.caller, b.caller), cmp.Compare(a.id, b.id)) // as all do, who would wait for each other
	})
	m.mu.Unlock()
	var err error
	told := 0
	for some := range slices.Chunk(all, mostTold) {
		if err = m.tell(context.Background(), some...); err != nil {
			break
		}
		told += len(some)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range all[:told] {
		delete(m.untold, c)
	}
	if m.again = nil; !errors.Is(err, store.ErrClosed) {
		m.tellSoon()
	}
}
