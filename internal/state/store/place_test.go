package store

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
)

// What must be written is refused once the store's file is not the one that is open: it
// would go where nobody finds it again. Once it is back, so is everything.
func TestFileIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be removed there")
	}
	rename := func(from, to string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			if err := os.Rename(path+from, path+to); err != nil {
				t.Fatal(err)
			}
		}
	}
	overwrite := func(suffix string, content []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func(all ...func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			for _, each := range all {
				each(t, path)
			}
		}
	}
	for name, tt := range map[string]struct{ harm, mend func(*testing.T, string) }{
		"moved":             {rename("", ".old"), rename(".old", "")},
		"replaced":          {both(rename("", ".old"), overwrite("", []byte(magic+"something else"))), rename(".old", "")},
		"log moved":         {rename("-wal", "-wal.old"), rename("-wal.old", "-wal")},
		"log replaced":      {both(rename("-wal", "-wal.old"), overwrite("-wal", nil)), rename("-wal.old", "-wal")},
		"shared part moved": {rename("-shm", "-shm.old"), rename("-shm.old", "-shm")},
		"cut":               {overwrite("", nil), nil},
		"overwritten":       {overwrite("", []byte(strings.Repeat("x", 8192))), nil},
		"log cut":           {overwrite("-wal", nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			db, err := Open(t.Context(), Config{Path: path, MaxBytes: DefaultMaxBytes})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close() // which may have nothing left to close well
			if err := db.Write(t.Context(), func(tx *Tx) error { _, err := tx.Exec("CREATE TABLE words (word TEXT)"); return err }); err != nil {
				t.Fatal(err)
			}
			tt.harm(t, path)
			appended := make(chan error, 1)
			if err := db.Write(t.Context(), put("lost")); !errors.Is(err, ErrGone) {
				t.Errorf("written: %v", err)
			}
			if db.Append(put("lost, too"), func(err error) { appended <- err }); !errors.Is(<-appended, ErrGone) {
				t.Error("appended")
			}
			if tt.mend == nil {
				return
			}
			tt.mend(t, path)
			if err := db.Write(t.Context(), put("kept")); err != nil {
				t.Errorf("once it is back: %v", err)
			}
		})
	}
}

// Checkpoints, other users of the file, and its closing by one of them harm nobody.
func TestFileStays(t *testing.T) {
	path := file(t)
	db := made(t, path)
	for i, mode := range []string{"PASSIVE", "RESTART", "TRUNCATE", "FULL"} {
		other, err := Open(t.Context(), Config{Path: path, MaxBytes: DefaultMaxBytes})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Write(t.Context(), put(string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
		if _, err := other.writer.conn.ExecContext(t.Context(), "PRAGMA wal_checkpoint("+mode+")"); err != nil {
			t.Fatal(err)
		}
		if err := other.Write(t.Context(), func(*Tx) error { return nil }); err != nil {
			t.Errorf("after %s: %v", mode, err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Write(t.Context(), put(string(rune('A'+i)))); err != nil {
			t.Errorf("after %s: %v", mode, err)
		}
	}
	if got := words(t, db); len(got) != 8 {
		t.Errorf("%q", got)
	}
	if n := len(heldFiles.files); n != 1 {
		t.Errorf("%d files are held", n)
	}
}

func BenchmarkPlace(b *testing.B) {
	db := opened(b, file(b))
	for b.Loop() {
		if err := db.place.check(); err != nil {
			b.Fatal(err)
		}
	}
}
