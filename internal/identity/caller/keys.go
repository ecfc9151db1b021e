package caller

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// fixed are the keys of the configuration; the keys themselves are not kept.
type fixed struct {
	callers map[[sha256.Size]byte]string // digest of a key → the caller's ID
	ids     map[string]bool
}

// newFixed knows each of the keys; an empty one is none. The caller's ID is derived
// from the key, and says nothing about it.
func newFixed(keys []secret.Text) fixed {
	f := fixed{map[[sha256.Size]byte]string{}, map[string]bool{}}
	for _, key := range keys {
		if key.IsZero() {
			continue
		}
		sum := sha256.Sum256([]byte(key.Reveal()))
		digest := sha256.Sum256(sum[:])
		id := apikey.CallerPrefix + hex.EncodeToString(digest[:4])
		f.callers[sum], f.ids[id] = id, true
	}
	return f
}

// recognise looks a key up by its digest: how long that takes tells of digests, to which
// nobody can make keys.
func (f fixed) recognise(key string) (who Caller, ok bool) {
	id, ok := f.callers[sha256.Sum256([]byte(key))]
	if !ok {
		return Caller{}, false
	}
	return Caller{ID: id, Name: id, Grants: everyday}, true
}

// has reports whether a caller has one of the keys.
func (f fixed) has(caller string) bool { return f.ids[caller] }

// The reasons why a key is refused. errKeysFile is our trouble.
var (
	errUnknownKey = errors.New("unknown API key")
	errExpiredKey = errors.New("the API key has expired")
	errKeysFile   = errors.New("the file of keys cannot be used")
)

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
	case !apikey.Matches(key, r.Hash), f.isRevoked(r.ID):
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
	who := Caller{ID: apikey.CallerPrefix + r.ID, Name: name, Grants: r.Rights, Expires: r.Expires}
	if !f.present.saw(who.ID, r) {
		f.end(who.ID)
		f.present.saw(who.ID, r)
	}
	return who, nil
}
