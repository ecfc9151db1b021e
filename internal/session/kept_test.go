package session

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/result"
)

// A shelfOfRuns wants the runs of one caller.
type shelfOfRuns struct {
	whose string
	kept  []Run
}

func (s *shelfOfRuns) Wants(who caller.Caller) bool { return who.ID == s.whose }
func (s *shelfOfRuns) Keep(r Run)                   { s.kept = append(s.kept, r) }

// TestRunsAreKept: a run of a caller whose runs are kept is told once it is over, though
// nobody watches, and comes back as it was; others are not told.
func TestRunsAreKept(t *testing.T) {
	shelf := &shelfOfRuns{whose: "ada"}
	l := &Live{Book: shelf}
	shape := func(*dragoman.Tool) *result.Shape { return &result.Shape{} }
	s := &Session{Caller: caller.Caller{ID: "ada", Name: "ada"}, live: l, door: "chat", asked: "gpt", Request: "req",
		client: gate.Client{Conversation: "\x00\"tom\"\x00\"\"\x00\"key\"\x00talk"}}
	if l.begin(&Session{Caller: caller.Caller{ID: "bob"}, live: l}) != nil {
		t.Error("bob's is told")
	}
	r := l.begin(s)
	call := &dragoman.Call{ID: "1", Name: "look", Arguments: []byte(`{"q":"s3cret"}`)}
	l.add(r, Step{Phase: "decide", Asked: "s3cret?", Said: "look", In: 3, Out: 1, Written: []Written{{ID: "1", Raw: `{"q":"s3cret"`, Repairs: []string{"closed"}}}})
	l.add(r, step(dragoman.Event{Phase: dragoman.Execute, Call: call}, shape))
	l.add(r, step(dragoman.Event{Phase: dragoman.Execute, Call: call, Result: &dragoman.Result{Content: []byte(`{"content":[{"type":"text","text":"found s3cret"}]}`), Ran: dragoman.RanYes}}, shape))
	if len(shelf.kept) > 0 {
		t.Error("it is kept before it is over")
	}
	l.end(r, errors.New("the model said s3cret"))
	if len(shelf.kept) != 1 || shelf.kept[0].Key == "" || shelf.kept[0].Person != "\x00\"tom\"\x00\"\"\x00\"\"\x00" {
		t.Fatalf("%+v", shelf.kept)
	}
	kept := shelf.kept[0]
	kept.Hide(func(text string) string { return strings.ReplaceAll(text, "s3cret", "***") })
	head, steps, err := kept.Encode()
	if err != nil || strings.Contains(string(head)+string(steps), "s3cret") {
		t.Errorf("%s %s, %v", head, steps, err)
	}
	if strings.Contains(string(head), "found") || strings.Contains(string(head), "look?") {
		t.Errorf("the head has content: %s", head)
	}
	if got := l.List(func(string) bool { return true })[0].Steps[0].Written[0].Raw; !strings.Contains(got, "s3cret") {
		t.Errorf("what is in memory was changed: %s", got)
	}
	back, err := DecodeRun(kept.Key, "ada", head, steps)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, back, cmpopts.IgnoreUnexported(Run{}), cmpopts.IgnoreFields(Run{}, "ID", "Person"), cmpopts.EquateApproxTime(0), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	listed, err := DecodeRun(kept.Key, "ada", head, nil)
	if err != nil || !slices.Equal(listed.Called(), []string{"look"}) || listed.Steps != nil || listed.Name != "ada" {
		t.Errorf("%+v, %v", listed, err)
	}
}

// TestRunsOverGoFirst: where there is no room, what is over goes before what runs, and what
// runs and has to go keeps nothing more and says so.
func TestRunsOverGoFirst(t *testing.T) {
	shelf := &shelfOfRuns{whose: "ada"}
	l := &Live{Book: shelf}
	s := &Session{Caller: caller.Caller{ID: "ada"}, live: l}
	first := l.begin(s)
	l.add(first, Step{Phase: "decide"})
	for range maxRuns + 10 {
		l.end(l.begin(s), nil)
	}
	l.add(first, Step{Phase: "summarise"})
	if len(first.Steps) != 2 || first.Cut {
		t.Errorf("what ran was dropped for what was over: %+v", first)
	}
	for range maxRuns {
		l.begin(s)
	}
	l.add(first, Step{Phase: "summarise"})
	shelf.kept = nil
	l.end(first, nil)
	if got := shelf.kept[0]; !got.Cut || len(got.Steps) != 0 {
		t.Errorf("%+v", got)
	}
	before := len(l.runs)
	l.Forget()
	if len(l.runs) != before || l.Running(func(string) bool { return true }) != before {
		t.Error("what runs is forgotten")
	}
	for _, r := range slices.Clone(l.runs) {
		l.end(r, nil)
	}
	if l.Forget(); len(l.runs) != 0 || l.bytes != 0 {
		t.Errorf("%d runs of %d bytes are left", len(l.runs), l.bytes)
	}
}

// TestPerson: of what tells conversations apart only who somebody is counts.
func TestPerson(t *testing.T) {
	for conversation, want := range map[string]string{
		"": "", "session": "", "\x00\"\"\x00\"\"\x00\"key\"\x00talk": "",
		"\x00\"tom\"\x00\"\"\x00\"key\"\x00talk": "\x00\"tom\"\x00\"\"\x00\"\"\x00",
		"\x00\"\"\x00\"id\"\x00\"\"\x00":         "\x00\"\"\x00\"id\"\x00\"\"\x00",
	} {
		if got := person("chat", conversation); got != want {
			t.Errorf("%q is %q", conversation, got)
		}
	}
	if got := person("messages", "tom"); got != "\x00\"tom\"\x00\"\"\x00\"\"\x00" {
		t.Errorf("of the Messages API: %q", got)
	}
	if got, want := person("messages", named([]byte(`{"metadata":{"user_id":"tom"}}`))), person("messages", "tom"); got != want {
		t.Errorf("passed on: %q", got)
	}
}
