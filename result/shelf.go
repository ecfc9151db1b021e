package result

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
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
// Where several processes serve one caller, Beyond keeps results for all of them.
// Without it a handle of another process is like an expired one: the model is told to
// make the call again.
type Shelf struct {
	// Bytes is the size of all results together; DefaultShelfBytes if zero. When
	// it is reached the caller who holds most loses the oldest result.
	Bytes int64
	// Age is how long a result is kept after it was last used; DefaultShelfAge
	// if zero.
	Age time.Duration
	// Beyond keeps results beside the memory; nil for nowhere. It is set before the
	// first use.
	Beyond Documents

	once    sync.Once
	results bounded.Map[*kept] // by caller and handle
}

// kept is one result on a shelf. Its documents never change.
type kept struct {
	roots []root
	blobs []binary
	limit int // characters of a message that shows a page
	size  int64
}

// A root is a document in a kept result and the pointer that leads to it from
// the message.
type root struct {
	pointer string
	piece
}

// kept returns what a shelf has to keep of v.
func (v *view) kept(raw bool, limit int) *kept {
	roots := []root{{"/data", v.data}}
	if raw {
		roots[0].pointer = ""
	}
	if v.parts.doc != nil {
		roots = append(roots, root{"/meta/parts", v.parts})
	}
	return newKept(v.reading, limit, v.blobs, roots)
}

func newKept(r *reading, limit int, blobs []binary, roots []root) *kept {
	k := &kept{roots: roots, blobs: blobs, limit: limit}
	const nodeSize = 56
	if r != nil {
		k.size += int64(cap(r.doc.b) + nodeSize*len(r.doc.tape))
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

// shelved returns what is kept, with the limits in force.
func (s *Shelf) shelved() *bounded.Map[*kept] {
	s.once.Do(func() { s.results.Bytes, s.results.Age = s.limits() })
	return &s.results
}

func (s *Shelf) keep(caller, handle string, k *kept) {
	s.shelved().Put(caller, handle, k, k.size)
	if s.Beyond != nil {
		s.Beyond.Keep(caller, handle, k.encode())
	}
}

// get returns a result of the caller's, and nothing of anybody else's.
func (s *Shelf) get(ctx context.Context, caller, handle string) *kept {
	k, ok := s.shelved().Get(caller, handle)
	if ok || s.Beyond == nil {
		return k
	}
	document := s.Beyond.Find(ctx, caller, handle)
	if document == nil {
		return nil
	}
	if k = decodeKept(document); k != nil {
		s.shelved().Put(caller, handle, k, k.size)
	}
	return k
}

// Clear forgets everything that is kept here; what [Shelf.Beyond] keeps stays there.
func (s *Shelf) Clear() { s.shelved().Clear() }

// Held returns how many results are kept, and their size in bytes.
func (s *Shelf) Held() (results int, bytes int64) { return s.shelved().Held() }
