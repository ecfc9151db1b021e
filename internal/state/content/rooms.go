package content

import (
	"fmt"
	"math"
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

// Rows are those of owners in a table.
type Rows struct {
	// Table has the column size; Whose is the one that says whose a row is.
	Table, Whose string
	// First and ID are the columns of their order: those go first that come first. The second
	// tells those of an owner apart. There is an index for Whose and First.
	First, ID string
}

// lookedAt is how many rows are looked at in one statement.
const lookedAt = 1000

// Oldest returns the condition for those rows of an owner that go first and have together as
// many bytes as are to go, or all that it has, and the values of its parameters. It looks at
// no others. The condition is for the time before anything else is changed.
func (r Rows) Oldest(tx *store.Tx, owner string, bytes int64) (condition string, args []any, err error) {
	first, id := int64(math.MinInt64), ""
	query := fmt.Sprintf(`SELECT %[3]s, %[4]s, size FROM %[1]s WHERE %[2]s = $1 AND %[3]s >= $2 AND (%[3]s > $2 OR %[4]s > $3) AND size > 0
		ORDER BY %[3]s, %[4]s LIMIT %[5]d`, r.Table, r.Whose, r.First, r.ID, lookedAt)
	for n := lookedAt; n == lookedAt && bytes > 0; {
		n = 0
		if err := tx.Rows(query, []any{owner, first, id}, func(scan func(...any) error) error {
			n++
			if bytes <= 0 {
				return nil
			}
			var size int64
			err := scan(&first, &id, &size)
			bytes -= size
			return err
		}); err != nil {
			return "", nil, err
		}
	}
	return fmt.Sprintf("%[1]s = $1 AND %[2]s <= $2 AND (%[2]s < $2 OR %[3]s <= $3) AND size > 0", r.Whose, r.First, r.ID), []any{owner, first, id}, nil
}
