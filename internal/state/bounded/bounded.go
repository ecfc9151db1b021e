// Package bounded keeps values in memory for a while: no more than so many bytes
// of them, no longer than so long after their last use, and each for its owner
// alone. When room is needed the owner who holds most gives up what it used
// longest ago, so that nobody can push out what others keep.
package bounded

import (
	"sync"
	"time"
)

// Overhead is what an entry counts beside its own size, so that many small ones
// are bounded too.
const Overhead = 512

// A Map keeps values by owner and key. The fields must be set before the first
// use, and by [Map.Bound] later; a zero Map keeps nothing. It is safe for concurrent use and needs no
// closing.
type Map[V any] struct {
	// Bytes bounds the size of all values together.
	Bytes int64
	// Age is how long a value is kept after its last use.
	Age time.Duration

	mu     sync.Mutex
	owners map[string]*owner[V]
	size   int64
}

type owner[V any] struct {
	entries     map[string]*entry[V]
	first, last *entry[V] // in the order of their last use
	size        int64
}

// An entry is one thing in memory, with its place in the order of its owner's: there may be
// hundreds of thousands, all of which each collection of garbage walks over.
type entry[V any] struct {
	key          string
	value        V
	size         int64
	used         time.Time
	before, next *entry[V]
}

// push puts an entry at the end of the order.
func (o *owner[V]) push(e *entry[V]) {
	if e.before, e.next = o.last, nil; o.last == nil {
		o.first = e
	} else {
		o.last.next = e
	}
	o.last = e
}

// pull takes an entry out of the order.
func (o *owner[V]) pull(e *entry[V]) {
	if e.before == nil {
		o.first = e.next
	} else {
		e.before.next = e.next
	}
	if e.next == nil {
		o.last = e.before
	} else {
		e.next.before = e.before
	}
}

// Bound sets Bytes and Age while the map is in use. What there is no room for any more
// goes, as when something is put.
func (m *Map[V]) Bound(bytes int64, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Bytes, m.Age = bytes, age
	m.expire()
	for m.size > m.Bytes {
		m.evict()
	}
}

// Put keeps a value of about size bytes in place of an older one of the same
// owner and key. It reports whether there is room for it at all.
func (m *Map[V]) Put(of, key string, value V, size int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	size += Overhead
	m.remove(of, key)
	m.expire()
	if size > m.Bytes {
		return false
	}
	for m.size+size > m.Bytes {
		m.evict()
	}
	if m.owners == nil {
		m.owners = map[string]*owner[V]{}
	}
	o := m.owners[of]
	if o == nil {
		o = &owner[V]{entries: map[string]*entry[V]{}}
		m.owners[of] = o
	}
	e := &entry[V]{key: key, value: value, size: size, used: time.Now()}
	o.entries[key] = e
	o.push(e)
	o.size += size
	m.size += size
	return true
}

// Get returns a value of an owner and counts as its use.
func (m *Map[V]) Get(of, key string) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.owners[of]
	if o == nil || o.entries[key] == nil {
		return value, false
	}
	e := o.entries[key]
	if time.Since(e.used) >= m.Age {
		m.remove(of, key)
		return value, false
	}
	e.used = time.Now()
	o.pull(e)
	o.push(e)
	return e.value, true
}

// Take returns a value of an owner and removes it: of those who take it at the same
// time, one gets it.
func (m *Map[V]) Take(of, key string) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.owners[of]; o != nil && o.entries[key] != nil {
		e := o.entries[key]
		value, ok = e.value, time.Since(e.used) < m.Age
		m.remove(of, key)
	}
	return value, ok
}

// Values returns the values of an owner, the longest unused first. It does not
// count as a use of them.
func (m *Map[V]) Values(of string) (values []V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	if o := m.owners[of]; o != nil {
		for e := o.first; e != nil; e = e.next {
			values = append(values, e.value)
		}
	}
	return values
}

// Delete removes a value.
func (m *Map[V]) Delete(of, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(of, key)
}

// Clear deletes everybody's values.
func (m *Map[V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owners, m.size = nil, 0
}

// Has reports whether anything is kept for an owner.
func (m *Map[V]) Has(of string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owners[of] != nil
}

// Held returns how many values are kept, and their size in bytes.
func (m *Map[V]) Held() (values int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	for _, o := range m.owners {
		values += len(o.entries)
	}
	return values, m.size
}

func (m *Map[V]) remove(of, key string) {
	o := m.owners[of]
	if o == nil || o.entries[key] == nil {
		return
	}
	e := o.entries[key]
	o.pull(e)
	delete(o.entries, key)
	o.size -= e.size
	m.size -= e.size
	if len(o.entries) == 0 {
		delete(m.owners, of)
	}
}

// expire removes what is too old.
func (m *Map[V]) expire() {
	for name, o := range m.owners {
		for o.first != nil && time.Since(o.first.used) >= m.Age {
			m.remove(name, o.first.key)
		}
	}
}

// evict removes what the owner who holds most used longest ago.
func (m *Map[V]) evict() {
	most, size := "", int64(-1)
	for name, o := range m.owners {
		if o.size > size || o.size == size && name < most {
			most, size = name, o.size
		}
	}
	m.remove(most, m.owners[most].first.key)
}
