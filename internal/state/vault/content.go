package vault

import (
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// ErrErased: the owner was erased, or never had anything.
var ErrErased = errors.New("its owner was erased")

// Close encrypts content of an owner, for the place that it is kept in: elsewhere it is
// nothing. The owner's key is made with its first content.
func (v *Vault) Close(tx *store.Tx, owner, place string, plain []byte) ([]byte, error) {
	key, err := v.owner(tx, owner)
	if errors.Is(err, ErrErased) {
		key, err = v.enter(tx, owner)
	}
	if err != nil {
		return nil, err
	}
	return key.Seal(nil, nil, plain, seal.Bind([]byte(owner), []byte(place))), nil
}

// Open returns what [Vault.Close] encrypted.
func (v *Vault) Open(tx *store.Tx, owner, place string, closed []byte) ([]byte, error) {
	key, err := v.owner(tx, owner)
	if err != nil {
		return nil, err
	}
	plain, err := key.Open(nil, nil, closed, seal.Bind([]byte(owner), []byte(place)))
	if err != nil {
		return nil, fmt.Errorf("%w since, or it is damaged", ErrErased)
	}
	return plain, nil
}

// Erase forgets an owner's key: nothing that it had can be read, here or in a copy of
// the store without that row. What it has from now on is under another one. It reports
// whether there was one.
func (v *Vault) Erase(tx *store.Tx, owner string) (bool, error) {
	n, err := tx.Exec("DELETE FROM owner_keys WHERE owner = $1", owner)
	return n > 0, err
}

// An ownersKey is what the key of an owner is found by again in one transaction.
type ownersKey struct {
	of    *Vault
	owner string
}

// owner returns what an owner's key encrypts with.
func (v *Vault) owner(tx *store.Tx, owner string) (cipher.AEAD, error) {
	found, err := tx.Once(ownersKey{v, owner}, func() (any, error) {
		var wrapped []byte
		err := tx.Row("SELECT wrapped FROM owner_keys WHERE owner = $1", []any{owner}, &wrapped)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, ErrErased
		}
		if err != nil {
			return nil, err
		}
		key, err := v.owners.unwrap(owner, wrapped)
		if err != nil {
			return nil, err
		}
		return gcm(key[:]), nil
	})
	if err != nil {
		return nil, err
	}
	return found.(cipher.AEAD), nil
}

// enter makes an owner's key, unless another process has meanwhile.
func (v *Vault) enter(tx *store.Tx, owner string) (cipher.AEAD, error) {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // it never fails
	if _, err := tx.Exec("INSERT INTO owner_keys (owner, wrapped) VALUES ($1, $2) ON CONFLICT (owner) DO NOTHING", owner, v.owners.wrap(owner, key[:])); err != nil {
		return nil, err
	}
	return v.owner(tx, owner)
}
