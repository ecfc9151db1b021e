package content

import (
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Rooms remember how many bytes more owners may have, so that what they have is summed up
// once for many documents and not for each: an owner with thirty thousand has them read
// through each time. Other processes on the store have rooms of their own, so that an owner
// may have more than its bytes until the next count, a sixteenth for each of them. The zero
// value is ready; a nil one knows of no room. It is safe for concurrent use.
type Rooms struct {
	mu   sync.Mutex
	left map[string]int64
}

const (
	// countEvery is after which part of an owner's bytes it is counted again.
	countEvery = 16
	// spareOf is which part is made free, beside what is needed, where there is no room: the
	// next documents find some.
	spareOf = 64
	// maxKnown is of how many owners it is remembered.
	maxKnown = 10_000
)

// Take takes room for a document of so many bytes, and reports whether there is some. Where
// there is none, or none is known of, what the owner has is to be counted: see Counted.
func (r *Rooms) Take(owner string, size int64) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left[owner] - size
	if left < 0 {
		return false
	}
	r.left[owner] = left
	return true
}

// Counted says how many bytes an owner has, of the most that it may have.
func (r *Rooms) Counted(owner string, held, most int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil || len(r.left) >= maxKnown {
		r.left = map[string]int64{}
	}
	r.left[owner] = max(0, min(most-held, most/countEvery))
}

// Held is how many bytes an owner has in a table; whose is the column that says whose a row is.
func Held(tx *store.Tx, table, whose, owner string) (n int64, err error) {
	err = tx.Row("SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM "+table+" WHERE "+whose+" = $1", []any{owner}, &n)
	return n, err
}

// Excess is how many bytes have to go so that an owner who has so many, and gets size more,
// has no more than most; with some to spare where any have.
func Excess(held, size, most int64) int64 {
	if held+size <= most {
		return 0
	}
	return min(held, held+size-most+most/spareOf)
}

// Oldest is the condition for those rows of an owner ($1) in a table that go first and have
// together as many bytes as $2. whose is the column that says whose a row is; rows are in the
// order of two columns, the second of which tells those of an owner apart.
func Oldest(table, whose, first, id string) string {
	return id + " IN (SELECT " + id + " FROM (SELECT " + id + ", CAST(sum(size) OVER (ORDER BY " + first + ", " + id + ") AS BIGINT) - size AS before FROM " +
		table + " WHERE " + whose + " = $1 AND size > 0) AS old WHERE before < $2)"
}
