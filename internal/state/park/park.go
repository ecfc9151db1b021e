// Package park keeps what waits for answers: calls that a server, a rule or a
// person has put a question to, until somebody brings the answer, nobody does in
// time, or there is no room.
package park

import (
	"sync"
	"time"
)

// A Lot keeps values by key until they are taken or their time is over. The
// fields must be set before the first use. It is safe for concurrent use.
type Lot[T any] struct {
	// Total bounds how many values are kept, and Each how many for one owner;
	// zero means no bound.
	Total, Each int
	// Expired is told of each value whose time is over, from a goroutine of its
	// own; nil means nobody.
	Expired func(key string, value T)

	mu     sync.Mutex
	spaces map[string]*space[T]
	owners map[string]int
	parked uint64 // so far
}

type space[T any] struct {
	owner  string
	number uint64 // grows with each value that is parked
	value  T
	timer  *time.Timer
}

// Park keeps a value for so long. It reports false, and keeps nothing, where
// there is no room or the key is taken.
func (l *Lot[T]) Park(owner, key string, value T, d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spaces == nil {
		l.spaces, l.owners = map[string]*space[T]{}, map[string]int{}
	}
	if l.spaces[key] != nil || l.Total > 0 && len(l.spaces) >= l.Total || l.Each > 0 && l.owners[owner] >= l.Each {
		return false
	}
	l.parked++
	s := &space[T]{owner: owner, number: l.parked, value: value}
	s.timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		mine := l.spaces[key] == s
		if mine {
			l.leave(key)
		}
		l.mu.Unlock()
		if mine && l.Expired != nil {
			l.Expired(key, value)
		}
	})
	l.spaces[key] = s
	l.owners[owner]++
	return true
}

// Take returns a value and keeps it no more. It reports false for a key that
// nobody parked, that was taken before, or whose time is over.
func (l *Lot[T]) Take(key string) (value T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.spaces[key]
	if s == nil {
		return value, false
	}
	s.timer.Stop()
	l.leave(key)
	return s.value, true
}

// TakeOldest takes, of the values of an owner, the one that was parked first. It
// reports false where the owner has none.
func (l *Lot[T]) TakeOldest(owner string) (value T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest *space[T]
	var key string
	for k, s := range l.spaces {
		if s.owner == owner && (oldest == nil || s.number < oldest.number) {
			oldest, key = s, k
		}
	}
	if oldest == nil {
		return value, false
	}
	oldest.timer.Stop()
	l.leave(key)
	return oldest.value, true
}

// Drop keeps no more those values of which over says that nobody comes for them.
func (l *Lot[T]) Drop(over func(T) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, s := range l.spaces {
		if over(s.value) {
			s.timer.Stop()
			l.leave(key)
		}
	}
}

// TakeAll empties the lot and returns what was in it.
func (l *Lot[T]) TakeAll() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []T
	for key, s := range l.spaces {
		s.timer.Stop()
		l.leave(key)
		all = append(all, s.value)
	}
	return all
}

// Len returns how many values are kept.
func (l *Lot[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.spaces)
}

func (l *Lot[T]) leave(key string) {
	owner := l.spaces[key].owner
	delete(l.spaces, key)
	if l.owners[owner]--; l.owners[owner] == 0 {
		delete(l.owners, owner)
	}
}
