package content

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// put keeps a document of so many bytes and returns how many statements that was.
func put(t testing.TB, d *Documents, kind *Kind, owner, id string, size int) int64 {
	t.Helper()
	before := d.db.Statements()
	if err := d.db.Write(t.Context(), func(tx *store.Tx) error { return kind.Put(tx, owner, id, make([]byte, size)) }); err != nil {
		t.Fatal(err)
	}
	return d.db.Statements() - before
}

func (d *Documents) held(t testing.TB, owner string) (rows, size int64) {
	t.Helper()
	if err := d.db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Row("SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM results WHERE owner = $1", []any{store.Owner(owner)}, &rows, &size)
	}); err != nil {
		t.Fatal(err)
	}
	return rows, size
}

// TestRooms: what an owner has is counted once for many documents, whether there is room or
// none, and bounded all the same: for one process exactly, for two within a sixteenth.
func TestRooms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := results(t, path), results(t, path)
	const most, size, many = 64 << 10, 100, 2000 // three times as much as there is room for
	one, other := here.kind, there.kind
	one.Bytes, other.Bytes, one.Rooms, other.Rooms = most, most, new(Rooms), new(Rooms)
	statements := int64(0)
	for n := range many {
		statements += put(t, here, &one, "ann", fmt.Sprintf("%05d", n), size)
		if n%100 == 0 {
			if _, held := here.held(t, "ann"); held > most {
				t.Fatalf("%d bytes after %d documents, where %d may be kept", held, n, most)
			}
		}
	}
	if rows, held := here.held(t, "ann"); held > most || held < most-most/spareOf-2*size || rows != held/size {
		t.Errorf("%d bytes of %d are left, %d rows", held, most, rows)
	}
	if each := float64(statements) / many; each > 4 {
		t.Errorf("%.1f statements for a document", each)
	}
	if here.Find(t.Context(), "ann", fmt.Sprintf("%05d", many-1)) == nil || here.Find(t.Context(), "ann", "00000") != nil {
		t.Error("the oldest did not go first")
	}
	for n := range many {
		of, kind := here, &one
		if n%2 == 0 {
			of, kind = there, &other
		}
		put(t, of, kind, "bob", fmt.Sprintf("%05d", n), size)
	}
	if _, held := here.held(t, "bob"); held > most+most/countEvery || held < most/2 {
		t.Errorf("%d bytes of two processes, where %d may be kept", held, most)
	}
}

// BenchmarkPut is what it costs to keep a document of an owner that has few, and one that
// has ten thousand.
func BenchmarkPut(b *testing.B) {
	for _, has := range []int{10, 10_000} {
		d := results(b, filepath.Join(b.TempDir(), "dragoman.db"))
		kind := d.kind
		kind.Bytes, kind.Rooms = 64<<20, new(Rooms)
		if err := d.db.Write(b.Context(), func(tx *store.Tx) error {
			for n := range has {
				if err := kind.Put(tx, "ann", fmt.Sprint("old ", n), make([]byte, 2000)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		n := 0
		b.Run(fmt.Sprint(has), func(b *testing.B) {
			for b.Loop() {
				n++
				put(b, d, &kind, "ann", fmt.Sprint("new ", n%100), 2000)
			}
		})
	}
}

// TestOldest: what goes is no more than has to, from the first on, in the order of two columns,
// of one owner, however many rows are looked at.
func TestOldest(t *testing.T) {
	d := results(t, filepath.Join(t.TempDir(), "dragoman.db"))
	type one struct {
		expires int64
		id      string
		size    int64
	}
	var all []one
	r, total := rand.New(rand.NewPCG(1, 2)), int64(0)
	for i := range 2*lookedAt + 300 {
		o := one{int64(r.IntN(300)), fmt.Sprintf("%05d", (i*7919)%10007), int64(r.IntN(4) * 10)}
		all, total = append(all, o), total+o.size
	}
	if err := d.db.Write(t.Context(), func(tx *store.Tx) error {
		for _, o := range all {
			for _, owner := range []string{"ann", "bob"} {
				if _, err := tx.Exec("INSERT INTO results (owner, id, content, size, expires) VALUES ($1, $2, $3, $4, $5)", owner, o.id, []byte{}, o.size, o.expires); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.expires, b.expires), strings.Compare(a.id, b.id)) })
	for _, bytes := range []int64{0, 1, 10, 11, total / 3, total / 2, total - 1, total, total + 1} {
		var want, got []string
		left := bytes
		for _, o := range all {
			if o.size > 0 && left > 0 {
				want, left = append(want, o.id), left-o.size
			}
		}
		if err := d.db.Read(t.Context(), func(tx *store.Tx) error {
			condition, args, err := Rows{"results", "owner", "expires", "id"}.Oldest(tx, "ann", bytes)
			if err != nil {
				return err
			}
			return tx.Rows("SELECT owner, id FROM results WHERE "+condition+" ORDER BY expires, id", args, func(scan func(...any) error) error {
				var owner, id string
				err := scan(&owner, &id)
				if got = append(got, id); owner != "ann" {
					t.Errorf("%s's", owner)
				}
				return err
			})
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes: %d rows, want %d", bytes, len(got), len(want))
		}
	}
}
