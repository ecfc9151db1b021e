package logins

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// Where are the logins of a process that keeps nothing itself: the store that the
// configuration names, where there is one, else the file. The store is opened when
// something is asked of it.
type Where struct {
	Store store.Config
	// File is where logins are without a store.
	File *credential.File

	mu     sync.Mutex
	at     credential.Store // nil until something was asked
	db     *store.DB
	wrong  error
	failed time.Time
}

var _ credential.Store = (*Where)(nil)

// Bounds of opening a store.
const (
	openWithin = 30 * time.Second
	openAgain  = 10 * time.Second // after it could not be
)

// there reports whether there is a store.
func (w *Where) there() bool {
	path := w.Store.Path
	switch {
	case !w.Store.URL.IsZero():
		return true
	case path == store.Memory:
		return false
	case path == "":
		var err error
		if path, err = store.DefaultPath(); err != nil {
			return false
		}
	}
	_, err := os.Stat(path)
	return err == nil
}

// in returns where the logins are.
func (w *Where) in() (credential.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.at != nil:
		return w.at, nil
	case !w.there():
		w.at = w.File
		return w.at, nil
	case time.Since(w.failed) < openAgain:
		return nil, w.wrong
	}
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	db, err := store.Open(ctx, w.Store)
	if err == nil {
		var keys *vault.Vault
		if keys, err = vault.Open(ctx, db, w.Store); err == nil {
			w.db, w.at = db, Open(ctx, db, keys, w.File, nil)
			return w.at, nil
		}
		err = errors.Join(err, db.Close())
	}
	w.failed, w.wrong = time.Now(), err
	return nil, err
}

// Close closes the store where it was opened.
func (w *Where) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.db == nil {
		return nil
	}
	return w.db.Close()
}

// Get implements [credential.Store].
func (w *Where) Get(a credential.Account) (credential.Entry, error) {
	at, err := w.in()
	if err != nil {
		return credential.Entry{}, err
	}
	return at.Get(a)
}

// Accounts implements [credential.Store].
func (w *Where) Accounts() ([]credential.Account, error) {
	at, err := w.in()
	if err != nil {
		return nil, err
	}
	return at.Accounts()
}

// Put implements [credential.Store].
func (w *Where) Put(a credential.Account, e credential.Entry) error {
	at, err := w.in()
	if err != nil {
		return err
	}
	return at.Put(a, e)
}

// Update implements [credential.Store].
func (w *Where) Update(a credential.Account, change func(*credential.Entry, time.Time) error) (credential.Entry, error) {
	at, err := w.in()
	if err != nil {
		return credential.Entry{}, err
	}
	return at.Update(a, change)
}

// Delete implements [credential.Store].
func (w *Where) Delete(a credential.Account) error {
	at, err := w.in()
	if err != nil {
		return err
	}
	return at.Delete(a)
}

// Watch implements [credential.Store]. It opens a store only once something was asked.
func (w *Where) Watch(ctx context.Context) {
	if !w.there() {
		w.File.Watch(ctx)
		return
	}
	<-ctx.Done()
}
