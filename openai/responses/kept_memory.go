package responses

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
)

// MemoryConversations are [Conversations] in this process. The zero value is ready.
type MemoryConversations struct {
	// Bytes is the most that is kept in all; 64 MiB if zero. Where there is no room, the
	// caller who holds most gives up what it used longest ago.
	Bytes int64
	// TTL is the time after its last use that a conversation is kept; 24 hours if zero.
	TTL time.Duration

	mu     sync.Mutex
	ready  bool
	kept   bounded.Map[*Kept]
	claims map[[2]string]claim // by caller and id
}

type claim struct {
	holder string
	until  time.Time
}

var _ Conversations = (*MemoryConversations)(nil)

// lock makes the maps ready.
func (m *MemoryConversations) lock() {
	m.mu.Lock()
	if m.ready {
		return
	}
	m.ready, m.claims = true, map[[2]string]claim{}
	m.kept.Bytes, m.kept.Age = m.Bytes, m.TTL
	if m.Bytes <= 0 {
		m.kept.Bytes = 64 << 20
	}
	if m.TTL <= 0 {
		m.kept.Age = 24 * time.Hour
	}
}

// Put implements [Conversations].
func (m *MemoryConversations) Put(_ context.Context, caller string, k *Kept) error {
	m.lock()
	defer m.mu.Unlock()
	m.kept.Put(caller, k.ID, k, k.Size())
	return nil
}

// Get implements [Conversations].
func (m *MemoryConversations) Get(_ context.Context, caller, id string) (*Kept, error) {
	m.lock()
	defer m.mu.Unlock()
	k, ok := m.kept.Get(caller, id)
	if !ok {
		return nil, ErrNotKept
	}
	return k, nil
}

// Change implements [Conversations].
func (m *MemoryConversations) Change(_ context.Context, caller, id, holder string, change func(Kept) (*Kept, error)) (*Kept, error) {
	m.lock()
	defer m.mu.Unlock()
	k, ok := m.kept.Get(caller, id)
	if !ok {
		return nil, ErrNotKept
	}
	if holder != "" && m.claims[[2]string{caller, id}].holder != holder {
		return nil, ErrClaimed
	}
	k, err := change(*k)
	if err == nil {
		m.kept.Put(caller, id, k, k.Size())
	}
	return k, err
}

// Delete implements [Conversations].
func (m *MemoryConversations) Delete(_ context.Context, caller, id string) (bool, error) {
	m.lock()
	defer m.mu.Unlock()
	_, ok := m.kept.Take(caller, id)
	delete(m.claims, [2]string{caller, id})
	return ok, nil
}

// Claim implements [Conversations].
func (m *MemoryConversations) Claim(_ context.Context, caller, id, holder string, life time.Duration) error {
	m.lock()
	defer m.mu.Unlock()
	if _, ok := m.kept.Get(caller, id); !ok {
		return ErrNotKept
	}
	at := [2]string{caller, id}
	if has := m.claims[at]; has.holder != "" && has.holder != holder && time.Now().Before(has.until) {
		return ErrClaimed
	}
	m.claims[at] = claim{holder, time.Now().Add(life)}
	return nil
}

// Release implements [Conversations].
func (m *MemoryConversations) Release(_ context.Context, caller, id, holder string) error {
	m.lock()
	defer m.mu.Unlock()
	if at := [2]string{caller, id}; m.claims[at].holder == holder {
		delete(m.claims, at)
	}
	return nil
}
