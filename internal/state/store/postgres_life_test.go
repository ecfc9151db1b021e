//go:build unix

package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
)

// TestCommitBeforeACrash: of a transaction whose commit was not answered, and a database that
// has crashed since, nobody says that it was written: had it been lost, its number would be
// another's now.
func TestCommitBeforeACrash(t *testing.T) {
	straight := pgtest.URL(t)
	c, url := pgtest.Lay(t, straight)
	db := made(t, url)
	c.Refuse(true)
	c.Cut(pgtest.After)
	written := make(chan error, 1)
	go func() { written <- db.Write(t.Context(), put("a")) }()
	for deadline := time.Now().Add(time.Minute); pgtest.SQL(t, straight, "SELECT count(*) FROM words") != "1"; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is written")
		}
	}
	pgtest.Crash(t, straight)
	c.Refuse(false)
	if err := <-written; !errors.Is(err, ErrUnknown) {
		t.Errorf("it was written, by the number of whoever has it now: %v", err)
	}
	if err := db.Write(t.Context(), put("b")); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(words(t, db)); got != "[a b]" {
		t.Errorf("there is %s", got)
	}
}

// TestLifeOfAnotherStart: a database that was started again has lost what it had not written,
// also where its processes have the ids of before, as in a container that is started again.
func TestLifeOfAnotherStart(t *testing.T) {
	p := made(t, pgtest.URL(t)).on.(*postgres)
	if !p.lives(t.Context()) {
		t.Fatal("it is not in the life in which the connection was made")
	}
	before := *p.life.Load()
	before.started = "2026-11-27 08:00:00+00"
	p.life.Store(&before)
	if p.lives(t.Context()) {
		t.Error("another start, with processes of the same ids, is the same life")
	}
}
