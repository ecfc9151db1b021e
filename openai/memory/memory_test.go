package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
)

func full(size int) *Turn {
	big := json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
	return &Turn{
		Hidden: []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"<a> & b","n":9007199254740993}`)},
		Text:   "text", Wrote: true, More: true, Spent: Spent{Rounds: 1, Calls: 2, Bytes: 3},
		Open: &Message{
			Message: json.RawMessage(`{"role":"assistant","content":null}`),
			Calls: []Call{
				{ID: "a", Raw: json.RawMessage(`{"id":"a"}`), Result: big},
				{ID: "b", Client: "c", Raw: json.RawMessage(`{"id":"b"}`)},
				{ID: "d", Raw: json.RawMessage(`{"id":"d"}`), Waiting: &Waiting{
					Server: "files", Original: "delete", Pin: []byte{1, 2}, Arguments: json.RawMessage(`{"path":"/a"}`), State: []byte("sealed"),
					Ran: dragoman.RanYes, Expires: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
					Questions: []Question{{Key: "k", Kind: dragoman.AskForm, Server: "files", Params: json.RawMessage(`{"message":"Sure?"}`)}},
				}},
			},
			After: []json.RawMessage{json.RawMessage(`{"role":"user"}`)},
		},
		Undelivered: json.RawMessage(`{"id":"x","text":["a"]}`),
	}
}

// A turn is plain JSON: what is kept in a database comes back as it was, to the byte.
func TestEncode(t *testing.T) {
	turn := full(100)
	document, err := turn.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), `"<a> & b","n":9007199254740993`) {
		t.Errorf("documents are not as they were: %s", document)
	}
	back, err := Decode(document)
	if err != nil || !reflect.DeepEqual(turn, back) {
		t.Errorf("%+v came back as %+v, %v", turn, back, err)
	}
	if _, err := Decode([]byte("{")); err == nil {
		t.Error("half a document is a turn")
	}
}

// A turn counts what it holds: no field of it can hide a large document.
func TestSizeIsHonest(t *testing.T) {
	const large = 20 << 20
	document := json.RawMessage(`"` + strings.Repeat("x", large) + `"`)
	for _, turn := range []*Turn{
		{Prompt: []json.RawMessage{document}}, {Hidden: []json.RawMessage{document}}, {Final: document}, {Text: string(document)},
		{Open: &Message{Message: document}}, {Open: &Message{After: []json.RawMessage{document}}},
		{Open: &Message{Calls: []Call{{Raw: document}}}}, {Open: &Message{Calls: []Call{{Result: document}}}},
		{Open: &Message{Calls: []Call{{ID: string(document)}}}}, {Open: &Message{Calls: []Call{{Client: string(document)}}}},
		{Open: &Message{Calls: []Call{{Waiting: &Waiting{State: document}}}}}, {Open: &Message{Calls: []Call{{Waiting: &Waiting{Arguments: document}}}}},
		{Open: &Message{Calls: []Call{{Waiting: &Waiting{Questions: []Question{{Params: document}}}}}}},
		{Undelivered: document},
		{Hidden: []json.RawMessage{append(make(json.RawMessage, 0, large), '1')}}, // room counts, used or not
	} {
		if turn.Size() < large {
			t.Errorf("%d bytes count as %d: %.100v", large, turn.Size(), turn)
		}
	}
	m := &Memory{Bytes: 64 << 20}
	for i := range 10 {
		_ = m.Keep(t.Context(), "alice", []string{fmt.Sprint(i)}, &Turn{Hidden: []json.RawMessage{document}})
	}
	found, _ := m.Find(t.Context(), "alice", []string{"5", "6", "7", "8", "9"})
	if len(found) != 3 || m.Size() > 64<<20 {
		t.Errorf("%d turns of 20 MiB in 64 MiB, which count as %d", len(found), m.Size())
	}
}

// What is kept belongs to its owner, ends with its time, and can be dropped.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, m := t.Context(), &Memory{TTL: time.Minute}
		var _ Store = m
		if m.Any(ctx, "alice") {
			t.Error("something of nobody")
		}
		turn := full(100)
		_ = m.Keep(ctx, "alice", []string{"a", "b"}, turn)
		if found, _ := m.Find(ctx, "mallory", []string{"a"}); len(found) > 0 || m.Any(ctx, "mallory") {
			t.Error("mallory finds what is alice's")
		}
		if found, _ := m.Find(ctx, "alice", []string{"x", "a", "b"}); len(found) != 2 || found["a"] != turn || found["b"] != turn {
			t.Errorf("found %v", found)
		}
		_ = m.Drop(ctx, "alice", "a")
		if found, _ := m.Find(ctx, "alice", []string{"a", "b"}); len(found) != 1 {
			t.Errorf("found %v after a drop", found)
		}
		<-time.After(time.Minute)
		if found, _ := m.Find(ctx, "alice", []string{"b"}); len(found) > 0 {
			t.Error("found what is too old")
		}
	})
}

// Of requests that are equal one runs at a time where they ask for that, each knows
// whether another waits, and one that gives up is not waited for.
func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Running{}
		end, _ := r.Begin(t.Context(), "a", "k", false)
		if beside, err := r.Begin(t.Context(), "a", "k", false); err != nil {
			t.Error(err)
		} else {
			beside()
		}
		if other, err := r.Begin(t.Context(), "b", "k", true); err != nil {
			t.Error(err)
		} else {
			other()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var order []int
		for i := range 2 {
			go func() {
				ended, err := r.Begin(t.Context(), "a", "k", true)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				<-time.After(time.Second)
				ended()
			}()
		}
		go func() {
			if _, err := r.Begin(ctx, "a", "k", true); err == nil {
				t.Error("ran though its client left")
			}
		}()
		synctest.Wait()
		if !r.Waited("a", "k") || len(order) > 0 {
			t.Error("nobody waits")
		}
		cancel()
		synctest.Wait()
		end()
		synctest.Wait()
		if len(order) != 1 || !r.Waited("a", "k") {
			t.Errorf("%d run side by side", len(order))
		}
		<-time.After(3 * time.Second)
		synctest.Wait()
		if len(order) != 2 || r.Waited("a", "k") || len(r.runs) != 0 {
			t.Errorf("%d ran, %d are left", len(order), len(r.runs))
		}
		if end, err := (*Running)(nil).Begin(ctx, "a", "k", true); err != nil {
			t.Error(err)
		} else {
			end()
		}
	})
}

// What goes on behind a request waits for its turn to be kept once its client has left, a moment
// for a client that stays, and no longer than it is waited for itself; nothing is left of it.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Running{}
		ctx, leave := context.WithCancel(t.Context())
		end := r.Mark(ctx, "a", []string{"k", "l"})
		stays := r.Mark(t.Context(), "a", []string{"l"})
		for _, keys := range [][]string{{"m"}, nil, {"l"}} {
			if err := r.Await(t.Context(), "a", keys); err != nil {
				t.Error(err)
			}
		}
		if err := r.Await(t.Context(), "b", []string{"k"}); err != nil {
			t.Error(err)
		}
		leave()
		bored, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Await(bored, "a", []string{"l", "k"}); err == nil {
			t.Error("does not wait for the turn of a client that left")
		}
		time.AfterFunc(time.Hour, end)
		begin := time.Now()
		if err := r.Await(t.Context(), "a", []string{"l", "k"}); err != nil || time.Since(begin) < time.Hour {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		end()
		stays()
		if len(r.behind) != 0 {
			t.Errorf("%d keys are left", len(r.behind))
		}
		if err := (*Running)(nil).Await(t.Context(), "a", []string{"k"}); err != nil {
			t.Error(err)
		}
		(*Running)(nil).Mark(t.Context(), "a", []string{"k"})()
	})
}
