package approval

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
)

// TestAnswer: a caller answers what it is shown, as it was shown, and no more exists for
// it.
func TestAnswer(t *testing.T) {
	ann := caller.Caller{ID: "key-1", Grants: []string{"approve:*"}}
	ada := caller.Caller{ID: "key-2", Grants: []string{"approve:files__*"}}
	eve := caller.Caller{ID: "key-3", Grants: []string{"approve:mail__*", "tool:*"}}
	b := fresh(t)
	x := asked(t, b, request(`{"n":1}`))
	for _, tt := range []struct {
		who   caller.Caller
		shown int
	}{{ann, 0}, {ada, 1}, {eve, 0}, {caller.Caller{}, 0}} {
		if all, err := b.Waiting(t.Context(), tt.who); err != nil || len(all) != tt.shown {
			t.Errorf("%s is shown %d, %v; want %d", tt.who.ID, len(all), err, tt.shown)
		}
	}
	other := canonical.Hash{1}
	for name, said := range map[string]struct {
		who caller.Caller
		Answer
	}{
		"one's own":                       {ann, Answer{ID: x.ID, Approve: true}},
		"another server's":                {eve, Answer{ID: x.ID, Approve: true}},
		"nobody":                          {caller.Caller{}, Answer{ID: x.ID, Approve: true}},
		"other arguments":                 {ada, Answer{ID: x.ID, Digest: &other, Approve: true}},
		"the beginning, with a digest":    {ada, Answer{ID: x.ID[:8], Digest: &x.Digest, Approve: true}},
		"denied, and not shown":           {eve, Answer{ID: x.ID}},
		"something that was never asked":  {ada, Answer{ID: "nothing", Approve: true}},
		"something else, with the digest": {ada, Answer{ID: "nothing", Digest: &x.Digest, Approve: true}},
	} {
		if _, err := b.Answer(t.Context(), said.who, said.Answer); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := state(t, b, x.ID); got != Pending {
		t.Fatalf("it is %s", got)
	}
	if a, err := b.Answer(t.Context(), ada, Answer{ID: x.ID[:8], Approve: true}); err != nil || a.State != Approved || a.By != "key-2" || a.ByName != ada.Name {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := b.Answer(t.Context(), ada, Answer{ID: x.ID, Digest: &x.Digest}); !errors.Is(err, ErrDecided) {
		t.Errorf("answered twice: %v", err)
	}
	y := asked(t, b, request(`{"n":2}`))
	if a, err := b.Answer(t.Context(), ada, Answer{ID: y.ID, Digest: &y.Digest, Why: "no"}); err != nil || a.State != Denied || a.Why != "no" {
		t.Errorf("%+v, %v", a, err)
	}

	var none *Inbox
	if all, err := none.Waiting(t.Context(), ada); all != nil || err != nil {
		t.Errorf("no inbox: %v, %v", all, err)
	}
	if _, err := none.Answer(t.Context(), ada, Answer{ID: x.ID, Approve: true}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no inbox: %v", err)
	}
	if _, err := none.Wait(t.Context(), x.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("no inbox: %v", err)
	}
	if _, err := none.Approve(t.Context(), x.ID, operator); !errors.Is(err, ErrNotFound) {
		t.Errorf("no inbox: %v", err)
	}
}

// TestWaitingAmongOthers: a question that a caller may answer is shown to it however many wait
// that are others' to answer, or its own.
func TestWaitingAmongOthers(t *testing.T) {
	ada := caller.Caller{ID: "key-2", Grants: []string{"approve:files__*"}}
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b := at(t, ":memory:", &clock)
	for n := range 1100 {
		clock = clock.Add(time.Millisecond)
		r := request(fmt.Sprintf(`{"n":%d}`, n))
		r.Key.Caller, r.Key.Server, r.Key.Tool = fmt.Sprintf("other-%d", n/50), "mail", fmt.Sprintf("send_%d", n%7)
		if n < 20 {
			r.Key.Caller, r.Key.Server = ada.ID, "files"
		}
		asked(t, b, r)
	}
	clock = clock.Add(time.Millisecond)
	x := asked(t, b, request(`{}`))
	all, err := b.Waiting(t.Context(), ada)
	if err != nil || len(all) != 1 || all[0].ID != x.ID {
		t.Errorf("%d are shown, %v; want %s", len(all), err, x.ID)
	}
	for who, want := range map[string]int{"mail__*": 1000, "mail__send_0": 155, "calendar__*": 0} {
		all, err := b.Waiting(t.Context(), caller.Caller{ID: "key-3", Grants: []string{"approve:" + who}})
		if err != nil || len(all) != want {
			t.Errorf("%s: %d are shown, %v; want %d", who, len(all), err, want)
		}
	}
}
