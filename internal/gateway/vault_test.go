package gateway

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
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
