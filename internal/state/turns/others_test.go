package turns

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

var single = Config{Bounds: usual.Bounds, Single: true}

// looks lets each of them look in turn, so long after the clock began.
func looks(t *testing.T, after time.Duration, all ...*Turns) {
	t.Helper()
	for _, each := range all {
		if err := each.others.look(t.Context(), clock.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
}

var clock = time.Unix(1_800_000_000, 0)

// said is how often anybody has said that it is there.
func said(t *testing.T, in *Turns) (n int64) {
	t.Helper()
	if err := in.db.Read(t.Context(), func(tx *store.Tx) (err error) { n, err = tx.Raised(keepers); return err }); err != nil {
		t.Fatal(err)
	}
	return n
}

// Each tick says that a process is there, though it comes a moment early after the time that the
// one before took, and what is heard between is no reason to.
func TestSaysEachTick(t *testing.T) {
	in := opened(t, filepath.Join(t.TempDir(), "dragoman.db"), single)
	for i := range 4 {
		at := time.Duration(i) * (sayEvery - time.Millisecond)
		looks(t, at, in)
		looks(t, at+sayEvery/2, in)
		if n := said(t, in); n != int64(i+1) {
			t.Errorf("after %d ticks it has said so %d times", i+1, n)
		}
	}
}

// Who hears nobody for a while is alone, until somebody begins, and again when that one has gone.
func TestOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	first := opened(t, path, single)
	at := time.Duration(0)
	for ; at < quietFor; at += sayEvery {
		looks(t, at, first)
		if first.others.alone.Load() {
			t.Fatalf("alone after %s", at)
		}
	}
	looks(t, at, first)
	if !first.others.alone.Load() {
		t.Fatal("nobody else is there, and it is not alone")
	}
	quiet := said(t, first)
	for range 10 {
		at += sayEvery
		looks(t, at, first)
	}
	if said(t, first) != quiet {
		t.Error("one that is alone says that it is there")
	}

	second := opened(t, path, single)
	looks(t, at, second, first)
	if first.others.alone.Load() || second.others.alone.Load() {
		t.Fatal("there are two, and one is alone")
	}
	for range 20 { // as long as both are there
		at += sayEvery
		looks(t, at, first, second)
		if first.others.alone.Load() || second.others.alone.Load() {
			t.Fatal("there are two, and one is alone")
		}
	}
	at += quietFor - sayEvery
	looks(t, at, second)
	if second.others.alone.Load() {
		t.Error("alone before the other was quiet for long")
	}
	at += sayEvery
	if looks(t, at, second); !second.others.alone.Load() {
		t.Error("the first has gone, and the second is not alone")
	}
}

// TestAlone: a process that is alone asks for nothing that is not there, and misses nothing
// that is.
func TestAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	before := opened(t, path, usual)
	keep(t, before, "ann", turn("old"), "old")
	here := opened(t, path, single)
	for at := time.Duration(0); at <= quietFor; at += sayEvery {
		looks(t, at, here)
	}
	waits := func(what string, want uint64, do func()) {
		t.Helper()
		was := here.db.Waited()
		if do(); here.db.Waited()-was != want {
			t.Errorf("%s: waited %d times for the store, want %d", what, here.db.Waited()-was, want)
		}
	}
	drop := func(key string) {
		if err := here.Drop(t.Context(), "ann", key); err != nil {
			t.Error(err)
		}
	}
	waits("the first request", 1, func() { drop("new") })
	waits("the next ones", 0, func() {
		for i := range 10 {
			drop(fmt.Sprint("new", i))
			if found := find(t, here, "ann", "x", "y"); len(found) > 0 {
				t.Errorf("found %v", found)
			}
		}
	})
	waits("what is there", 1, func() {
		if found := find(t, here, "ann", "old", "x"); len(found) != 1 || found["old"].Text != "old" {
			t.Errorf("found %v", found)
		}
	})
	waits("somebody who has nothing", 1, func() {
		for range 2 {
			if here.Any(t.Context(), "bob") {
				t.Error("bob has something")
			}
		}
	})
	keep(t, here, "bob", turn("bob's"), "k")
	here.cached.Clear()
	if !here.Any(t.Context(), "bob") || find(t, here, "bob", "k")["k"] == nil {
		t.Error("what was kept here is not known")
	}
	drop("old")
	if found := find(t, opened(t, path, usual), "ann", "old"); len(found) > 0 {
		t.Errorf("dropped, and found: %v", found)
	}
	waits("who was erased", 1, func() { here.Forget(); drop("new") })

	there := opened(t, path, single)
	looks(t, 2*quietFor, there)
	keep(t, there, "ann", turn("elsewhere"), "there")
	looks(t, 2*quietFor, here)
	if find(t, here, "ann", "there")["there"] == nil {
		t.Error("what another process kept is not found")
	}
}

// Of an owner with very many keys the store is asked, as where others keep turns.
func TestManyKeys(t *testing.T) {
	here := opened(t, filepath.Join(t.TempDir(), "dragoman.db"), single)
	here.others.alone.Store(true)
	here.Any(t.Context(), "ann") // from here on it is known
	keys := make([]string, mostKnown+1)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	here.known.add("ann", keys)
	keep(t, here, "ann", turn("x"), "k")
	here.cached.Clear()
	if own := here.keys(t.Context(), "ann"); own != nil {
		t.Errorf("%d keys are known", len(own.all))
	}
	if !here.Any(t.Context(), "ann") || find(t, here, "ann", "k")["k"] == nil {
		t.Error("what is there is not found")
	}
}
