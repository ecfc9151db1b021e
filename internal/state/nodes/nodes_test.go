package nodes

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: nodes of a PostgreSQL database.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^TestNode") }

func open(t *testing.T, path string) *store.DB {
	t.Helper()
	return storetest.Open(t, storetest.At(t, path))
}

// A clock is the database's, for a test that does not wait.
type clock struct{ at time.Time }

func (c *clock) now(*store.Tx) (time.Time, error) { return c.at, nil }

func list(t *testing.T, db *store.DB) (all []Standing) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *store.Tx) (err error) { all, err = List(tx); return err }); err != nil {
		t.Fatal(err)
	}
	return all
}

func alive(t *testing.T, db *store.DB, id string) (is bool) {
	t.Helper()
	return seen(t, db, &Node{}, id)
}

// seen is alive as a node can tell.
func seen(t *testing.T, db *store.DB, by *Node, id string) (is bool) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *store.Tx) (err error) { is, err = by.Alive(tx, id); return err }); err != nil {
		t.Fatal(err)
	}
	return is
}

// TestNodes: nodes of two processes know of each other, whichever joins first; one that
// says nothing is dead after its lease, and back when it speaks again; one that leaves is
// gone at once; and no number is given twice.
func TestNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := open(t, path), open(t, path)
	long := &clock{time.Now().Add(-Lease - time.Second)}
	a, err := join(t.Context(), here, Info{Version: "1", Setup: "s1", Address: "127.0.0.1:1"}, long.now)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Join(t.Context(), there, Info{Version: "2", Setup: "s2"})
	if err != nil {
		t.Fatal(err)
	}
	if a.ID() != "n1" || b.ID() != "n2" {
		t.Fatalf("they are %s and %s", a.ID(), b.ID())
	}
	if b.Count() != 1 || alive(t, here, a.ID()) || !alive(t, here, b.ID()) {
		t.Errorf("one whose lease is over lives: %+v", list(t, here))
	}
	a.now = (*store.Tx).Now
	a.Use("s2")
	if err := a.Beat(t.Context()); err != nil || a.Count() != 2 || !alive(t, there, a.ID()) {
		t.Errorf("it does not come back: %v, %+v", err, list(t, there))
	}
	all := list(t, here)
	if len(all) != 2 || all[0].Setup != "s2" || all[0].Version != "1" || all[0].Address != "127.0.0.1:1" || !all[1].Alive || all[1].Skewed() {
		t.Errorf("%+v", all)
	}
	if err := b.Leave(t.Context()); err != nil || alive(t, here, b.ID()) {
		t.Errorf("it left and lives: %v", err)
	}
	if err := b.Beat(t.Context()); err != nil || len(list(t, here)) != 1 {
		t.Errorf("one that left came back: %v", err)
	}
	c, err := Join(t.Context(), there, Info{})
	if err != nil || c.ID() != "n3" {
		t.Errorf("the third is %s, %v", c.ID(), err)
	}
	for _, id := range []string{"", "n", "n99", "3", "n-1", "x3"} {
		if alive(t, here, id) {
			t.Errorf("%q lives", id)
		}
	}
}

// TestNodeWhileTheStoreIsAway: after a time in which the store could not be written, those that
// lived before get the time to say that they live; those that were dead stay so.
func TestNodeWhileTheStoreIsAway(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "dragoman.db"))
	lives, dead, gone, here := joined(t, db), joined(t, db), joined(t, db), joined(t, db)
	for n, lease := range map[*Node]int64{lives: store.Time(here.said) + 1, dead: store.Time(here.said) - 1} {
		if err := db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE nodes SET lease = $1 WHERE number = $2", lease, n.number)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := gone.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen(t, db, here, lives.ID()) {
		t.Error("it lives, and nothing kept it from saying so")
	}
	here.now = func(*store.Tx) (time.Time, error) { return time.Time{}, errors.New("the database cannot be reached") }
	if here.Beat(t.Context()) == nil {
		t.Fatal("it says that it lives")
	}
	here.now = (*store.Tx).Now
	if err := here.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[*Node]bool{lives: true, dead: false, gone: false} {
		if got := seen(t, db, here, n.ID()); got != want {
			t.Errorf("%s lives: %t", n.ID(), got)
		}
	}
	here.missed = here.missed.Add(-Lease)
	if seen(t, db, here, lives.ID()) {
		t.Error("it has had its time")
	}
}

