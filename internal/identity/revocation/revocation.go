// Package revocation keeps in the store which API keys are good nowhere, whatever a file or
// a configuration says of them. It is apart from package apikey, which programs without a
// store use.
package revocation

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// topic is raised when a key is revoked in the store.
const topic = "revoked keys"

// Revoke says in the store that a key is good nowhere, whatever a file or a configuration
// says of it, now and later. Its id may be that of its caller, too.
func Revoke(ctx context.Context, db *store.DB, id string) error {
	return db.Write(ctx, func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		tx.Raise(topic)
		_, err = tx.Exec("INSERT INTO revoked_keys (id, at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", bare(id), store.Time(now))
		return err
	})
}

func bare(id string) string { return strings.TrimPrefix(id, apikey.CallerPrefix) }

// Keys are the keys that are revoked in the store, as they were read last: no request
// asks the store. It is safe for concurrent use; in nil Keys no key is.
type Keys struct {
	db  *store.DB
	mu  sync.RWMutex
	ids map[string]bool
}

// Open reads which keys are revoked.
func Open(ctx context.Context, db *store.DB) (*Keys, error) {
	r := &Keys{db: db}
	_, err := r.read(ctx)
	return r, err
}

// Has reports whether a key is revoked, by its id or that of its caller.
func (r *Keys) Has(id string) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[bare(id)]
}

// Watch reads again when a key is revoked, until ctx ends, and tells of each that was not
// known to be. While the store cannot be read, those that are known stay revoked.
func (r *Keys) Watch(ctx context.Context, revoked func(id string)) {
	changed := r.db.Changed(ctx, topic)
	var again <-chan time.Time // nobody tells twice of what could not be read
	for {
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return
		}
		more, err := r.read(ctx)
		if errors.Is(err, store.ErrClosed) {
			return
		}
		if again = nil; err != nil {
			again = time.After(store.LookEvery)
		}
		for _, id := range more {
			revoked(id)
		}
	}
}

// read reads all, and returns those that are new.
func (r *Keys) read(ctx context.Context) (more []string, err error) {
	ids := map[string]bool{}
	err = r.db.Read(ctx, func(tx *store.Tx) error {
		clear(ids)
		return tx.Rows("SELECT id FROM revoked_keys", nil, func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids[id] = true
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids {
		if !r.ids[id] {
			more = append(more, id)
		}
	}
	r.ids = ids
	return more, nil
}
