package stored

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/responses"
)

// talks returns what a process has of conversations in the store at a path.
func talks(t testing.TB, path string) *Conversations {
	t.Helper()
	there := opened(t, path)
	return NewConversations(there.db, there.kind.Vault, 0)
}

func addition(texts ...string) *responses.Addition {
	turn := &memory.Turn{Hidden: []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"<a> & b"}`)}, Text: texts[0]}
	a := &responses.Addition{Turns: map[string]*memory.Turn{"a " + texts[0]: turn, "b " + texts[0]: turn}}
	for _, text := range texts {
		a.Items = append(a.Items, json.RawMessage(`{"type":"message","role":"user","content":"`+text+`"}`))
	}
	return a
}

// TestConversations: another process has a conversation as it was; it is its caller's, and
// gone when it is deleted, or its caller is erased.
func TestConversations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	here, there := talks(t, path), talks(t, path)
	made := responses.NewKept(json.RawMessage(`{"topic":"<demo>"}`), nil)
	if err := here.Put(t.Context(), "ann", made); err != nil {
		t.Fatal(err)
	}
	want, err := there.Change(t.Context(), "ann", made.ID, "", func(k responses.Kept) (*responses.Kept, error) { return k.With(addition("one", "two")), nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := here.Get(t.Context(), "ann", made.ID); err != nil || !reflect.DeepEqual(got, want) || got.Turns["a one"] != got.Turns["b one"] {
		t.Fatalf("%+v, %v\nwant %+v", got, err, want)
	}
	refused := errors.New("no")
	if _, err := here.Change(t.Context(), "ann", made.ID, "", func(responses.Kept) (*responses.Kept, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	gone := func(why, caller string) {
		t.Helper()
		if k, err := there.Get(t.Context(), caller, made.ID); !errors.Is(err, responses.ErrNotKept) {
			t.Errorf("%s: %v, %v", why, k, err)
		}
		if _, err := there.Change(t.Context(), caller, made.ID, "", func(k responses.Kept) (*responses.Kept, error) { return &k, nil }); !errors.Is(err, responses.ErrNotKept) {
			t.Errorf("%s, changed: %v", why, err)
		}
		if err := there.Claim(t.Context(), caller, made.ID, "x", time.Minute); !errors.Is(err, responses.ErrNotKept) {
			t.Errorf("%s, claimed: %v", why, err)
		}
	}
	gone("another caller's", "bob")
	if ok, err := there.Delete(t.Context(), "bob", made.ID); ok || err != nil {
		t.Errorf("another caller deletes it: %v, %v", ok, err)
	}
	if ok, err := there.Delete(t.Context(), "ann", made.ID); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	gone("deleted", "ann")
	if err := here.Put(t.Context(), "ann", made); err != nil {
		t.Fatal(err)
	}
	if err := here.db.Write(t.Context(), func(tx *store.Tx) error { _, err := here.kind.Vault.Erase(tx, "ann"); return err }); err != nil {
		t.Fatal(err)
	}
	if k, err := there.Get(t.Context(), "ann", made.ID); !errors.Is(err, responses.ErrNotKept) {
		t.Errorf("erased: %v, %v", k, err)
	}
}

// TestClaims: of all who claim a conversation, in all processes, one has it, until it lets go
// or its time is over; and who has it not adds nothing in its name.
func TestClaims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	processes := []*Conversations{talks(t, path), talks(t, path)}
	k := responses.NewKept(nil, nil)
	if err := processes[0].Put(t.Context(), "ann", k); err != nil {
		t.Fatal(err)
	}
	held := make(chan string, 10)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			holder := fmt.Sprint("holder ", i)
			switch err := processes[i%2].Claim(t.Context(), "ann", k.ID, holder, time.Hour); {
			case err == nil:
				held <- holder
			case !errors.Is(err, responses.ErrClaimed):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(held) != 1 {
		t.Fatalf("%d have it", len(held))
	}
	holder, other := <-held, "another"
	add := func(in *Conversations, holder string) error {
		_, err := in.Change(t.Context(), "ann", k.ID, holder, func(k responses.Kept) (*responses.Kept, error) { return k.With(addition("one")), nil })
		return err
	}
	if err := add(processes[1], other); !errors.Is(err, responses.ErrClaimed) {
		t.Errorf("another one adds: %v", err)
	}
	for _, err := range []error{
		add(processes[1], holder),
		processes[1].Claim(t.Context(), "ann", k.ID, holder, time.Hour), // again
		processes[0].Release(t.Context(), "ann", k.ID, other),           // which is nothing of its own
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := processes[0].Claim(t.Context(), "ann", k.ID, other, time.Hour); !errors.Is(err, responses.ErrClaimed) {
		t.Errorf("released by another one: %v", err)
	}
	if err := processes[0].db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE conversation_claims SET expires = 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := processes[0].Claim(t.Context(), "ann", k.ID, other, time.Hour); err != nil {
		t.Errorf("its time is over: %v", err)
	}
	if err := processes[1].Release(t.Context(), "ann", k.ID, other); err != nil {
		t.Error(err)
	}
	if err := processes[1].Claim(t.Context(), "ann", k.ID, holder, time.Hour); err != nil {
		t.Errorf("released: %v", err)
	}
	var content []byte
	if err := processes[0].db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Row("SELECT content FROM conversations", nil, &content)
	}); err != nil || bytes.Contains(content, []byte("one")) {
		t.Errorf("%q, %v", content, err)
	}
}
