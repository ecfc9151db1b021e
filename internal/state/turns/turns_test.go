package turns

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Restart|Owners|Expire|Room|StoreFails|GoesOnElsewhere)$")
}

// opened returns what a process has of the store at a path.
func opened(t testing.TB, path string, config Config) *Turns {
	t.Helper()
	db, keys := storetest.OpenSealed(t, storetest.At(t, path))
	return New(db, keys, config)
}

var usual = Config{Bounds: Bounds{Bytes: 1 << 20, TTL: time.Hour}}

func turn(text string) *memory.Turn {
	return &memory.Turn{Hidden: []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"<a> & b"}`)}, Text: text}
}

func keep(t testing.TB, in *Turns, owner string, turn *memory.Turn, keys ...string) {
	t.Helper()
	if err := in.Keep(t.Context(), owner, keys, turn); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, in *Turns, owner string, keys ...string) map[string]*memory.Turn {
	t.Helper()
	found, err := in.Find(t.Context(), owner, keys)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRestart: a turn is found by each of its keys in another process, as it was, and a
// later one under the same key stands in its place.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	first := opened(t, path, usual)
	want := turn("hello")
	keep(t, first, "ann", want, "a", "b")
	second := opened(t, path, usual)
	if found := find(t, second, "ann", "a", "x", "b"); len(found) != 2 || !reflect.DeepEqual(found["a"], want) || !reflect.DeepEqual(found["b"], want) {
		t.Errorf("found %+v", found)
	}
	keep(t, first, "ann", turn("again"), "b")
	if err := first.Drop(t.Context(), "ann", "a"); err != nil {
		t.Fatal(err)
	}
	third := opened(t, path, usual)
	if found := find(t, third, "ann", "a", "b"); len(found) != 1 || found["b"].Text != "again" {
		t.Errorf("found %+v", found)
	}
}

// TestDropInTrouble: what is kept of a request cannot be taken out of a store that cannot be
// written to; the request that comes again is no worse off than others for that.
func TestDropInTrouble(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be renamed")
	}
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here := opened(t, path, usual)
	keep(t, here, "ann", turn("hello"), "a")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := here.Drop(t.Context(), "ann", "a"); err != nil {
		t.Errorf("while the file is away: %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := here.Drop(t.Context(), "ann", "a"); err != nil {
		t.Error(err)
	}
	if found := find(t, here, "ann", "a"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

// ann is an owner as the doors write it: a caller, the person behind it, and a conversation.
const ann = "key-1\x00\"ann\"\x00\"\"\x00\"\"\x00work"

// TestOwners: what is kept is its owner's, and gone when the owner is erased.
func TestOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here := opened(t, path, usual)
	keep(t, here, ann, turn("ann's"), "k")
	keep(t, here, "bob", turn("bob's"), "k")
	people := "bob\x00\"ada\"\x00" // as recall names an owner
	keep(t, here, people, turn("ada's"), "k")
	there := opened(t, path, usual)
	if found := find(t, opened(t, path, usual), ann, "k"); found["k"] == nil {
		t.Error("ann's is not there")
	}
	if found := find(t, there, "eve", "k"); len(found) > 0 {
		t.Errorf("eve finds %v", found)
	}
	if err := there.db.Write(t.Context(), func(tx *store.Tx) error { _, err := there.vault.Erase(tx, store.Owner(ann)); return err }); err != nil {
		t.Fatal(err)
	}
	if found := find(t, there, ann, "k"); len(found) > 0 {
		t.Errorf("erased, and still there: %v", found)
	}
	if found := find(t, there, "bob", "k"); found["k"] == nil || found["k"].Text != "bob's" {
		t.Errorf("bob finds %v", found)
	}
	if found := find(t, there, people, "k"); found["k"] == nil || found["k"].Text != "ada's" {
		t.Errorf("a person behind a key finds %v", found)
	}
}

// TestExpire: what has not been used for its time is gone; package keeping removes its rows.
func TestExpire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here := opened(t, path, Config{Bounds: Bounds{Bytes: 1 << 20, TTL: time.Microsecond}})
	keep(t, here, "ann", turn("short"), "k")
	there := opened(t, path, usual)
	if found := find(t, there, "ann", "k"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestRoom: an owner who has all that it may gives up what it used longest ago, and
// nobody else does.
func TestRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	config := Config{Bounds: Bounds{Bytes: 4000, TTL: time.Hour}}
	here := opened(t, path, config)
	keep(t, here, "bob", turn("bob's"), "0")
	for i := range 6 {
		keep(t, here, "ann", turn(strings.Repeat("x", 900)), fmt.Sprint(i))
	}
	there := opened(t, path, Config{Bounds: Bounds{Bytes: 1 << 20, TTL: time.Hour}})
	if found := find(t, there, "ann", "0", "1", "2", "3", "4", "5"); len(found) != 4 || found["0"] != nil || found["5"] == nil {
		t.Errorf("%d are left", len(found))
	}
	if found := find(t, there, "bob", "0"); len(found) != 1 {
		t.Error("bob gave up something")
	}
}

// TestStoreFails: while the store cannot be used, conversations go on with what this
// process remembers.
func TestStoreFails(t *testing.T) {
	here := opened(t, filepath.Join(t.TempDir(), "dragoman.db"), usual)
	keep(t, here, "ann", turn("before"), "a")
	here.db.Close()
	if err := here.Keep(t.Context(), "ann", []string{"b"}, turn("after")); err == nil {
		t.Error("it is kept in a store that is closed")
	}
	if found := find(t, here, "ann", "a", "b", "c"); len(found) != 2 {
		t.Errorf("found %v", found)
	}
	if err := here.Drop(t.Context(), "ann", "a"); err != nil {
		t.Error(err)
	}
	if found := find(t, here, "ann", "a"); len(found) > 0 {
		t.Errorf("dropped, and found: %v", found)
	}
}

// TestNothingIsReadable: no word of a conversation, and no key, stands in the file.
func TestNothingIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here := opened(t, path, usual)
	keep(t, here, "ann", turn("watermelon"), "pineapple")
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("watermelon")) || bytes.Contains(data, []byte("pineapple")) {
			t.Errorf("%s has words of it", name)
		}
	}
}

// TestNothingIsAskedTwice: that an owner has nothing is asked once, until it has
// something, here or at another process.
func TestNothingIsAskedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := opened(t, path, usual), opened(t, path, usual)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); here.Watch(ctx) }()
	asked := func() uint64 {
		before := here.db.Waited()
		if err := here.Drop(t.Context(), "ann", "k"); err != nil {
			t.Fatal(err)
		}
		return here.db.Waited() - before
	}
	// The first look at the topics makes it forget, once: so twice in a row is certain.
	for quiet := 0; quiet < 2; quiet++ {
		if asked() > 0 {
			quiet = -1
		}
	}
	keep(t, there, "ann", turn("elsewhere"), "k")
	// Once it has heard of it, it looks, and drops what is there: for all processes.
	for len(find(t, opened(t, path, usual), "ann", "k")) > 0 {
		asked()
		runtime.Gosched()
	}
	keep(t, here, "ann", turn("here"), "k")
	if asked() == 0 {
		t.Error("it has something, and nobody looks")
	}
	cancel()
	<-ended
	if here.none.Load() != nil {
		t.Error("known without a watch")
	}
}

// TestGoesOnElsewhere: what is kept of a turn before its end is gone on with at another process,
// and found as that left it. A turn that has ended costs no statement, nor does anything where
// nobody else can have gone on with it; what could not be read is as it was kept here.
func TestGoesOnElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := opened(t, path, usual), opened(t, path, usual)
	keep(t, here, "ann", turn("one call"), "request")
	ended := turn("over")
	ended.Final = json.RawMessage(`{"role":"assistant","content":"over"}`)
	keep(t, here, "ann", ended, "ended")
	if found := find(t, there, "ann", "request")["request"]; found == nil || found.Text != "one call" {
		t.Fatalf("there: %+v", found)
	}
	keep(t, there, "ann", turn("two calls"), "request")
	for _, in := range []*Turns{here, there} {
		if found := find(t, in, "ann", "request")["request"]; found == nil || found.Text != "two calls" {
			t.Errorf("found %+v", found)
		}
	}
	before := here.db.Waited()
	if find(t, here, "ann", "ended"); here.db.Waited() > before {
		t.Error("a turn that has ended is read again")
	}
	here.db.Close()
	if found := find(t, here, "ann", "request")["request"]; found == nil || found.Text != "two calls" {
		t.Errorf("without the store: %+v", found)
	}
}
