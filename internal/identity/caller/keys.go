package caller

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// fixed are the keys of the configuration; the keys themselves are not kept.
type fixed []fixedKey

type fixedKey struct {
	id  string
	sum [sha256.Size]byte
}

// newFixed knows each of the keys; an empty one is none. The caller's ID is derived
// from the key, and says nothing about it.
func newFixed(keys []secret.Text) (f fixed) {
	for _, key := range keys {
		if key.IsZero() {
			continue
		}
		sum := sha256.Sum256([]byte(key.Reveal()))
		id := sha256.Sum256(sum[:])
		f = append(f, fixedKey{"key-" + hex.EncodeToString(id[:4]), sum})
	}
	return f
}

// recognise compares a key with all that there are, in a time that says nothing
// about any.
func (f fixed) recognise(key string) (who Caller, ok bool) {
	sum := sha256.Sum256([]byte(key))
	found := -1
	for i := range f {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], f[i].sum[:]), i, found)
	}
	if found < 0 {
		return Caller{}, false
	}
	return Caller{ID: f[found].id, Name: f[found].id, Grants: everyday}, true
}

// The reasons why a key is refused. errKeysFile is our trouble.
var (
	errUnknownKey = errors.New("unknown API key")
	errExpiredKey = errors.New("the API key has expired")
	errKeysFile   = errors.New("the file of keys cannot be used")
)

// has reports whether a caller has one of the keys.
func (f fixed) has(caller string) bool {
	return slices.ContainsFunc(f, func(k fixedKey) bool { return k.id == caller })
}

// filed recognises a key of a file.
func (f *Authenticator) filed(file *apikey.File, key string) (Caller, error) {
	id, err := apikey.ID(key)
	if err != nil {
		return Caller{}, err
	}
	r, err := file.Get(id)
	switch {
	case errors.Is(err, apikey.ErrUnknown):
		return Caller{}, errUnknownKey
	case err != nil:
		return Caller{}, fmt.Errorf("%w: %w", errKeysFile, err)
	case !apikey.Matches(key, r.Hash):
		return Caller{}, errUnknownKey
	}
	return f.keyed(r)
}

// keyed returns whose a key of the file is, and notes that it is in use as it is now.
func (f *Authenticator) keyed(r apikey.Record) (Caller, error) {
	if r.Expired() {
		return Caller{}, errExpiredKey
	}
	name := r.Name
	if name == "" {
		name = r.User
	}
	who := Caller{ID: "key-" + r.ID, Name: name, Grants: r.Rights, Expires: r.Expires}
	if !f.present.saw(who.ID, r) {
		f.end(who.ID)
		f.present.saw(who.ID, r)
	}
	return who, nil
}
