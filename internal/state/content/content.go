// Package content keeps documents of owners in tables of the store: encrypted under
// their owner's key, found by their id or by keys, bounded in bytes for each owner where
// their kind says so, for a time.
package content

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// ErrNone: the owner has no such document, or has it no longer.
var ErrNone = errors.New("there is no such document")

// A Kind is one kind of document. It is in the table of that name with an s behind it,
// with the columns owner, id, content, size and expires. Its methods are for use in a
// transaction, but for what says otherwise.
type Kind struct {
	// Name is the kind's, such as turn.
	Name string
	// Keyed says that there is a table NAME_keys, with the columns owner, digest, NAME
	// and expires: documents are found by keys, too.
	Keyed bool
	// Life is how long a document is kept, and Bytes the most that is kept of one
	// owner: who would have more gives up what would have expired first. Zero is without
	// end.
	Life  time.Duration
	Bytes int64
	// Vault has the keys of the owners.
	Vault *vault.Vault
	// Rooms remember how much more owners may have; nil counts it for each document.
	Rooms *Rooms
}

func (k *Kind) table() string { return k.Name + "s" }
func (k *Kind) keys() string  { return k.Name + "_keys" }
func (k *Kind) place(id string) string {
	return k.Name + " " + id // elsewhere what is encrypted is nothing
}

// Put keeps a document of an owner, in place of an older one with its id, which is found
// under each of keys from now on. One that is larger than an owner may have is not kept.
func (k *Kind) Put(tx *store.Tx, owner, id string, document []byte, keys ...string) error {
	owner = store.Owner(owner)
	size := int64(len(document))
	if k.Bytes > 0 && size > k.Bytes {
		return nil
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if k.Bytes > 0 && !k.Rooms.Take(owner, size) {
		if err := k.makeRoom(tx, owner, now, size); err != nil {
			return err
		}
	}
	closed, err := k.Vault.Close(tx, owner, k.place(id), document)
	if err != nil {
		return err
	}
	expires := store.Time(now.Add(k.Life))
	if _, err := tx.Exec("INSERT INTO "+k.table()+` (owner, id, content, size, expires) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (owner, id) DO UPDATE SET content = excluded.content, size = excluded.size, expires = excluded.expires`,
		owner, id, closed, size, expires); err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := tx.Exec("INSERT INTO "+k.keys()+" (owner, digest, "+k.Name+`, expires) VALUES ($1, $2, $3, $4)
			ON CONFLICT (owner, digest) DO UPDATE SET `+k.Name+" = excluded."+k.Name+", expires = excluded.expires", owner, Digest(key), id, expires); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom removes what has expired, and what would expire first, of an owner who would
// have more than it may.
func (k *Kind) makeRoom(tx *store.Tx, owner string, now time.Time, size int64) error {
	if err := tx.Lock(k.table(), owner); err != nil {
		return err
	}
	// What was found under keys that have expired is not: they go with the next sweep.
	if _, err := tx.Exec("DELETE FROM "+k.table()+" WHERE owner = $1 AND expires <= $2", owner, store.Time(now)); err != nil {
		return err
	}
	held, err := Held(tx, k.table(), store.OwnerColumn, owner)
	if err != nil {
		return err
	}
	if excess := Excess(held, size, k.Bytes); excess > 0 {
		oldest, args, err := Rows{k.table(), store.OwnerColumn, "expires", "id"}.Oldest(tx, owner, excess)
		if err != nil {
			return err
		}
		if k.Keyed {
			if _, err := tx.Exec("DELETE FROM "+k.keys()+" WHERE owner = $1 AND "+k.Name+" IN (SELECT id FROM "+k.table()+" WHERE "+oldest+")", args...); err != nil {
				return err
			}
		}
		if _, err := tx.Exec("DELETE FROM "+k.table()+" WHERE "+oldest, args...); err != nil {
			return err
		}
		held -= excess // at the least
	}
	k.Rooms.Counted(owner, held+size, k.Bytes)
	return nil
}

// Delete removes a document, and reports whether there was one.
func (k *Kind) Delete(tx *store.Tx, owner, id string) (bool, error) {
	owner = store.Owner(owner)
	now, err := tx.Now()
	if err != nil {
		return false, err
	}
	n, err := tx.Exec("DELETE FROM "+k.table()+" WHERE owner = $1 AND id = $2 AND expires > $3", owner, id, store.Time(now))
	if err == nil && k.Keyed {
		_, err = tx.Exec(k.dropKeys(), owner, id)
	}
	return n > 0, err
}

// dropKeys is the statement that forgets the keys of a document.
func (k *Kind) dropKeys() string {
	return "DELETE FROM " + k.keys() + " WHERE owner = $1 AND " + k.Name + " = $2"
}

// Get returns a document of an owner, or [ErrNone].
func (k *Kind) Get(tx *store.Tx, owner, id string) ([]byte, error) {
	owner = store.Owner(owner)
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	var closed []byte
	err = tx.Row("SELECT content FROM "+k.table()+" WHERE owner = $1 AND id = $2 AND expires > $3", []any{owner, id, store.Time(now)}, &closed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	return k.open(tx, owner, id, closed)
}

// open decrypts a document. What its owner's key does not open is not there: it was
// erased.
func (k *Kind) open(tx *store.Tx, owner, id string, closed []byte) ([]byte, error) {
	document, err := k.Vault.Open(tx, owner, k.place(id), closed)
	if errors.Is(err, vault.ErrErased) {
		return nil, ErrNone
	}
	return document, err
}

// maxAsked is how many keys are asked for in one statement.
const maxAsked = 256

// Find returns those of an owner's documents that are kept under one of keys, by key.
func (k *Kind) Find(tx *store.Tx, owner string, keys []string) (map[string][]byte, error) {
	owner = store.Owner(owner)
	found := map[string][]byte{}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(keys, maxAsked) {
		byDigest, rows := map[string]string{}, []row{}
		args := []any{owner, store.Time(now)}
		for _, key := range some {
			digest := Digest(key)
			byDigest[digest] = key
			args = append(args, digest)
		}
		err := tx.Rows("SELECT k.digest, d.id, d.content FROM "+k.keys()+" k JOIN "+k.table()+" d ON d.owner = k.owner AND d.id = k."+k.Name+
			" WHERE k.owner = $1 AND d.expires > $2 AND k.digest IN ("+parameters(3, len(some))+")", args,
			func(scan func(...any) error) error {
				var r row
				err := scan(&r.digest, &r.id, &r.closed)
				rows = append(rows, r)
				return err
			})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			document, err := k.open(tx, owner, r.id, r.closed)
			if errors.Is(err, ErrNone) {
				continue
			}
			if err != nil {
				return nil, err
			}
			found[byDigest[r.digest]] = document
		}
	}
	return found, nil
}

type row struct {
	digest, id string
	closed     []byte
}

// parameters returns n parameters of a statement, from a number on.
func parameters(from, n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = "$" + strconv.Itoa(from+i)
	}
	return strings.Join(names, ", ")
}

// Use lets what is found under keys live as long again.
func (k *Kind) Use(tx *store.Tx, owner string, keys []string) error {
	owner = store.Owner(owner)
	now, err := tx.Now()
	if err != nil {
		return err
	}
	expires := store.Time(now.Add(k.Life))
	for _, key := range keys {
		if _, err := tx.Exec("UPDATE "+k.table()+" SET expires = $1 WHERE owner = $2 AND id = (SELECT "+k.Name+" FROM "+k.keys()+" WHERE owner = $2 AND digest = $3)", expires, owner, Digest(key)); err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE "+k.keys()+" SET expires = $1 WHERE owner = $2 AND digest = $3", expires, owner, Digest(key)); err != nil {
			return err
		}
	}
	return nil
}

