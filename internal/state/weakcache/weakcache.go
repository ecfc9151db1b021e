// Package weakcache keeps what was made of a value for exactly as long as the value
// itself is in use: names for a list of tools, views of it, an index over it. What
// is kept costs nothing once the list is gone, so nobody has to say how many lists
// there may be.
package weakcache

import (
	"runtime"
	"sync"
	"weak"
)

// A Map keeps a V for each K that is still in use. The zero Map is empty. It is
// safe for concurrent use.
//
// A V must not lead back to its K, or neither is ever given up.
type Map[K, V any] struct {
	mu   sync.Mutex
	made map[weak.Pointer[K]]func() V
}

// Get returns what make made of a value, now or earlier. Whoever asks for the same
// value meanwhile waits, and nobody else does.
func (m *Map[K, V]) Get(of *K, make func() V) V {
	key := weak.Make(of)
	m.mu.Lock()
	once, ok := m.made[key]
	if !ok {
		if m.made == nil {
			m.made = map[weak.Pointer[K]]func() V{}
		}
		once = sync.OnceValue(make)
		m.made[key] = once
		runtime.AddCleanup(of, m.forget, key)
	}
	m.mu.Unlock()
	return once()
}

// Len returns how many values are kept.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.made)
}

func (m *Map[K, V]) forget(key weak.Pointer[K]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.made, key)
}
