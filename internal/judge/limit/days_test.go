package limit

import (
	"encoding/hex"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: what is kept of days, in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^TestRestart$|^TestLongNames$|^TestShared") }

// TestLongNames: a name of any length is counted, in little room, and is no reason that
// others are not kept.
func TestLongNames(t *testing.T) {
	db := storetest.Open(t, storetest.At(t, filepath.Join(t.TempDir(), "limits.db")))
	options := Options{Limits: []Limit{{Per: []string{"caller", "tool"}, Calls: 3}}, Store: db}
	first, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	today := first.days.today
	random := make([]byte, 32<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // nothing to compress
	long := hex.EncodeToString(random)
	uses(t, first, Model(bob, long), 2)
	uses(t, first, Model(ada, "gpt-5"), 2)
	for name := range first.days.used {
		if len(name) > 1000 {
			t.Errorf("the name of a count takes %d bytes", len(name))
		}
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	longs, _ := uses(t, second, Model(bob, long), 3)
	others, _ := uses(t, second, Model(bob, long+"x"), 3)
	shorts, _ := uses(t, second, Model(ada, "gpt-5"), 3)
	if day(time.Now()) != today {
		t.Skip("it became midnight meanwhile")
	}
	if longs != 1 || others != 3 || shorts != 1 {
		t.Errorf("after two of three: %d of a long name, %d of another, %d of a short one", longs, others, shorts)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What was used of a day outlives the process, and processes add up.
func TestRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.db")
	open := func() (*Limiter, *store.DB) {
		db, err := store.Open(t.Context(), storetest.At(t, file))
		if err != nil {
			t.Fatal(err)
		}
		l, err := New(t.Context(), Options{Limits: []Limit{{Calls: 10, Tokens: 1000}}, Store: db})
		if err != nil {
			t.Fatal(err)
		}
		return l, db
	}
	end := func(l *Limiter, db *store.DB) {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	first, db1 := open()
	second, db2 := open() // beside it, as "chat" and "serve"
	today := first.days.today
	uses(t, first, tool(ada, "a", "x"), 4)
	uses(t, second, tool(ada, "a", "x"), 3)
	first.Tokens(bob, "gpt-5", 600)
	second.Tokens(bob, "gpt-5", 600)
	end(first, db1)
	end(second, db2)

	third, db3 := open()
	calls, _ := uses(t, third, tool(ada, "a", "x"), 5)
	models, _ := uses(t, third, Model(bob, "gpt-5"), 1)
	if day(time.Now()) != today {
		t.Skip("it became midnight meanwhile")
	}
	if calls != 3 || models != 0 {
		t.Errorf("%d calls after seven of ten, and %d of a model without tokens", calls, models)
	}
	if err := third.Close(t.Context()); err != nil {
		t.Error(err)
	}

	// A store that cannot be used stops nobody: memory knows.
	if err := db3.Close(); err != nil {
		t.Error(err)
	}
	third.closed = false
	uses(t, third, tool(bob, "a", "x"), 5)
	third.keep()
	if n, _ := uses(t, third, tool(bob, "a", "x"), 10); n != 5 && day(time.Now()) == today {
		t.Errorf("%d calls after five of ten, without a store", n)
	}
	if third.Close(t.Context()) == nil && day(time.Now()) == today {
		t.Error("what cannot be kept is no error at the end")
	}
}