// Drop forgets a key of a document.
func (k *Kind) Drop(tx *store.Tx, owner, key string) error {
	owner = store.Owner(owner)
	_, err := tx.Exec("DELETE FROM "+k.keys()+" WHERE owner = $1 AND digest = $2", owner, Digest(key))
	return err
}

// Has reports whether a key leads anywhere.
func (k *Kind) Has(tx *store.Tx, owner, key string) (there bool, err error) {
	owner = store.Owner(owner)
	err = tx.Row("SELECT EXISTS (SELECT 1 FROM "+k.keys()+" WHERE owner = $1 AND digest = $2)", []any{owner, Digest(key)}, &there)
	return there, err
}

// Prints returns the prints of an owner's keys, of no more than most of them, and of some that
// may have expired.
func (k *Kind) Prints(tx *store.Tx, owner string, most int) (prints []uint64, err error) {
	err = tx.Rows("SELECT substr(digest, 1, 16) FROM "+k.keys()+" WHERE owner = $1 LIMIT $2", []any{store.Owner(owner), most}, func(scan func(...any) error) error {
		var digest string
		if err := scan(&digest); err != nil {
			return err
		}
		print, err := strconv.ParseUint(digest, 16, 64)
		prints = append(prints, print)
		return err
	})
	return prints, err
}

// Any reports whether an owner has anything.
func (k *Kind) Any(tx *store.Tx, owner string) (there bool, err error) {
	owner = store.Owner(owner)
	err = tx.Row("SELECT EXISTS (SELECT 1 FROM "+k.table()+" WHERE owner = $1)", []any{owner}, &there)
	return there, err
}

// Digest is what a key is stored as: it may hold words of its owner.
func Digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Print is the beginning of a key's digest, as a number.
func Print(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}
