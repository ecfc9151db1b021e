package captured

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
)

// TestOnPostgres: the same in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^(TestOwners|TestBounded|TestErased|TestExpired)$")
}

// open opens a store with its keys, as a process does.
func open(t *testing.T, file string) (*store.DB, *vault.Vault) {
	t.Helper()
	return storetest.OpenSealed(t, storetest.At(t, file))
}

func bounds(bytes int64) Config { return Config{Keep: On, Retention: time.Hour, Bytes: bytes} }

// settle waits until everything that was given to be kept is.
func settle(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Write(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func one(n int, caller, person, body string) Capture {
	return Capture{ID: fmt.Sprint("id", n), Caller: caller, Person: person, Began: time.UnixMicro(int64(n)), Head: fmt.Append(nil, "head ", n), Body: []byte(body)}
}

func ids(all []Capture) (ids []string) {
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

const (
	ann    = "https://login.example#ann\\0"
	annTom = "\x00\"tom\"\x00\"\"\x00\"\"\x00"
)

// TestOwners: each caller has their own, with those of the people behind them, in every
// process; whoever may see all sees all, the newest first; and nothing stands in the table
// as it was said.
func TestOwners(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.db")
	db, keys := open(t, file)
	c := New(db, keys, bounds(1<<20), nil)
	c.Keep(one(1, ann, "", "what ann said"))
	c.Keep(one(2, ann, annTom, "what tom said"))
	c.Keep(one(3, "bob", "", "what bob said"))
	c.Keep(one(3, "eve", "", "under an id that there is")) // it changes nothing
	settle(t, db)
	db2, keys2 := open(t, file)
	there := New(db2, keys2, bounds(1<<20), nil)
	for _, test := range []struct {
		whose string
		want  string
	}{{"", "[id3 id2 id1]"}, {ann, "[id2 id1]"}, {"bob", "[id3]"}, {"eve", "[]"}, {"https://login.example#ann", "[]"}, {"%", "[]"}} {
		all, err := there.List(t.Context(), test.whose, time.Now(), 10)
		if err != nil || fmt.Sprint(ids(all)) != test.want {
			t.Errorf("%q has %v, %v; want %s", test.whose, ids(all), err, test.want)
		}
	}
	if all, err := there.List(t.Context(), ann, time.UnixMicro(2), 10); err != nil || fmt.Sprint(ids(all)) != "[id1]" {
		t.Errorf("before a time: %v, %v", ids(all), err)
	}
	if all, err := there.List(t.Context(), "", time.Now(), 1); err != nil || fmt.Sprint(ids(all)) != "[id3]" {
		t.Errorf("one at most: %v, %v", ids(all), err)
	}
	got, err := there.Get(t.Context(), ann, "id2")
	if want := one(2, ann, annTom, "what tom said"); err != nil || got.Caller != want.Caller || got.Person != want.Person || !got.Began.Equal(want.Began) || !bytes.Equal(got.Head, want.Head) || !bytes.Equal(got.Body, want.Body) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := there.Get(t.Context(), "", "id3"); err != nil || string(got.Body) != "what bob said" {
		t.Errorf("for who may see all: %+v, %v", got, err)
	}
	for _, whose := range []string{"bob", "eve", "https://login.example#ann"} {
		if _, err := there.Get(t.Context(), whose, "id1"); !errors.Is(err, ErrNone) {
			t.Errorf("%s reads what ann said: %v", whose, err)
		}
	}
	if _, err := there.Get(t.Context(), "", "id4"); !errors.Is(err, ErrNone) {
		t.Errorf("one that there is not: %v", err)
	}
	if err := db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Rows("SELECT head, content FROM captures", nil, func(scan func(...any) error) error {
			var head, content []byte
			err := scan(&head, &content)
			if bytes.Contains(content, []byte("said")) || bytes.Contains(head, []byte("head")) {
				t.Error("what was said stands in the table")
			}
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	// Under another id it is nothing.
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE captures SET id = 'moved' WHERE id = 'id3'")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "", "moved"); !errors.Is(err, ErrNone) {
		t.Errorf("moved: %v", err)
	}
}

// TestBounded: a caller keeps so many bytes, or a sixteenth less, with all the people behind it, and gives up the
// oldest; what is larger than that is not kept, and others lose nothing.
func TestBounded(t *testing.T) {
	db, keys := open(t, filepath.Join(t.TempDir(), "c.db"))
	c := New(db, keys, bounds(1000), nil)
	c.Keep(one(1, "bob", "", "small"))
	for n := 2; n < 10; n++ {
		c.Keep(one(n, ann, fmt.Sprintf("\x00\"%d\"\x00\"\"\x00\"\"\x00", n), string(make([]byte, 225))))
	}
	c.Keep(one(10, ann, "", string(make([]byte, 1001))))
	settle(t, db)
	if all, err := c.List(t.Context(), ann, time.Now(), 100); err != nil || fmt.Sprint(ids(all)) != "[id9 id8 id7 id6]" {
		t.Errorf("ann has %v, %v", ids(all), err)
	}
	if all, err := c.List(t.Context(), "bob", time.Now(), 100); err != nil || len(all) != 1 {
		t.Errorf("bob has %v, %v", ids(all), err)
	}
	if c.Lost() != 1 {
		t.Errorf("%d are lost", c.Lost())
	}
}

// TestErased: a person behind a caller is erased alone, and a caller with everybody; what
// somebody has in a copy of the table cannot be read.
func TestErased(t *testing.T) {
	db, keys := open(t, filepath.Join(t.TempDir(), "c.db"))
	c := New(db, keys, bounds(1<<20), nil)
	c.Keep(one(1, ann, "", "x"))
	c.Keep(one(2, ann, annTom, "x"))
	c.Keep(one(3, "bob", annTom, "x"))
	settle(t, db)
	left := func() string {
		all, err := c.List(t.Context(), "", time.Now(), 100)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(ids(all))
	}
	if _, err := keeping.Erase(t.Context(), db, keeping.Whose{User: "tom"}); err != nil || left() != "[id1]" {
		t.Errorf("without tom: %s, %v", left(), err)
	}
	if err := db.Write(t.Context(), func(tx *store.Tx) error { _, err := keys.Erase(tx, store.Owner(ann)); return err }); err != nil || left() != "[]" {
		t.Errorf("without the key: %s, %v", left(), err)
	}
	if _, err := c.Get(t.Context(), "", "id1"); !errors.Is(err, ErrNone) {
		t.Errorf("without the key: %v", err)
	}
	c.Keep(one(4, ann, "", "x"))
	settle(t, db)
	if _, err := keeping.Erase(t.Context(), db, keeping.Whose{Caller: ann}); err != nil || left() != "[]" {
		t.Errorf("without ann: %s, %v", left(), err)
	}
}

// TestExpired: what has had its time is not there, and the sweep removes it.
func TestExpired(t *testing.T) {
	db, keys := open(t, filepath.Join(t.TempDir(), "c.db"))
	c := New(db, keys, Config{Retention: -time.Second, Bytes: 1000}, nil)
	c.Keep(one(1, ann, "", "x"))
	settle(t, db)
	if all, err := c.List(t.Context(), "", time.Now(), 100); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := c.Get(t.Context(), "", "id1"); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	removed, err := keeping.New(db, store.Quota{}, nil).Sweep(t.Context())
	if err != nil || removed["captures"] != 1 {
		t.Errorf("%v, %v", removed, err)
	}
}
