// Package bounded keeps values in memory for a while: no more than so many bytes
// of them, no longer than so long after their last use, and each for its owner
// alone. When room is needed the owner who holds most gives up what it used
// longest ago, so that nobody can push out what others keep.
package bounded

import (
	"container/heap"
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
	order  bySize[V] // the owners
	size   int64
	began  time.Time
	due    time.Duration // before which nobody has to look for what is too old
}

// bySize is a heap of owners, of which the first holds most.
type bySize[V any] []*owner[V]

func (h bySize[V]) Len() int { return len(h) }

func (h bySize[V]) Less(i, j int) bool {
	return h[i].size > h[j].size || h[i].size == h[j].size && h[i].name < h[j].name
}

func (h bySize[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *bySize[V]) Push(o any) { *h = append(*h, o.(*owner[V])) }

func (h *bySize[V]) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return o
}

// An owner's entries stand in one slice, and name each other by their places in it: there may
// be hundreds of thousands, and a collection of garbage goes through a slice, where it would
// have to look for each that is alone.
type owner[V any] struct {
	name    string
	at      int              // in the order of owners
	places  map[string]int32 // of the entries, by key
	entries []entry[V]       // at 0 is none: the order of their last use begins and ends there
	free    int32            // the first place that is free; 0 for none
	size    int64
}

// An entry is one value, with its place in the order of its owner's.
type entry[V any] struct {
	key          string
	value        V
	size         int64
	used         time.Duration // when it was used last; see now
	before, next int32
}

// now returns the time since the map was first used, in which its times are. mu is held.
func (m *Map[V]) now() time.Duration {
	if m.began.IsZero() {
		m.began = time.Now()
	}
	return time.Since(m.began)
}

// push puts an entry at the end of the order.
func (o *owner[V]) push(at int32) {
	last := o.entries[0].before
	o.entries[at].before, o.entries[at].next = last, 0
	o.entries[last].next, o.entries[0].before = at, at
}

// pull takes an entry out of the order.
func (o *owner[V]) pull(at int32) {
	before, next := o.entries[at].before, o.entries[at].next
	o.entries[before].next, o.entries[next].before = next, before
}

// first returns the entry that was used longest ago.
func (o *owner[V]) first() *entry[V] { return &o.entries[o.entries[0].next] }

// add puts an entry where there is room.
func (o *owner[V]) add(e entry[V]) {
	at := o.free
	if at == 0 {
		at = int32(len(o.entries))
		o.entries = append(o.entries, e)
	} else {
		o.free = o.entries[at].next
		o.entries[at] = e
	}
	o.places[e.key] = at
	o.size += e.size
	o.push(at)
}

// Bound sets Bytes and Age while the map is in use. What there is no room for any more
// goes, as when something is put.
func (m *Map[V]) Bound(bytes int64, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Bytes, m.Age = bytes, age
	m.expire(m.now())
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
	if o, at := m.find(of, key); at != 0 {
		m.remove(o, at)
	}
	now := m.now()
	if now >= m.due {
		m.expire(now)
	}
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
		o = &owner[V]{name: of, at: len(m.order), places: map[string]int32{}, entries: make([]entry[V], 1, 2)}
		m.owners[of] = o
		heap.Push(&m.order, o)
	}
	o.add(entry[V]{key: key, value: value, size: size, used: now})
	m.size += size
	heap.Fix(&m.order, o.at)
	return true
}

// find returns an owner, nil for none, and the place of an entry; 0 for none.
func (m *Map[V]) find(of, key string) (*owner[V], int32) {
	o := m.owners[of]
	if o == nil {
		return nil, 0
	}
	return o, o.places[key]
}

// Get returns a value of an owner and counts as its use.
func (m *Map[V]) Get(of, key string) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, at := m.find(of, key)
	if at == 0 {
		return value, false
	}
	e, now := &o.entries[at], m.now()
	if now-e.used >= m.Age {
		m.remove(o, at)
		return value, false
	}
	if e.used = now; e.next != 0 {
		o.pull(at)
		o.push(at)
	}
	return e.value, true
}

// Take returns a value of an owner and removes it: of those who take it at the same
// time, one gets it.
func (m *Map[V]) Take(of, key string) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, at := m.find(of, key); at != 0 {
		e := &o.entries[at]
		value, ok = e.value, m.now()-e.used < m.Age
		m.remove(o, at)
	}
	return value, ok
}

// Values returns the values of an owner, the longest unused first. It does not
// count as a use of them.
func (m *Map[V]) Values(of string) (values []V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(m.now())
	if o := m.owners[of]; o != nil {
		for at := o.entries[0].next; at != 0; at = o.entries[at].next {
			values = append(values, o.entries[at].value)
		}
	}
	return values
}

// Delete removes a value.
func (m *Map[V]) Delete(of, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, at := m.find(of, key); at != 0 {
		m.remove(o, at)
	}
}

// Clear deletes everybody's values.
func (m *Map[V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owners, m.order, m.size = nil, nil, 0
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
	m.expire(m.now())
	for _, o := range m.owners {
		values += len(o.places)
	}
	return values, m.size
}

// remove takes an entry away, and its owner with the last one.
func (m *Map[V]) remove(o *owner[V], at int32) {
	e := &o.entries[at]
	o.pull(at)
	delete(o.places, e.key)
	o.size -= e.size
	m.size -= e.size
	*e = entry[V]{next: o.free}
	if o.free = at; len(o.places) > 0 {
		heap.Fix(&m.order, o.at)
		return
	}
	heap.Remove(&m.order, o.at)
	delete(m.owners, o.name)
}

// expire removes what is too old.
func (m *Map[V]) expire(now time.Duration) {
	oldest := now
	for _, o := range m.owners {
		for len(o.places) > 0 && now-o.first().used >= m.Age {
			m.remove(o, o.entries[0].next)
		}
		if len(o.places) > 0 {
			oldest = min(oldest, o.first().used)
		}
	}
	// Who asks for a value gets none that is too old in any case, so that this need not be
	// done for each that is put.
	m.due = now + min(max(m.Age-(now-oldest), m.Age/64), time.Hour)
}

// evict removes what the owner who holds most used longest ago.
func (m *Map[V]) evict() {
	o := m.order[0]
	m.remove(o, o.entries[0].next)
}
