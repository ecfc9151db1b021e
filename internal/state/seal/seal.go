// Package seal closes what leaves us and comes back: continuations of calls, cursors,
// sessions, reasoning that clients keep for us. What is sealed can be read by nobody
// else, and comes back whole, for its purpose, to whom it was given and in time, or not
// at all.
//
// A [Ring] has the keys: one generation that seals, and older ones that still open. A
// [Purpose] has a key of its own from each (HKDF, RFC 5869), so that nothing that was
// sealed for one is good for another. What it is bound to, such as its owner and its
// target, is no part of it and has to be known again to open it.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Purpose is what something is sealed for.
type Purpose struct {
	// Name sets its keys apart from those of all others.
	Name string
	// Life is how long what is sealed can be opened, where no shorter time is given. A
	// generation of keys is kept for as long after it has sealed last.
	Life time.Duration
}

// The purposes, each with the life that docs/design.md gives it.
var (
	// Continuation is the state of a call that asks. It is good for as long as the
	// questions stand, which is 5 minutes where they do not say, and longer for those to
	// operators.
	Continuation = Purpose{"continuation", 7 * 24 * time.Hour}
	// Cursor is a place in a list or in a result that was cut.
	Cursor = Purpose{"cursor", 15 * time.Minute}
	// Task names a task that a server, or we, run for a caller.
	Task = Purpose{"task", 7 * 24 * time.Hour}
	// Session is a session of a legacy MCP client. Many clients never begin another one.
	Session = Purpose{"session", 30 * 24 * time.Hour}
	// Login is a login at a server that was begun.
	Login = Purpose{"login", 15 * time.Minute}
	// Consent is a client's answer to what its own request asked for.
	Consent = Purpose{"consent", 30 * 24 * time.Hour}
	// Reasoning is what a model thought, for clients that keep their own history.
	Reasoning = Purpose{"reasoning", 30 * 24 * time.Hour}
	// Compaction is a summary in place of a conversation, which its client keeps.
	Compaction = Purpose{"compaction", 30 * 24 * time.Hour}
	// Item says that an item of a conversation is as we gave it to a client.
	Item = Purpose{"item", 30 * 24 * time.Hour}
)

// Why something cannot be opened.
var (
	// ErrForeign: no key that is here has sealed it. Another gateway may have.
	ErrForeign = errors.New("sealed with a key that is not here")
	// ErrForged: it is not what was sealed, or not for this purpose, owner or target.
	ErrForged = errors.New("not sealed for this")
	// ErrExpired: its time is over.
	ErrExpired = errors.New("the seal has expired")
)

// A Key is one generation.
type Key struct {
	// ID tells it from others; it stands in what it seals.
	ID uint32
	// Secret is its 32 random bytes.
	Secret [32]byte
}

// NewKey returns a random key.
func NewKey() Key {
	var k Key
	var id [4]byte
	_, _ = rand.Read(k.Secret[:]) // it never fails
	_, _ = rand.Read(id[:])
	k.ID = binary.BigEndian.Uint32(id[:])
	return k
}

// A Ring has the keys of a gateway. Make it with [New]; it is safe for concurrent use.
type Ring struct {
	mu    sync.RWMutex
	keys  []Key // the first one seals
	boxes map[box]cipher.AEAD
	ahead func() time.Duration // of the clock by which seals end; nil where that is this machine's
}

// A box is what seals for one purpose with one key.
type box struct {
	key     uint32
	purpose string
}

// New returns a ring whose first key seals, and whose others only open. Without any it
// has a random one, and what it seals ends with it.
func New(keys ...Key) *Ring {
	r := &Ring{}
	if len(keys) == 0 {
		keys = []Key{NewKey()}
	}
	r.Set(keys...)
	return r
}

// Process returns the ring of this process, whose key is random: what it seals is good in it
// alone. It is for those who were given no other.
var Process = sync.OnceValue(func() *Ring { return New() })

