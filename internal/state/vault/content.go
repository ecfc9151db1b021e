package vault

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// ErrErased: the owner was erased, or never had anything.
var ErrErased = errors.New("its owner was erased")

// Close encrypts content of an owner, for the place that it is kept in: elsewhere it is
// nothing. The owner's key is made with its first content.
func (v *Vault) Close(tx *store.Tx, owner, place string, plain []byte) ([]byte, error) {
	key, err := v.owner(tx, owner)
	if err == nil {
		err = v.use(tx, owner, key.used)
	}
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

// An ownerKey is what an owner's key encrypts with, and when it did so last, to the day.
type ownerKey struct {
	cipher.AEAD
	used int64
}

// owner returns an owner's key.
func (v *Vault) owner(tx *store.Tx, owner string) (ownerKey, error) {
	found, err := tx.Once(ownersKey{v, owner}, func() (any, error) {
		var wrapped []byte
		var used int64
		err := tx.Row("SELECT wrapped, used FROM owner_keys WHERE owner = $1", []any{owner}, &wrapped, &used)
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
		return ownerKey{gcm(key[:]), used}, nil
	})
	if err != nil {
		return ownerKey{}, err
	}
	return found.(ownerKey), nil
}

// Times of owners' keys.
const (
	// noted is how old what is known of a key's use may become while it encrypts.
	noted = 24 * time.Hour
	// unused is how long a key has not encrypted that may go.
	unused = 2 * noted
)

// use notes, once a day, that an owner's key encrypts, so that nobody drops it before what
// it encrypts is there. Where the key is not as it was read, that is [ErrErased].
func (v *Vault) use(tx *store.Tx, owner string, used int64) error {
	now, err := v.now(tx)
	if err != nil || now.Sub(store.FromTime(used)) < noted {
		return err
	}
	n, err := tx.Exec("UPDATE owner_keys SET used = $1 WHERE owner = $2 AND used = $3", store.Time(now), owner, used)
	if err == nil && n == 0 {
		err = ErrErased
	}
	return err
}

// mostDropped is how many keys are dropped in one transaction: others wait meanwhile.
const mostDropped = 500

// dropUnused drops the keys of owners who have had nothing for a while. They are looked for
// while others write, and looked at again one by one.
func (v *Vault) dropUnused(ctx context.Context) error {
	for more := true; more; {
		var owners []string
		if err := v.db.Read(ctx, func(tx *store.Tx) error {
			nobodys, before, err := v.nobodys(tx)
			if err != nil {
				return err
			}
			owners = owners[:0]
			return tx.Rows("SELECT owner FROM owner_keys WHERE "+nobodys+" LIMIT $2", []any{before, mostDropped}, func(scan func(dest ...any) error) error {
				var owner string
				err := scan(&owner)
				owners = append(owners, owner)
				return err
			})
		}); err != nil || len(owners) == 0 {
			return err
		}
		more = len(owners) == mostDropped
		if err := v.db.Write(ctx, func(tx *store.Tx) error {
			nobodys, before, err := v.nobodys(tx)
			for _, owner := range owners {
				if err == nil {
					// One that is used meanwhile is looked at again by PostgreSQL, and stays.
					_, err = tx.Exec("DELETE FROM owner_keys WHERE "+nobodys+" AND owner = $2", before, owner)
				}
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// nobodys is the condition on a key that has not been used since a time, its first argument,
// and whose owner has nothing in any table.
func (v *Vault) nobodys(tx *store.Tx) (condition string, before int64, err error) {
	now, err := v.now(tx)
	if err != nil {
		return "", 0, err
	}
	tables, err := tx.Tables()
	if err != nil {
		return "", 0, err
	}
	var b strings.Builder
	b.WriteString("used <= $1")
	for _, t := range tables {
		if t.Owner == store.OwnerColumn && t.Name != "owner_keys" {
			fmt.Fprintf(&b, " AND NOT EXISTS (SELECT 1 FROM %[1]s WHERE %[1]s.owner = owner_keys.owner)", t.Name)
		}
	}
	return b.String(), store.Time(now.Add(-unused)), nil
}

// enter makes an owner's key, unless another process has meanwhile.
func (v *Vault) enter(tx *store.Tx, owner string) (ownerKey, error) {
	now, err := v.now(tx)
	if err != nil {
		return ownerKey{}, err
	}
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // it never fails
	if _, err := tx.Exec("INSERT INTO owner_keys (owner, wrapped, used) VALUES ($1, $2, $3) ON CONFLICT (owner) DO NOTHING", owner, v.owners.wrap(owner, key[:]), store.Time(now)); err != nil {
		return ownerKey{}, err
	}
	return v.owner(tx, owner)
}
