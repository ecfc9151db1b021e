// Package storetest opens stores for tests: in memory or in a file, or, in a run of
// [pgtest.Again], in PostgreSQL.
package storetest

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Key is the master key of stores in PostgreSQL, which have none in a file beside them.
var Key = secret.New(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))

// At returns the configuration of the store that a test wants at a path, wherever
// [pgtest.Place] says that it is.
func At(t testing.TB, path string) store.Config {
	t.Helper()
	config := store.Config{MaxBytes: store.DefaultMaxBytes}
	config.Path, config.URL = pgtest.Place(t, path)
	return config
}

// Open opens a store until the test ends.
func Open(t testing.TB, config store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// OpenSealed opens a store until the test ends, with the keys of what is sealed in it: those
// under [Key] where it is in PostgreSQL.
func OpenSealed(t testing.TB, config store.Config) (*store.DB, *vault.Vault) {
	t.Helper()
	if !config.URL.IsZero() {
		config.Key = Key
	}
	db := Open(t, config)
	keys, err := vault.Open(t.Context(), db, config)
	if err != nil {
		t.Fatal(err)
	}
	return db, keys
}
