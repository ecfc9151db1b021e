// Package weakcache keeps what was made of a value for exactly as long as the value
// itself is in use: names for a list of tools, views of it, an index over it. What
// is kept costs nothing once the list is gone, so nobody has to say how many lists
// there may be.
package weakcache

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// A Map keeps a V for each K that is still in use, and is itself kept by none of them. The
// zero Map is empty. It is safe for concurrent use.
//
// A V must not lead back to its K, or neither is ever given up.
type Map[K, V any] struct {
	once sync.Once
	kept *kept[K, V]
}

// kept is apart from its Map, which is a part of something larger.
type kept[K, V any] struct {
	mu   sync.Mutex
	made map[weak.Pointer[K]]*made[V]
}

// made is what was made of a value, once it is.
type made[V any] struct {
	done atomic.Bool
	mu   sync.Mutex
	v    V
}

// get returns what make makes, the first time. Nothing keeps make, so that closures cost
// no allocation. Where it panics, the next one tries again.
func (m *made[V]) get(make func() V) V {
	if m.done.Load() {
		return m.v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.done.Load() {
		m.v = make()
		m.done.Store(true)
	}
	return m.v
}

// A going is a value that goes, and where what was made of it is.
type going[K, V any] struct {
	key  weak.Pointer[K]
	from weak.Pointer[kept[K, V]]
}

func (m *Map[K, V]) all() *kept[K, V] {
	m.once.Do(func() { m.kept = &kept[K, V]{made: map[weak.Pointer[K]]*made[V]{}} })
	return m.kept
}

// Get returns what make made of a value, now or earlier. Whoever asks for the same
// value meanwhile waits, and nobody else does.
func (m *Map[K, V]) Get(of *K, make func() V) V {
	key, k := weak.Make(of), m.all()
	k.mu.Lock()
	found, ok := k.made[key]
	if !ok {
		found = new(made[V])
		k.made[key] = found
		runtime.AddCleanup(of, forget, going[K, V]{key, weak.Make(k)})
	}
	k.mu.Unlock()
	return found.get(make)
}

// Len returns how many values are kept.
func (m *Map[K, V]) Len() int {
	k := m.all()
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.made)
}

func forget[K, V any](g going[K, V]) {
	k := g.from.Value()
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.made, g.key)
}
