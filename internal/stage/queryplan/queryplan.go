// Package queryplan asks SQLite how it means to find what a query asks for, for tests of
// what must not look at everything that there is.
package queryplan

import (
	"path/filepath"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Open opens a new store in a file, whatever other tests run on.
func Open(t testing.TB) *store.DB {
	t.Helper()
	return storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "dragoman.db"), MaxBytes: store.DefaultMaxBytes})
}

// Of returns the steps of SQLite's plan for a query, such as "SCAN audit"
// (https://www.sqlite.org/eqp.html).
func Of(t testing.TB, db *store.DB, query string, args ...any) (steps []string) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Rows("EXPLAIN QUERY PLAN "+query, args, func(scan func(...any) error) error {
			var id, parent, unused int
			var step string
			err := scan(&id, &parent, &unused, &step)
			steps = append(steps, step)
			return err
		})
	}); err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	return steps
}
