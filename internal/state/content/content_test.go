package content

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/queryplan"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, ".") }

// results returns what a process has of the store at a path.
func results(t testing.TB, path string) *Documents {
	t.Helper()
	db, keys := storetest.OpenSealed(t, storetest.At(t, path))
	return NewDocuments(db, Kind{Name: "result", Life: time.Hour, Bytes: 2000, Vault: keys, Rooms: new(Rooms)}, nil)
}

// written waits until what was kept is there.
func (d *Documents) written(t testing.TB) {
	t.Helper()
	if err := d.db.Write(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestDocuments: a document is found by every process, for its owner alone, until it
// expires; an owner that has all that it may gives up its oldest.
func TestDocuments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := results(t, path), results(t, path)
	owner := "ann\x00\"\\\"\x00" // as owners are that have people
	here.Keep(owner, "h", []byte("watermelon"))
	here.Keep("bob", "h", []byte("bob's"))
	here.written(t)
	if got := there.Find(t.Context(), owner, "h"); string(got) != "watermelon" {
		t.Errorf("found %q", got)
	}
	for _, other := range []string{"ann", "ann\x00", "ann\\0\"\\\"\\0", "eve", ""} {
		if got := there.Find(t.Context(), other, "h"); got != nil {
			t.Errorf("%q finds %q", other, got)
		}
	}
	for _, id := range []string{"1", "2", "3"} {
		here.Keep(owner, id, bytes.Repeat([]byte("x"), 900))
	}
	here.Keep(owner, "larger than may be", bytes.Repeat([]byte("x"), 2001))
	here.written(t)
	for id, want := range map[string]bool{"h": false, "1": false, "2": true, "3": true, "larger than may be": false} {
		if got := there.Find(t.Context(), owner, id); (got != nil) != want {
			t.Errorf("%s is there: %v", id, got != nil)
		}
	}
	if got := there.Find(t.Context(), "bob", "h"); string(got) != "bob's" {
		t.Errorf("bob finds %q", got)
	}
	if err := here.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("UPDATE results SET expires = 1"); return err }); err != nil {
		t.Fatal(err)
	}
	if got := there.Find(t.Context(), "bob", "h"); got != nil {
		t.Errorf("expired, and found: %q", got)
	}
	var rows int
	if _, err := keeping.New(here.db, store.Quota{}, slog.New(slog.DiscardHandler)).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := here.db.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM results", nil, &rows) }); err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
}

// TestPlaces: what is encrypted is good in its place alone.
func TestPlaces(t *testing.T) {
	d := results(t, filepath.Join(t.TempDir(), "dragoman.db"))
	d.Keep("ann", "h", []byte("watermelon"))
	d.written(t)
	err := d.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE results SET id = 'g'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = d.db.Read(t.Context(), func(tx *store.Tx) error { _, err := d.kind.Get(tx, "ann", "g"); return err })
	if !errors.Is(err, ErrNone) {
		t.Errorf("moved, and read: %v", err)
	}
}

// TestDeleteReadsNoOthers: who deletes a response, of which an owner may have hundreds of
// thousands, reads through no keys of others.
func TestDeleteReadsNoOthers(t *testing.T) {
	plan := strings.Join(queryplan.Of(t, queryplan.Open(t), (&Kind{Name: "response"}).dropKeys(), "ann", "resp_1"), "; ")
	if !strings.Contains(plan, "(owner=? AND response=?)") {
		t.Error(plan)
	}
}
