package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// furnished writes rows of every type, more than one statement inserts.
func furnished(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *Tx) error {
		tx.Raise("pins")
		for i := range 250 {
			if _, err := tx.Exec("INSERT INTO turns (owner, id, content, size, expires) VALUES ($1, $2, $3, $4, $5)",
				fmt.Sprintf("key-%d", i%3), fmt.Sprint(i), bytes.Repeat([]byte{0, 255}, i), 2*i, int64(1<<50)+int64(i)); err != nil {
				return err
			}
		}
		_, err := tx.Exec("INSERT INTO owner_keys (owner, wrapped) VALUES ('key-0', $1)", []byte("sesame, opened"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// everything is all that a store has, as text.
func everything(t *testing.T, db *DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	if err := db.Read(t.Context(), func(tx *Tx) error {
		tables, err := tx.Tables()
		for _, table := range tables {
			if err != nil {
				return err
			}
			if table.Name == "migrations" || table.Name == "schema_steps" {
				continue
			}
			err = tx.Rows("SELECT "+table.names(false)+" FROM "+table.Name+" ORDER BY "+table.names(true), nil, func(scan func(...any) error) error {
				row, err := scanRow(&table, scan)
				all[table.Name] = append(all[table.Name], fmt.Sprintf("%q", row))
				return err
			})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCopy: PostgreSQL has afterwards what the file had, each row once.
func TestCopy(t *testing.T) {
	here, there := opened(t, file(t)), opened(t, pgtest.URL(t))
	furnished(t, here)
	checked := false
	copied, err := here.CopyTo(t.Context(), there, func(tx *Tx) error {
		var n int
		checked = true
		return tx.Row("SELECT count(*) FROM turns", nil, &n)
	})
	if err != nil || copied["turns"] != 250 || !checked {
		t.Fatalf("%v, %v, checked %v", copied, err, checked)
	}
	if want, got := everything(t, here), everything(t, there); !reflect.DeepEqual(want, got) {
		t.Error("the copy is another one")
	}
	if err := there.Write(t.Context(), func(tx *Tx) error { tx.Raise("pins"); return nil }); err != nil {
		t.Errorf("the copy cannot be written to: %v", err)
	}
}

// TestCopyAllOrNothing: a copy that is refused, or that somebody else's rows are in the way
// of, leaves nothing behind.
func TestCopyAllOrNothing(t *testing.T) {
	here, there := opened(t, file(t)), opened(t, pgtest.URL(t))
	furnished(t, here)
	fine := func(*Tx) error { return nil }
	refused := errors.New("refused")
	if _, err := here.CopyTo(t.Context(), there, func(*Tx) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	if got := everything(t, there); len(got) > 0 {
		t.Errorf("it was refused, and there is %v", got)
	}
	if err := there.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO topics (name, n) VALUES ('theirs', 7)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.CopyTo(t.Context(), there, fine); !errors.Is(err, ErrNotEmpty) || !strings.HasSuffix(err.Error(), "rows in its table topics: 1") {
		t.Errorf("into one that is not empty: %v", err)
	}
	if got := everything(t, there); len(got) != 1 || len(got["topics"]) != 1 {
		t.Errorf("there is %v", got)
	}
	if _, err := here.CopyTo(t.Context(), opened(t, file(t)), fine); err == nil {
		t.Error("it was copied to a file")
	}
	// A table of a newer program that this one does not know is not left out.
	if err := here.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("CREATE TABLE later (owner TEXT NOT NULL PRIMARY KEY)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.CopyTo(t.Context(), opened(t, pgtest.URL(t)), fine); !errors.Is(err, ErrNewer) {
		t.Errorf("with a table that nobody knows: %v", err)
	}
}

// TestBackup: a backup is all that was there at one moment, though others write; it
// replaces nothing, and one that is refused is not there.
func TestBackup(t *testing.T) {
	db := opened(t, file(t))
	furnished(t, db)
	path := filepath.Join(t.TempDir(), "copy.db")
	want := everything(t, db)
	if err := db.Backup(t.Context(), path, func(string) error { return errors.New("no") }); err == nil {
		t.Error("a copy that was refused is one")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("refused, and there: %v", err)
	}
	if err := db.Backup(t.Context(), path, func(copied string) error {
		return db.Write(t.Context(), func(tx *Tx) error { tx.Raise("later"); return nil })
	}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".backup*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got := everything(t, opened(t, path)); !reflect.DeepEqual(want, got) {
		t.Error("the copy is another one")
	}
	if err := db.Backup(t.Context(), path, func(string) error { return nil }); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another one: %v", err)
	}
	if err := opened(t, pgtest.URL(t)).Backup(t.Context(), path+"2", func(string) error { return nil }); !errors.Is(err, ErrNoBackup) {
		t.Errorf("of PostgreSQL: %v", err)
	}
}

// TestOverwrite: what is removed so stands in none of the store's files.
func TestOverwrite(t *testing.T) {
	path := file(t)
	db := opened(t, path)
	furnished(t, db)
	there := func() bool {
		for _, suffix := range suffixes {
			if data, err := os.ReadFile(path + suffix); err == nil && strings.Contains(string(data), "sesame, opened") {
				return true
			}
		}
		return false
	}
	if !there() {
		t.Fatal("it is not there in the first place")
	}
	if err := db.Overwrite(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec("DELETE FROM owner_keys")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if there() {
		t.Error("it is in the files still")
	}
	failed := errors.New("mine")
	everywhere(t, func(t *testing.T, db *DB) {
		if err := db.Overwrite(t.Context(), func(tx *Tx) error { _ = put("a")(tx); return failed }); !errors.Is(err, failed) || len(words(t, db)) > 0 {
			t.Errorf("%v, %v", err, words(t, db))
		}
		if err := db.Overwrite(t.Context(), put("b")); err != nil || len(words(t, db)) != 1 {
			t.Errorf("%v, %v", err, words(t, db))
		}
	})
}

// TestSize: a store says how much it takes.
func TestSize(t *testing.T) {
	shared(t, func(t *testing.T, place string) {
		db := opened(t, place)
		furnished(t, db)
		if n, err := db.Size(t.Context()); err != nil || n < 60_000 {
			t.Errorf("%d, %v", n, err)
		}
	})
}
