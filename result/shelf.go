package result

import (
	"container/list"
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// Bounds of a Shelf.
const (
	DefaultShelfBytes = 64 << 20
	DefaultShelfAge   = 15 * time.Minute
)

// A Shelf keeps the whole of results that were cut, so that read_more can give
// the rest. It holds them in memory, bounded in bytes and in time, and gives
// each only to the caller whose result it was. The zero value is ready; a Shelf
// is safe for concurrent use and needs no closing.
//
// A Shelf lives in one process. Where several processes serve one caller, a
// handle of another process is like an expired one: the model is told to make
// the call again.
type Shelf struct {
	// Bytes is the size of all results together; DefaultShelfBytes if zero. When
	// it is reached the caller who holds most loses the oldest result.
	Bytes int64
	// Age is how long a result is kept after it was last used; DefaultShelfAge
	// if zero.
	Age time.Duration

	mu      sync.Mutex
	results map[string]*kept // by handle
	callers map[string]*held
	bytes   int64
}

// held is what one caller has on the shelf.
type held struct {
	bytes int64
	order list.List // of *kept, the one that was used longest ago first
}

// kept is one result on a shelf. Its documents never change.
type kept struct {
	roots []root
	blobs []binary
	limit int // characters of a message that shows a page

	handle string
	caller string
	size   int64
	used   time.Time
	place  *list.Element
}

// A root is a document in a kept result and the pointer that leads to it from
// the message.
type root struct {
	pointer string
	piece
}

// kept returns what a shelf has to keep of v.
func (v *view) kept(raw bool, limit int) *kept {
	k := &kept{blobs: v.blobs, limit: limit}
	k.roots = append(k.roots, root{"/data", v.data})
	if raw {
		k.roots[0].pointer = ""
	}
	if v.parts.doc != nil {
		k.roots = append(k.roots, root{"/meta/parts", v.parts})
	}
	const nodeSize = 56
	if v.reading != nil {
		k.size += int64(len(v.reading.doc.b) + nodeSize*len(v.reading.doc.tape))
	}
	for _, r := range k.roots {
		if r.owned > 0 {
			k.size += int64(r.owned + nodeSize*len(r.doc.tape))
		}
	}
	for _, bin := range k.blobs {
		k.size += int64(len(bin.base64)) // perhaps a second time
	}
	return k
}

// newHandle returns a name that nobody can guess: 80 random bits.
func newHandle() string { return strings.ToLower(rand.Text()[:16]) }

func (s *Shelf) limits() (bytes int64, age time.Duration) {
	bytes, age = s.Bytes, s.Age
	if bytes <= 0 {
		bytes = DefaultShelfBytes
	}
	if age <= 0 {
		age = DefaultShelfAge
	}
	return bytes, age
}

// takes reports whether a result of that many bytes can be kept at all: there
// must be room for what we make of it as well.
func (s *Shelf) takes(size int) bool {
	bytes, _ := s.limits()
	return int64(size)*3 <= bytes
}

func (s *Shelf) keep(caller, handle string, k *kept) {
	bytes, _ := s.limits()
	k.handle, k.caller, k.used = handle, caller, time.Now()
	k.size += 1 << 10 // so that many small ones are bounded too

	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if s.results == nil {
		s.results, s.callers = map[string]*kept{}, map[string]*held{}
	}
	h := s.callers[caller]
	if h == nil {
		h = &held{}
		s.callers[caller] = h
	}
	s.results[handle] = k
	k.place = h.order.PushBack(k)
	h.bytes += k.size
	s.bytes += k.size
	for s.bytes > bytes && len(s.results) > 1 {
		s.drop(s.victim(k))
	}
}

// victim chooses what goes next: of the caller who holds most, apart from the
// newest result, the one that was used longest ago.
func (s *Shelf) victim(newest *kept) *kept {
	var victim *kept
	var most int64
	for caller, h := range s.callers {
		bytes, first := h.bytes, h.order.Front().Value.(*kept)
		if caller == newest.caller {
			bytes -= newest.size
		}
		if first != newest && bytes > most {
			victim, most = first, bytes
		}
	}
	return victim
}

func (s *Shelf) drop(k *kept) {
	delete(s.results, k.handle)
	s.bytes -= k.size
	h := s.callers[k.caller]
	h.order.Remove(k.place)
	if h.bytes -= k.size; h.order.Len() == 0 {
		delete(s.callers, k.caller)
	}
}

func (s *Shelf) expire() {
	_, age := s.limits()
	for _, h := range s.callers {
		for e := h.order.Front(); e != nil; e = h.order.Front() {
			k := e.Value.(*kept)
			if time.Since(k.used) < age {
				break
			}
			s.drop(k)
		}
	}
}

// get returns a result of the caller's, and nothing of anybody else's.
func (s *Shelf) get(caller, handle string) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	k := s.results[handle]
	if k == nil || k.caller != caller {
		return nil
	}
	k.used = time.Now()
	s.callers[caller].order.MoveToBack(k.place)
	return k
}

// Held returns how many results are kept, and their size in bytes.
func (s *Shelf) Held() (results int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return len(s.results), s.bytes
}
