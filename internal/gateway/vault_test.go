package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/state/vault"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// TestSealsSurviveRestart: what one process sealed the next one opens, by the keys of
// their store.
func TestSealsSurviveRestart(t *testing.T) {
	file := config.Default()
	file.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
	var sealed []byte
	for range 2 {
		g, err := New(file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if sealed == nil {
			sealed = g.seals().Close(seal.Continuation, nil, []byte("state"), time.Time{})
		} else if plain, err := g.seals().Open(seal.Continuation, nil, sealed); err != nil || string(plain) != "state" {
			t.Errorf("%q, %v", plain, err)
		}
		g.Close()
	}
}

// TestHiddenTurnsSurviveRestart: what clients do not see of a conversation is there in
// the next process, where there is a store.
func TestHiddenTurnsSurviveRestart(t *testing.T) {
	file := config.Default()
	file.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
	for i := range 2 {
		g, err := New(file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		kept := g.remembered
		if i == 0 {
			err = kept.Keep(t.Context(), "ann", []string{"k"}, &memory.Turn{Text: "hidden"})
		} else if found, failed := kept.Find(t.Context(), "ann", []string{"k"}); failed != nil || found["k"] == nil || found["k"].Text != "hidden" {
			t.Errorf("%v, %v", found, failed)
		}
		g.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestoreDrill: a backup in a new folder, with the same master key, opens: what was
// sealed and what was encrypted, and the audit log. With another key the gateway says so in
// one sentence and does not start, and what needs no key works.
func TestRestoreDrill(t *testing.T) {
	file := config.Default()
	file.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
	g, err := New(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.remembered.Keep(t.Context(), "ann", []string{"k"}, &memory.Turn{Text: "hidden"}); err != nil {
		t.Fatal(err)
	}
	if err := g.ledger.Audit.Intent(t.Context(), audit.Record{Kind: audit.Intent, Call: "1"}); err != nil {
		t.Fatal(err)
	}
	sealed := g.seals().Close(seal.Continuation, nil, []byte("state"), time.Time{})
	restored := config.Default()
	restored.Store.Path = filepath.Join(t.TempDir(), "restored.db")
	if err := g.ledger.DB.Backup(t.Context(), restored.Store.Path, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	g.Close()
	key, err := os.ReadFile(vault.KeyPath(file.Store.Path))
	if err != nil {
		t.Fatal(err)
	}

	restored.Store.Key = storetest.Key
	if g, err := New(restored, Options{}); !errors.Is(err, vault.ErrOtherKey) || strings.Contains(err.Error(), "\n") {
		t.Errorf("with another key: %v", err)
		if err == nil {
			g.Close()
		}
	}
	restored.Store.Key = secret.Text{}
	if g, err := New(restored, Options{}); !errors.Is(err, vault.ErrOtherKey) {
		t.Errorf("without its key: %v", err)
		if err == nil {
			g.Close()
		}
	}
	l, err := ledger.Open(t.Context(), ledger.Config{Store: restored.Store}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if check, err := l.Audit.Verify(t.Context()); err != nil || check.Records == 0 {
		t.Errorf("without its key the audit log: %+v, %v", check, err)
	}
	l.Close()

	if err := os.WriteFile(vault.KeyPath(restored.Store.Path), key, 0o600); err != nil {
		t.Fatal(err)
	}
	g, err = New(restored, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if found, err := g.remembered.Find(t.Context(), "ann", []string{"k"}); err != nil || found["k"] == nil || found["k"].Text != "hidden" {
		t.Errorf("what was remembered: %v, %v", found, err)
	}
	if plain, err := g.seals().Open(seal.Continuation, nil, sealed); err != nil || string(plain) != "state" {
		t.Errorf("what was sealed: %q, %v", plain, err)
	}
	if _, err := g.ledger.Audit.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
