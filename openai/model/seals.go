package model

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
)

// Seals have the keys that seal what clients keep of their conversations and send back: the
// thoughts of a model, the calls that were made and those that they approve. They are made
// once, with [NewSeals], and are safe for concurrent use.
type Seals = seal.Ring

// NewSeals returns seals by secrets, 32 random bytes each. The first one seals and all open,
// so that a new one can be put before the old. Processes that serve the same clients are
// given the same ones. Without any, the secret is random, and what it seals is good as long
// as the process is there.
func NewSeals(secrets ...[32]byte) *Seals {
	keys := make([]seal.Key, len(secrets))
	for i, secret := range secrets {
		sum := sha256.Sum256(append([]byte("dragoman key id "), secret[:]...))
		keys[i] = seal.Key{ID: binary.BigEndian.Uint32(sum[:]), Secret: secret}
	}
	return seal.New(keys...)
}
