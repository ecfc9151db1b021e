package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Restart|Follow|ItemsThatTell|Owners|Delete|Spend|Expire|All|Conversations|Claims)$")
}

// opened returns what a process has of the store at a path.
func opened(t testing.TB, path string) *Responses {
	t.Helper()
	db, keys := storetest.OpenSealed(t, storetest.At(t, path))
	return New(db, keys, 0)
}

func response(id string) *responses.Stored {
	turn := &memory.Turn{Hidden: []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"<a> & b"}`)}, Text: "watermelon"}
	return &responses.Stored{
		ID: id, Previous: "resp_dg0", Person: "user ada",
		Input:    []json.RawMessage{json.RawMessage(`{"id":"in-` + id + `","content":"<x>"}`)},
		Output:   []json.RawMessage{json.RawMessage(`{"id":"out-` + id + `","content":"pineapple"}`)},
		Response: json.RawMessage(`{"id":"` + id + `"}`),
		Turns:    map[string]*memory.Turn{"a": turn, "b": turn},
	}
}

func put(t testing.TB, in *Responses, caller string, s *responses.Stored) {
	t.Helper()
	if err := in.Put(t.Context(), caller, s); err != nil {
		t.Fatal(err)
	}
}

// TestRestart: another process has a response as it was, by its id and by its items'.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	want := response("resp_dg1")
	put(t, opened(t, path), "ann", want)
	there := opened(t, path)
	found, err := there.Get(t.Context(), "ann", "resp_dg1")
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Fatalf("%+v, %v", found, err)
	}
	if found.Turns["a"] != found.Turns["b"] {
		t.Error("a turn that stands under two keys has become two")
	}
	for _, item := range []string{"in-resp_dg1", "out-resp_dg1"} {
		if found, err := there.With(t.Context(), "ann", item); err != nil || found == nil || found.ID != "resp_dg1" {
			t.Errorf("with %s: %v, %v", item, found, err)
		}
	}
}

// TestFollow: what a response goes on from comes after it, as far as somebody wants to know, of
// one caller alone; what is missing ends it.
func TestFollow(t *testing.T) {
	here := opened(t, filepath.Join(t.TempDir(), "dragoman.db"))
	for i, id := range []string{"resp_dg1", "resp_dg2", "resp_dg3"} {
		s := response(id)
		if s.Previous = ""; i > 0 {
			s.Previous = fmt.Sprintf("resp_dg%d", i)
		}
		put(t, here, "ann", s)
	}
	lost := response("resp_dg4")
	lost.Previous = "resp_dg_gone"
	put(t, here, "ann", lost)
	for _, tc := range []struct {
		caller, id, until, want string
	}{
		{"ann", "resp_dg3", "", "resp_dg3 resp_dg2 resp_dg1"},
		{"ann", "resp_dg3", "resp_dg2", "resp_dg3 resp_dg2"},
		{"ann", "resp_dg1", "", "resp_dg1"},
		{"ann", "resp_dg4", "", "resp_dg4 none"},
		{"ann", "resp_dg5", "", "none"},
		{"bob", "resp_dg3", "", "none"},
	} {
		var got []string
		err := here.Follow(t.Context(), tc.caller, tc.id, func(s *responses.Stored) bool {
			if s == nil {
				got = append(got, "none")
				return true // there is no more all the same
			}
			got = append(got, s.ID)
			return s.ID != tc.until
		})
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%s follows %s: %q, %v; want %q", tc.caller, tc.id, got, err, tc.want)
		}
	}
}

// TestItemsThatTell: an item whose id tells its response is found without being kept under it,
// as long as the response is there and has it.
func TestItemsThatTell(t *testing.T) {
	const random = "abcdefghijklmnopqrstuvwxyz"
	here := opened(t, filepath.Join(t.TempDir(), "dragoman.db"))
	s := response(responses.IDPrefix + random)
	s.Output = append(s.Output, json.RawMessage(`{"id":"msg_`+random+`o1"}`))
	put(t, here, "ann", s)
	for item, want := range map[string]bool{"msg_" + random + "o1": true, "msg_" + random + "o2": false, "out-" + s.ID: true} {
		if found, err := here.With(t.Context(), "ann", item); err != nil || (found != nil) != want {
			t.Errorf("with %s: %v, %v", item, found, err)
		}
		if found, err := here.With(t.Context(), "bob", item); err != nil || found != nil {
			t.Errorf("another caller has %s: %v, %v", item, found, err)
		}
	}
	if there, err := here.Delete(t.Context(), "ann", s.ID); !there || err != nil {
		t.Fatal(there, err)
	}
	if found, err := here.With(t.Context(), "ann", "msg_"+random+"o1"); err != nil || found != nil {
		t.Errorf("it is still there: %v, %v", found, err)
	}
}

// TestOwners: a response is its caller's, and gone when the caller is erased.
func TestOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here := opened(t, path)
	put(t, here, "ann", response("resp_dg1"))
	gone := func(why, caller string) {
		t.Helper()
		s, err := here.Get(t.Context(), caller, "resp_dg1")
		with, err2 := here.With(t.Context(), caller, "in-resp_dg1")
		if s != nil || with != nil || err != nil || err2 != nil {
			t.Errorf("%s: %v, %v, %v, %v", why, s, with, err, err2)
		}
	}
	gone("another caller", "bob")
	if there, err := here.Delete(t.Context(), "bob", "resp_dg1"); there || err != nil {
		t.Errorf("another caller deletes it: %v, %v", there, err)
	}
	if err := here.db.Write(t.Context(), func(tx *store.Tx) error { _, err := here.kind.Vault.Erase(tx, "ann"); return err }); err != nil {
		t.Fatal(err)
	}
	gone("erased", "ann")
}

// TestDelete: what one process deletes is gone in all, with its items.
func TestDelete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := opened(t, path), opened(t, path)
	put(t, here, "ann", response("resp_dg1"))
	put(t, here, "ann", response("resp_dg2"))
	if ok, err := there.Delete(t.Context(), "ann", "resp_dg1"); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	if ok, err := there.Delete(t.Context(), "ann", "resp_dg1"); ok || err != nil {
		t.Errorf("twice: %v, %v", ok, err)
	}
	for id, want := range map[string]bool{"resp_dg1": false, "resp_dg2": true} {
		s, err := here.Get(t.Context(), "ann", id)
		with, err2 := here.With(t.Context(), "ann", "out-"+id)
		if (s != nil) != want || (with != nil) != want || err != nil || err2 != nil {
			t.Errorf("%s: %v, %v, %v, %v", id, s, with, err, err2)
		}
	}
}

// TestSpend: of all who use an approval at once, in all processes, one is the first; and
// each caller has its own.
func TestSpend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	processes := []*Responses{opened(t, path), opened(t, path)}
	var wg sync.WaitGroup
	var first atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			ok, err := processes[i%2].Spend(t.Context(), "ann", "mcpr_1")
			if err != nil {
				t.Error(err)
			}
			if ok {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 {
		t.Errorf("%d were the first", first.Load())
	}
	if ok, err := opened(t, path).Spend(t.Context(), "ann", "mcpr_1"); ok || err != nil {
		t.Errorf("after a restart: %v, %v", ok, err)
	}
	if ok, err := processes[0].Spend(t.Context(), "bob", "mcpr_1"); !ok || err != nil {
		t.Errorf("another caller: %v, %v", ok, err)
	}
}

// TestExpire: what has expired is not there, and its rows go.
func TestExpire(t *testing.T) {
	here := opened(t, filepath.Join(t.TempDir(), "dragoman.db"))
	put(t, here, "ann", response("resp_dg1"))
	if _, err := here.Spend(t.Context(), "ann", "mcpr_1"); err != nil {
		t.Fatal(err)
	}
	rows := func() (n int) {
		if err := here.db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT (SELECT count(*) FROM responses) + (SELECT count(*) FROM response_keys) + (SELECT count(*) FROM consents)", nil, &n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := rows(); n != 4 {
		t.Errorf("%d rows", n)
	}
	err := here.db.Write(t.Context(), func(tx *store.Tx) error {
		for _, table := range []string{"responses", "response_keys", "consents"} {
			if _, err := tx.Exec("UPDATE " + table + " SET expires = 1"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := here.Get(t.Context(), "ann", "resp_dg1"); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := keeping.New(here.db, store.Quota{}, slog.New(slog.DiscardHandler)).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := rows(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestAll: a caller who has very much gives up nothing for what is new. Who has too much is
// refused before ([keeping.Keeper.Admit]), and there may be a quota without end.
func TestAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	keep := func(n string) (*Responses, *Conversations) {
		t.Helper()
		db, keys := storetest.OpenSealed(t, storetest.At(t, path))
		made, talks := New(db, keys, 0), NewConversations(db, keys, 0)
		put(t, made, "ann", response("resp_dg"+n))
		if err := talks.Put(t.Context(), "ann", &responses.Kept{ID: "conv_" + n}); err != nil {
			t.Fatal(err)
		}
		return made, talks
	}
	here, _ := keep("1")
	if err := here.db.Write(t.Context(), func(tx *store.Tx) error {
		for _, table := range []string{"responses", "conversations"} {
			if _, err := tx.Exec("UPDATE "+table+" SET size = $1", int64(1)<<40); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	made, talks := keep("2") // by another process, which counts what there is
	for _, n := range []string{"1", "2"} {
		if s, err := made.Get(t.Context(), "ann", "resp_dg"+n); s == nil || err != nil {
			t.Errorf("response %s: %v, %v", n, s, err)
		}
		if k, err := talks.Get(t.Context(), "ann", "conv_"+n); k == nil || err != nil {
			t.Errorf("conversation %s: %v, %v", n, k, err)
		}
	}
}

// TestNothingIsReadable: no word of a response stands in the file.
func TestNothingIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	put(t, opened(t, path), "ann", response("resp_dg1"))
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"watermelon", "pineapple", "out-resp", "user ada"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s has %q", name, word)
			}
		}
	}
}

// BenchmarkFollow reads what a request goes on from: a chain of 50 responses in a file.
func BenchmarkFollow(b *testing.B) {
	here := opened(b, filepath.Join(b.TempDir(), "dragoman.db"))
	const long = 50
	for i := range long {
		s := response(fmt.Sprint("resp_dg", i+1))
		if s.Turns, s.Previous = nil, ""; i > 0 {
			s.Previous = fmt.Sprint("resp_dg", i)
		}
		if err := here.Put(b.Context(), "ann", s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := here.Follow(b.Context(), "ann", fmt.Sprint("resp_dg", long), func(*responses.Stored) bool { n++; return true }); err != nil || n != long {
			b.Fatal(n, err)
		}
	}
}
