package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
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
}

func newRemembered(db *store.DB, log *slog.Logger) *remembered {
	return &remembered{
		db: db, log: log,
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

// taint remembers that a conversation has. It returns once others know.
func (m *remembered) taint(ctx context.Context, caller, conversation string) {
	tell, ok := m.tainted.Get(caller, conversation)
	if ok && (m.db == nil || time.Now().Before(tell)) {
		return
	}
	m.tainted.Put(caller, conversation, time.Time{}, 0)
	if m.db == nil {
		return
	}
	err := m.db.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = tx.Exec("INSERT INTO taints (owner, digest, expires) VALUES ($1, $2, $3) ON CONFLICT (owner, digest) DO UPDATE SET expires = excluded.expires",
			store.Owner(caller), content.Digest(conversation), store.Time(now.Add(taintAge)))
		return err
	})
	if err != nil {
		m.log.Error("that a conversation has read something of strangers is known to this process alone", "error", err)
		return
	}
	m.tainted.Put(caller, conversation, time.Now().Add(taintAge/4), 0)
}
