package stored

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/content"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// Conversations are those of all callers: [responses.Conversations] that outlive the
// process and are the same for all that share the store. Make them with
// [NewConversations]; they are safe for concurrent use.
type Conversations struct {
	db   *store.DB
	kind content.Kind
}

var _ responses.Conversations = (*Conversations)(nil)

// NewConversations returns the conversations that are kept in db, under the keys of v, for
// as long after their last change as retention says; zero is [Life].
func NewConversations(db *store.DB, v *vault.Vault, retention time.Duration) *Conversations {
	return &Conversations{db, content.Kind{Name: "conversation", Life: cmp.Or(retention, Life), Vault: v}}
}

// Put implements [responses.Conversations]. It returns once the conversation is on disk.
func (c *Conversations) Put(ctx context.Context, caller string, k *responses.Kept) error {
	return c.db.Write(ctx, func(tx *store.Tx) error { return c.put(tx, caller, k) })
}

// Get implements [responses.Conversations].
func (c *Conversations) Get(ctx context.Context, caller, id string) (k *responses.Kept, err error) {
	err = c.db.Read(ctx, func(tx *store.Tx) (err error) {
		k, err = c.get(tx, caller, id)
		return err
	})
	return k, err
}

// Change implements [responses.Conversations].
func (c *Conversations) Change(ctx context.Context, caller, id, holder string, change func(responses.Kept) (*responses.Kept, error)) (k *responses.Kept, err error) {
	err = c.db.Write(ctx, func(tx *store.Tx) (err error) {
		k, err = c.ChangeIn(tx, caller, id, holder, change)
		return err
	})
	return k, err
}

// ChangeIn is Change as part of a transaction of the same store.
func (c *Conversations) ChangeIn(tx *store.Tx, caller, id, holder string, change func(responses.Kept) (*responses.Kept, error)) (*responses.Kept, error) {
	if err := c.lock(tx, caller); err != nil {
		return nil, err
	}
	k, err := c.get(tx, caller, id)
	if err != nil {
		return nil, err
	}
	if holder != "" {
		var held bool
		if err := tx.Row("SELECT EXISTS (SELECT 1 FROM conversation_claims WHERE owner = $1 AND conversation = $2 AND holder = $3)",
			[]any{store.Owner(caller), id, holder}, &held); err != nil {
			return nil, err
		}
		if !held {
			return nil, responses.ErrClaimed
		}
	}
	if k, err = change(*k); err != nil {
		return nil, err
	}
	return k, c.put(tx, caller, k)
}

// lock lets nobody else change a caller's conversations until the transaction ends.
func (c *Conversations) lock(tx *store.Tx, caller string) error {
	return tx.Lock("conversations", store.Owner(caller))
}

// Delete implements [responses.Conversations].
func (c *Conversations) Delete(ctx context.Context, caller, id string) (there bool, err error) {
	err = c.db.Write(ctx, func(tx *store.Tx) error {
		if err := c.lock(tx, caller); err != nil {
			return err
		}
		if there, err = c.kind.Delete(tx, caller, id); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM conversation_claims WHERE owner = $1 AND conversation = $2", store.Owner(caller), id)
		return err
	})
	return there, err
}

// Claim implements [responses.Conversations].
func (c *Conversations) Claim(ctx context.Context, caller, id, holder string, life time.Duration) error {
	return c.db.Write(ctx, func(tx *store.Tx) error { return c.ClaimIn(tx, caller, id, holder, life) })
}

// ClaimIn is Claim as part of a transaction of the same store.
func (c *Conversations) ClaimIn(tx *store.Tx, caller, id, holder string, life time.Duration) error {
	if err := c.lock(tx, caller); err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	var there bool
	if err := tx.Row("SELECT EXISTS (SELECT 1 FROM conversations WHERE owner = $1 AND id = $2 AND expires > $3)",
		[]any{store.Owner(caller), id, store.Time(now)}, &there); err != nil {
		return err
	}
	if !there {
		return responses.ErrNotKept
	}
	n, err := tx.Exec(`INSERT INTO conversation_claims (owner, conversation, holder, expires) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner, conversation) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
		WHERE conversation_claims.holder = excluded.holder OR conversation_claims.expires <= $5`,
		store.Owner(caller), id, holder, store.Time(now.Add(life)), store.Time(now))
	if err == nil && n == 0 {
		err = responses.ErrClaimed
	}
	return err
}

// Release implements [responses.Conversations].
func (c *Conversations) Release(ctx context.Context, caller, id, holder string) error {
	return c.db.Write(ctx, func(tx *store.Tx) error { return c.ReleaseIn(tx, caller, id, holder) })
}

// ReleaseIn is Release as part of a transaction of the same store.
func (c *Conversations) ReleaseIn(tx *store.Tx, caller, id, holder string) error {
	return releaseIn(tx, caller, id, holder)
}

func releaseIn(tx *store.Tx, caller, id, holder string) error {
	_, err := tx.Exec("DELETE FROM conversation_claims WHERE owner = $1 AND conversation = $2 AND holder = $3", store.Owner(caller), id, holder)
	return err
}

func (c *Conversations) put(tx *store.Tx, caller string, k *responses.Kept) error {
	document, err := encodeKept(k)
	if err != nil {
		return err
	}
	return c.kind.Put(tx, caller, k.ID, document)
}

func (c *Conversations) get(tx *store.Tx, caller, id string) (*responses.Kept, error) {
	document, err := c.kind.Get(tx, caller, id)
	if errors.Is(err, content.ErrNone) {
		return nil, responses.ErrNotKept
	}
	if err != nil {
		return nil, err
	}
	return decodeKept(document)
}