// TestNodeWhileTheStoreStandsStill: so it is where nothing fails, and the store answers late.
func TestNodeWhileTheStoreStandsStill(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "dragoman.db"))
	lives, here := joined(t, db), joined(t, db)
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE nodes SET lease = $1 WHERE number = $2", store.Time(here.said)+1, lives.number)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	here.clock = func() time.Time { return at }
	here.now = func(tx *store.Tx) (time.Time, error) {
		at = at.Add(Lease)
		if !seen(t, db, here, lives.ID()) {
			t.Error("taken for dead by who waits for the store")
		}
		return tx.Now()
	}
	if err := here.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !seen(t, db, here, lives.ID()) {
		t.Error("taken for dead by who has waited for the store")
	}
	here.now = (*store.Tx).Now
	if err := here.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	here.missed = here.missed.Add(-Lease)
	if seen(t, db, here, lives.ID()) {
		t.Error("it has had its time")
	}
}

func joined(t *testing.T, db *store.DB) *Node {
	t.Helper()
	n, err := Join(t.Context(), db, Info{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNodeOfLostRecords: where the database forgets that a node was given its number, as on a
// standby that follows asynchronously, or in a backup, no other one gets it.
func TestNodeOfLostRecords(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "dragoman.db"))
	if _, err := Join(t.Context(), db, Info{}); err != nil {
		t.Fatal(err)
	}
	late, err := Join(t.Context(), db, Info{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("DELETE FROM nodes WHERE number = 2")
		_, err2 := tx.Exec("UPDATE node_numbers SET last = 1")
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	if err := late.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := Join(t.Context(), db, Info{})
	if err != nil {
		t.Fatal(err)
	}
	if late.ID() != "n2" || next.ID() != "n3" || next.Count() != 3 {
		t.Errorf("nodes %s and %s, %+v", late.ID(), next.ID(), list(t, db))
	}
}

// TestNodeClocks: a clock that goes wrong is seen, either way, and does nothing to leases.
func TestNodeClocks(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "dragoman.db"))
	for _, off := range []time.Duration{-time.Hour, -6 * time.Second, 0, 6 * time.Second, time.Hour} {
		n, err := Join(t.Context(), db, Info{})
		if err != nil {
			t.Fatal(err)
		}
		n.clock = func() time.Time { return time.Now().Add(off) }
		if err := n.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := list(t, db)
		s := all[len(all)-1]
		if s.Skewed() != (off != 0) || (s.Ahead-off).Abs() > 4*time.Second || !s.Alive {
			t.Errorf("ahead by %s: %+v", off, s)
		}
	}
}

// TestNodeOfSlowDatabase: a database that was long in answering says nothing about a clock.
func TestNodeOfSlowDatabase(t *testing.T) {
	at := time.Now()
	slow := func(tx *store.Tx) (time.Time, error) {
		now, err := tx.Now()
		at = at.Add(time.Minute)
		return now, err
	}
	n, err := join(t.Context(), open(t, filepath.Join(t.TempDir(), "dragoman.db")), Info{}, slow)
	if err != nil {
		t.Fatal(err)
	}
	n.clock = func() time.Time { return at }
	at = time.Now()
	if err := n.Beat(t.Context()); err != nil || n.Ahead().Abs() > Skew {
		t.Errorf("ahead by %s, %v", n.Ahead(), err)
	}
}

// TestNodeTellsItsClock: the log of the machine whose clock is wrong says so, once.
func TestNodeTellsItsClock(t *testing.T) {
	n, err := Join(t.Context(), open(t, filepath.Join(t.TempDir(), "dragoman.db")), Info{})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	log, wrong := slog.New(slog.NewTextHandler(&said, nil)), false
	for i, off := range []time.Duration{0, time.Hour, time.Hour, 0, -time.Hour} {
		n.clock = func() time.Time { return time.Now().Add(off) }
		if err := n.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
		said.Reset()
		wrong = n.tellClock(log, wrong)
		want := []string{"", "is not the database's", "", "is the database's again", "is not the database's"}[i]
		if got := said.String(); wrong != (off != 0) || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("beat %d, ahead by %s: %q", i, off, got)
		}
	}
}

// TestNodeDead: the long dead are removed by whoever speaks next.
func TestNodeDead(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "dragoman.db"))
	long := &clock{time.Now().Add(-Lease - shown - time.Minute)}
	if _, err := join(t.Context(), db, Info{}, long.now); err != nil {
		t.Fatal(err)
	}
	if n := len(list(t, db)); n != 1 {
		t.Fatalf("%d nodes", n)
	}
	if _, err := Join(t.Context(), db, Info{}); err != nil {
		t.Fatal(err)
	}
	if all := list(t, db); len(all) != 1 || all[0].ID != "n2" {
		t.Errorf("%+v", all)
	}
}

// TestAlone: a process that is alone has no name, and asks nobody.
func TestAlone(t *testing.T) {
	var n *Node
	n.Use("x")
	n.Listens("x")
	n.Keep(context.Background(), nil)
	if n.ID() != "" || n.Count() != 1 || n.Leave(context.Background()) != nil {
		t.Errorf("%q, %d", n.ID(), n.Count())
	}
}
