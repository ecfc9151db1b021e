package revocation

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: revocations, in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^TestRevoked") }

func database(t testing.TB, path string) *store.DB {
	t.Helper()
	return storetest.Open(t, storetest.At(t, path))
}

// TestRevoked: what one process revokes is revoked at all, at once or when they start, by
// the key's id or its caller's; and twice is once.
func TestRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := database(t, path), database(t, path)
	if err := Revoke(t.Context(), here, "before"); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan string, 8), make(chan struct{})
	go func() { defer close(ended); r.Watch(ctx, func(id string) { told <- id }) }()
	for range 2 {
		if err := Revoke(t.Context(), here, "key-later"); err != nil {
			t.Fatal(err)
		}
	}
	if id := <-told; id != "later" {
		t.Errorf("told of %s", id)
	}
	for id, want := range map[string]bool{"before": true, "key-before": true, "later": true, "key-later": true, "other": false, "": false} {
		if r.Has(id) != want {
			t.Errorf("%q is revoked: %v", id, !want)
		}
	}
	cancel()
	<-ended
	if len(told) > 0 {
		t.Errorf("told of %s", <-told)
	}
	if (*Keys)(nil).Has("before") {
		t.Error("revoked nowhere")
	}
}

// TestRevokedWhileItCannotBeRead: what was revoked at a moment at which that could not be read
// is revoked once it can, though nobody tells of it again.
func TestRevokedWhileItCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := database(t, path), database(t, path)
	r, err := Open(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	write := func(statements ...string) {
		t.Helper()
		if err := here.Write(t.Context(), func(tx *store.Tx) error {
			tx.Raise(topic)
			for _, s := range statements {
				if _, err := tx.Exec(s); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan string, 8), make(chan struct{})
	go func() { defer close(ended); r.Watch(ctx, func(id string) { told <- id }) }()
	write("INSERT INTO revoked_keys (id, at) VALUES ('first', 1)")
	<-told
	write("INSERT INTO revoked_keys (id, at) VALUES ('later', 1)", "ALTER TABLE revoked_keys RENAME TO away")
	for before := there.Statements(); there.Statements() < before+4; { // it looks each second, and reads what it hears of
		<-time.After(10 * time.Millisecond)
	}
	if err := here.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("ALTER TABLE away RENAME TO revoked_keys"); return err }); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-told:
		if id != "later" || !r.Has("later") {
			t.Errorf("told of %s", id)
		}
	case <-time.After(time.Minute):
		t.Error("a key that was revoked is good for ever")
	}
	cancel()
	<-ended
}
