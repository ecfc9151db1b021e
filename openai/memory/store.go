package memory

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
)

// A Store keeps turns for a while. It is safe for concurrent use. What it forgets
// costs a model the memory of its tools, and never more: the client halves tell a
// turn that is lost from one that never was.
type Store interface {
	// Keep stores an owner's turn under each of keys, in place of older ones.
	Keep(ctx context.Context, owner string, keys []string, t *Turn) error
	// Find returns those of an owner's turns that are kept under one of keys, by
	// key. It asks for all at once, since a request asks for as many keys as its
	// history has messages, or a few times as many. A turn may be found again and again:
	// a conversation can branch.
	Find(ctx context.Context, owner string, keys []string) (map[string]*Turn, error)
	// Drop forgets what an owner has under a key.
	Drop(ctx context.Context, owner, key string) error
	// Any reports whether anything can be kept for an owner. It saves the work of
	// making keys where that is known for certain, and may say true where it is
	// not.
	Any(ctx context.Context, owner string) bool
}

// Memory is a [Store] in this process. The zero value is ready.
type Memory struct {
	// Bytes is the most that is kept in all; 64 MiB if zero. Where there is no
	// room, the owner who holds most gives up what it used longest ago.
	Bytes int64
	// TTL is the time after its last use that a turn is kept; 1 hour if zero.
	TTL time.Duration

	once  sync.Once
	turns bounded.Map[*Turn]
}

var _ Store = (*Memory)(nil)

func (m *Memory) kept() *bounded.Map[*Turn] {
	m.once.Do(func() { m.bound(m.Bytes, m.TTL) })
	return &m.turns
}

// Bound sets Bytes and TTL while the Memory is in use; zero is as there. Where there is
// less room, what was used longest ago goes.
func (m *Memory) Bound(bytes int64, ttl time.Duration) {
	m.kept()
	m.bound(bytes, ttl)
}

func (m *Memory) bound(bytes int64, ttl time.Duration) {
	if bytes <= 0 {
		bytes = 64 << 20
	}
	if ttl <= 0 {
		ttl = time.Hour
	}
	m.turns.Bound(bytes, ttl)
}

// Keep implements [Store]. A turn for which there is no room is not kept.
func (m *Memory) Keep(_ context.Context, owner string, keys []string, t *Turn) error {
	size := t.Size()
	for _, key := range keys {
		// Each key counts the whole turn, though they share it: any of them may be
		// the last to go.
		m.kept().Put(owner, key, t, size+int64(len(key)))
	}
	return nil
}

// Find implements [Store].
func (m *Memory) Find(_ context.Context, owner string, keys []string) (map[string]*Turn, error) {
	var found map[string]*Turn
	for _, key := range keys {
		if t, ok := m.kept().Get(owner, key); ok {
			if found == nil {
				found = map[string]*Turn{}
			}
			found[key] = t
		}
	}
	return found, nil
}

// Drop implements [Store].
func (m *Memory) Drop(_ context.Context, owner, key string) error {
	m.kept().Delete(owner, key)
	return nil
}

// Any implements [Store].
func (m *Memory) Any(_ context.Context, owner string) bool { return m.kept().Has(owner) }

// Size returns the size of everything that is kept, in bytes.
func (m *Memory) Size() int64 {
	_, bytes := m.kept().Held()
	return bytes
}
