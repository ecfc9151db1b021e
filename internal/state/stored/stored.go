// Package stored keeps responses for their callers in the store, and which approvals of
// clients were used: a [responses.Store] that outlives the process, and is the same for
// all processes that share the store.
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

// Life is how long a response is kept where nothing else is said, and how long it is known
// that an approval was used: as long as one is good.
const Life = 30 * 24 * time.Hour

// Responses are those of all callers. Make it with [New]; it is safe for concurrent use.
type Responses struct {
	db   *store.DB
	kind content.Kind
}

var _ responses.Store = (*Responses)(nil)

// New returns the responses that are kept in db, under the keys of v, for as long as
// retention says; zero is [Life]. How much is kept is not bounded here: who has reached the
// quota is refused before anything is made for it ([keeping.Keeper.Admit]).
func New(db *store.DB, v *vault.Vault, retention time.Duration) *Responses {
	return &Responses{db, content.Kind{Name: "response", Keyed: true, Life: cmp.Or(retention, Life), Vault: v}}
}

// Put implements [responses.Store]. It returns once the response is on disk.
func (r *Responses) Put(ctx context.Context, caller string, s *responses.Stored) error {
	return r.db.Write(ctx, func(tx *store.Tx) error { return r.PutIn(tx, caller, s) })
}

// PutIn is Put as part of a transaction of the same store.
func (r *Responses) PutIn(tx *store.Tx, caller string, s *responses.Stored) error {
	document, err := encodeResponse(s)
	if err != nil {
		return err
	}
	return r.kind.Put(tx, caller, s.ID, document, s.Names()...)
}

// DeleteIn is Delete as part of a transaction of the same store.
func (r *Responses) DeleteIn(tx *store.Tx, caller, id string) (bool, error) {
	return r.kind.Delete(tx, caller, id)
}

// Get implements [responses.Store].
func (r *Responses) Get(ctx context.Context, caller, id string) (*responses.Stored, error) {
	return r.read(ctx, func(tx *store.Tx) ([]byte, error) { return r.kind.Get(tx, caller, id) })
}

// Follow implements [responses.Store].
func (r *Responses) Follow(ctx context.Context, caller, id string, on func(*responses.Stored) bool) error {
	return r.db.Read(ctx, func(tx *store.Tx) error {
		for id := id; ; {
			document, err := r.kind.Get(tx, caller, id)
			if errors.Is(err, content.ErrNone) {
				on(nil)
				return nil
			}
			if err != nil {
				return err
			}
			s, err := decodeResponse(document)
			if err != nil {
				return err
			}
			if !on(s) || s.Previous == "" {
				return nil
			}
			id = s.Previous
		}
	})
}

// With implements [responses.Store].
func (r *Responses) With(ctx context.Context, caller, item string) (*responses.Stored, error) {
	if id := responses.Holder(item); id != "" {
		if s, err := r.Get(ctx, caller, id); err != nil || s != nil && s.Has(item) {
			return s, err
		}
	}
	return r.read(ctx, func(tx *store.Tx) ([]byte, error) {
		found, err := r.kind.Find(tx, caller, []string{item})
		if err == nil && found[item] == nil {
			err = content.ErrNone
		}
		return found[item], err
	})
}

func (r *Responses) read(ctx context.Context, find func(*store.Tx) ([]byte, error)) (*responses.Stored, error) {
	var document []byte
	err := r.db.Read(ctx, func(tx *store.Tx) (err error) {
		document, err = find(tx)
		return err
	})
	if errors.Is(err, content.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeResponse(document)
}

// Delete implements [responses.Store].
func (r *Responses) Delete(ctx context.Context, caller, id string) (there bool, err error) {
	err = r.db.Write(ctx, func(tx *store.Tx) (err error) {
		there, err = r.kind.Delete(tx, caller, id)
		return err
	})
	return there, err
}

// Spend implements [responses.Store]: of all processes one is the first.
func (r *Responses) Spend(ctx context.Context, caller, id string) (first bool, err error) {
	err = r.db.Write(ctx, func(tx *store.Tx) error {
		first, err = r.SpendIn(tx, caller, id)
		return err
	})
	return first && err == nil, err
}

// SpendIn is Spend as part of a transaction.
func (r *Responses) SpendIn(tx *store.Tx, caller, id string) (first bool, err error) {
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	n, err := tx.Exec("INSERT INTO consents (owner, digest, expires) VALUES ($1, $2, $3) ON CONFLICT (owner, digest) DO NOTHING",
		store.Owner(caller), content.Digest(id), store.Time(now.Add(Life)))
	return n == 1, err
}
