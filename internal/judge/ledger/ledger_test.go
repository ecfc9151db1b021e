package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, ".") }

func opened(t *testing.T, path string) *Ledger {
	t.Helper()
	var config Config
	config.Audit.SetDefaults()
	config.Store.Path, config.Store.URL = pgtest.Place(t, path)
	l, err := Open(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestTrail: a call that a person is asked about leaves its whole story in the
// audit log, though the answer comes from another process.
func TestTrail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	gateway, terminal := opened(t, path), opened(t, path)
	ctx := t.Context()
	request := approval.Request{
		Key:       approval.Key{Caller: "key-1", Server: "files", Tool: "write_file", Pin: [32]byte{1}},
		Arguments: json.RawMessage(`{"path":"/a"}`), Rule: "writes", Details: approval.Details{Call: "call-1"},
	}
	for _, step := range []struct {
		call string
		ran  bool
	}{{"call-1", false}, {"call-2", true}} {
		a, err := gateway.Inbox.Ask(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if a.State == approval.Pending {
			if _, err := terminal.Inbox.Approve(ctx, a.ID, approval.Person{ID: "terminal:ada"}); err != nil {
				t.Fatal(err)
			}
		}
		r := audit.Record{Kind: audit.Intent, Call: step.call, Caller: "key-1", Approval: a.ID}
		if r.Answered, err = audit.ParseHead(answered(t, gateway, a.ID).Record); err != nil {
			t.Error(err)
		}
		if err := gateway.Audit.Intent(ctx, r, gateway.Inbox.Spend(a.ID, a.Key, step.call)); err != nil {
			t.Fatal(err)
		}
		if !step.ran {
			if err := gateway.Inbox.GiveBack(ctx, a.ID, step.call); err != nil {
				t.Fatal(err)
			}
		}
		// Whoever comes with the same approval while it is spent finds none.
		if err := gateway.Audit.Intent(ctx, r, gateway.Inbox.Spend(a.ID, a.Key, "twice")); step.ran && err == nil {
			t.Error("spent twice")
		} else if !step.ran && err != nil {
			t.Error(err)
		} else if !step.ran {
			if err := gateway.Inbox.GiveBack(ctx, a.ID, "twice"); err != nil {
				t.Fatal(err)
			}
		}
	}
	check, err := terminal.Audit.Verify(ctx)
	if err != nil {
		t.Fatal(err)
	}
	records, err := terminal.Audit.Find(ctx, audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	story := ""
	for i := range records {
		r := records[len(records)-1-i]
		story += fmt.Sprintf("%s %s %s %s\n", r.Kind, r.Call, r.State, r.By)
	}
	want := `approval call-1 approved terminal:ada
intent call-1  
approval call-1 approved terminal:ada
intent call-1  
approval call-1 approved terminal:ada
intent call-2  
`
	if story != want || check.Records != 7 || len(check.Logs) != 2 {
		t.Errorf("%d records:\n%s", check.Records, story)
	}
}

// answered is an approval as it stands.
func answered(t *testing.T, l *Ledger, id string) approval.Approval {
	t.Helper()
	a, err := l.Inbox.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestNoRecordNoAnswer: an answer that cannot be written down is none.
func TestNoRecordNoAnswer(t *testing.T) {
	l := opened(t, ":memory:")
	a, err := l.Inbox.Ask(t.Context(), approval.Request{Key: approval.Key{Caller: "key-1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.DB.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("DROP TABLE audit_head"); return err }); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Inbox.Approve(t.Context(), a.ID, approval.Person{ID: "terminal:ada"}); err == nil {
		t.Error("approved without a record")
	}
	if a, err := l.Inbox.Get(t.Context(), a.ID); err != nil || a.State != approval.Pending {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestKeepEnds(t *testing.T) {
	l := opened(t, ":memory:")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Keep(ctx) }()
	cancel()
	<-done
}