// Set replaces the keys: the first one seals, all open. What is sealed with a key that
// goes cannot be opened any more.
func (r *Ring) Set(keys ...Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.boxes = slices.Clone(keys), map[box]cipher.AEAD{}
}

// Share says how far this machine's clock is before one that all have who share the keys: from
// then on seals end by that one, whoever opens them.
func (r *Ring) Share(ahead func() time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead = ahead
}

// shared returns a time of this machine's clock by the one that all have.
func (r *Ring) shared(t time.Time) time.Time {
	r.mu.RLock()
	ahead := r.ahead
	r.mu.RUnlock()
	if ahead == nil {
		return t
	}
	return t.Add(-ahead())
}

// The layout of what is sealed: the format, the key's ID, a nonce, and sealed the end of
// its time in milliseconds since 1970 with what it holds.
const (
	format     = 1
	idAt       = 1
	nonceAt    = idAt + 4
	nonceSize  = 12
	head       = nonceAt + nonceSize
	expirySize = 8
)

// Overhead is how much longer something is when it is sealed, in bytes.
const Overhead = head + expirySize + 16

// Close seals plain for a purpose, bound to what [Bind] made of its owner and target. It
// can be opened until expires, by this machine's clock, or for the life of the purpose where
// that ends sooner or expires is zero.
func (r *Ring) Close(p Purpose, bound, plain []byte, expires time.Time) []byte {
	if latest := time.Now().Add(p.Life); expires.IsZero() || expires.After(latest) {
		expires = latest
	}
	r.mu.RLock()
	key := r.keys[0]
	r.mu.RUnlock()
	aead := r.box(key, p)
	out := make([]byte, head, Overhead+len(plain))
	out[0] = format
	binary.BigEndian.PutUint32(out[idAt:], key.ID)
	_, _ = rand.Read(out[nonceAt:head])
	inside := binary.BigEndian.AppendUint64(make([]byte, 0, expirySize+len(plain)), uint64(r.shared(expires).UnixMilli()))
	return aead.Seal(out, out[nonceAt:head], append(inside, plain...), bound)
}

// Open returns what was sealed for a purpose, bound to the same. The error is one of
// [ErrForeign], [ErrForged] and [ErrExpired].
func (r *Ring) Open(p Purpose, bound, sealed []byte) (plain []byte, err error) {
	if len(sealed) < Overhead || sealed[0] != format {
		return nil, ErrForged
	}
	id := binary.BigEndian.Uint32(sealed[idAt:])
	r.mu.RLock()
	at := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
	var key Key
	if at >= 0 {
		key = r.keys[at]
	}
	r.mu.RUnlock()
	if at < 0 {
		return nil, ErrForeign
	}
	inside, err := r.box(key, p).Open(nil, sealed[nonceAt:head], sealed[head:], bound)
	if err != nil {
		return nil, ErrForged
	}
	if r.shared(time.Now()).UnixMilli() > int64(binary.BigEndian.Uint64(inside)) {
		return nil, ErrExpired
	}
	return inside[expirySize:], nil
}

// box returns what seals for a purpose with a key. It is made once.
func (r *Ring) box(key Key, p Purpose) cipher.AEAD {
	of := box{key.ID, p.Name}
	r.mu.RLock()
	aead := r.boxes[of]
	r.mu.RUnlock()
	if aead != nil {
		return aead
	}
	secret, err := hkdf.Key(sha256.New, key.Secret[:], nil, "dragoman seal "+p.Name, 32)
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err)) // the length is one that HKDF has
	}
	block, err := aes.NewCipher(secret)
	if err == nil {
		aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err)) // the size of the key is right
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boxes[of] = aead
	return aead
}

// Bind returns what something is bound to: a digest of parts whose borders count.
func Bind(parts ...[]byte) []byte {
	h := sha256.New()
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return h.Sum(nil)
}
