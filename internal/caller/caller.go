// Package caller says who is asking. Everything that is kept or counted for
// somebody is keyed by a [Caller].
package caller

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// A Caller is who makes a request.
type Caller struct {
	// ID is stable and unique among callers; it is no secret.
	ID string
}

// Local is the caller where nobody has to say who they are: a person at the
// terminal, or any program on this machine while the gateway has no keys.
var Local = Caller{ID: "local"}

// ErrNoKey means that a request carries no key, and ErrWrongKey that it carries
// one that we do not know.
var (
	ErrNoKey    = errors.New("no API key")
	ErrWrongKey = errors.New("unknown API key")
)

// Keys recognises callers by API keys. The zero value has none and takes
// everybody for [Local].
type Keys struct {
	sums map[string][32]byte // by caller id; the keys themselves are not kept
}

// NewKeys returns Keys that know each of the keys; an empty one is none. The
// caller's ID is derived from the key, and says nothing about it.
func NewKeys(keys ...string) *Keys {
	k := &Keys{}
	for _, key := range keys {
		if key == "" {
			continue
		}
		if k.sums == nil {
			k.sums = map[string][32]byte{}
		}
		sum := sha256.Sum256([]byte(key))
		id := sha256.Sum256(sum[:])
		k.sums["key-"+hex.EncodeToString(id[:4])] = sum
	}
	return k
}

// CheckKey reports why a key must not be used: it can be guessed. A key has at
// least 16 characters, of which at least 8 are different ones; 16 characters of
// base64 are 96 bits.
func CheckKey(key string) error {
	different := map[rune]bool{}
	for _, r := range key {
		different[r] = true
	}
	switch {
	case key == "":
		return errors.New("an empty key would let everybody in")
	case len(key) < 16:
		return errors.New("a key with fewer than 16 characters can be guessed")
	case len(different) < 8:
		return errors.New("a key with fewer than 8 different characters can be guessed")
	}
	return nil
}

// Required reports whether requests need a key.
func (k *Keys) Required() bool { return len(k.sums) > 0 }

// Recognise returns the caller of a request by its Authorization header
// ("Bearer", as OpenAI clients send it) or its api-key header (as Azure's do).
func (k *Keys) Recognise(r *http.Request) (Caller, error) {
	if !k.Required() {
		return Local, nil
	}
	key := r.Header.Get("Api-Key")
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(token)
	}
	if key == "" {
		return Caller{}, ErrNoKey
	}
	sum := sha256.Sum256([]byte(key))
	for id, have := range k.sums {
		if subtle.ConstantTimeCompare(sum[:], have[:]) == 1 {
			return Caller{ID: id}, nil
		}
	}
	return Caller{}, ErrWrongKey
}
