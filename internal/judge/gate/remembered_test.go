package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestOnPostgres: what is kept in the store, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Leg.*|Taint.*|Claim.*|Remembered.*|ApprovalIsSpentOnce|NobodyIsAsked.*)$")
}

// processes returns gates of several processes on one store, around the same tools.
func processes(t *testing.T, n int, all ...policy.Rule) []*place {
	path := filepath.Join(t.TempDir(), "dragoman.db")
	inner := toolsettest.NewInner()
	var places []*place
	for range n {
		p := &place{T: t, ledger: keptAt(t, path), inner: inner}
		p.Gate = New(Options{Policy: rules(t, all...), Inbox: p.ledger.Inbox, Audit: p.ledger.Audit, Store: p.ledger.DB})
		p.tools = p.Around(Client{Caller: ann}, inner)
		places = append(places, p)
	}
	return places
}

// TestLegsOfProcesses: a call goes on once, at whichever process its answers arrive, with
// an intent that is written down before.
func TestLegsOfProcesses(t *testing.T) {
	places := processes(t, 3, policy.Rule{Allow: []string{"*"}})
	server := &careless{Toolset: places[0].inner}
	for _, p := range places {
		p.tools = p.Around(Client{Caller: ann}, server)
	}
	call := places[0].call("write", `{}`)
	res := places[0].run(call)
	var all sync.WaitGroup
	var spent atomic.Int32
	for i := range 12 {
		all.Go(func() {
			res, err := places[i%3].tools.Call(t.Context(), again(call, res))
			if err != nil {
				t.Error(err)
			}
			if code(res) == dragoman.CodeUnknownOutcome {
				spent.Add(1)
			}
		})
	}
	all.Wait()
	if server.ran.Load() != 1 || spent.Load() != 11 {
		t.Errorf("it went on %d times, and was refused %d times", server.ran.Load(), spent.Load())
	}
	var intents int
	for _, r := range places[0].records() {
		if r == "intent write allow" {
			intents++
		}
	}
	if intents != 2 {
		t.Errorf("%d intents of two legs: %q", intents, places[0].records())
	}
}

// TestTaintOfProcesses: what a conversation has read at one process counts at all, and
// after a restart; for that caller's conversation alone.
func TestTaintOfProcesses(t *testing.T) {
	places := processes(t, 2, policy.Rule{Allow: []string{"*"}}, policy.Rule{Name: "careful", Deny: []string{"inner__write"}, When: policy.When{Tainted: true}})
	bob := caller.Caller{ID: "key-bob", Name: "bob", Grants: []string{"*"}}
	try := func(p *place, who caller.Caller, conversation, tool string) string {
		t.Helper()
		res, err := p.Around(Client{Caller: who, Conversation: conversation}, p.inner).Call(t.Context(), p.call(tool, `{}`))
		if err != nil {
			t.Fatal(err)
		}
		return code(res)
	}
	if got := try(places[0], ann, "one", "echo"); got != "ran" {
		t.Fatal(got)
	}
	for _, p := range places {
		if got := try(p, ann, "one", "write"); got != dragoman.CodeDenied {
			t.Errorf("it has read something: %s", got)
		}
	}
	if got := try(places[1], bob, "one", "write"); got != "ran" {
		t.Errorf("another caller's: %s", got)
	}
	if got := try(places[1], ann, "two", "write"); got != "ran" {
		t.Errorf("another conversation: %s", got)
	}
	// Nobody knows: then it has.
	places[1].ledger.DB.Close()
	if !places[1].remembered.isTainted(t.Context(), "key-eve", "one") {
		t.Error("what nobody knows is taken for clean")
	}
}

// TestTaintWhileTheStoreIsAway: what a conversation has read while the store could not be
// written counts at all processes once it can, whatever the conversation does next.
func TestTaintWhileTheStoreIsAway(t *testing.T) {
	places := processes(t, 2, policy.Rule{Allow: []string{"*"}}, policy.Rule{Name: "careful", Deny: []string{"inner__write"}, When: policy.When{Tainted: true}})
	db := places[0].ledger.DB
	rename := func(from, to string) {
		t.Helper()
		if err := db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("ALTER TABLE " + from + " RENAME TO " + to); return err }); err != nil {
			t.Fatal(err)
		}
	}
	at := places[0].remembered
	rename("taints", "away")
	at.taint(t.Context(), ann.ID, "one")
	at.taint(t.Context(), ann.ID, "two")
	at.tellUntold() // in vain
	rename("away", "taints")
	at.tellUntold()
	for conversation, want := range map[string]bool{"one": true, "two": true, "three": false} {
		if got := places[1].remembered.isTainted(t.Context(), ann.ID, conversation); got != want {
			t.Errorf("%s is tainted elsewhere: %t", conversation, got)
		}
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if len(at.untold) > 0 || at.again != nil {
		t.Errorf("%d are told for ever", len(at.untold))
	}
}

// TestManyUntold: what many conversations have read is written down in parts, each of which
// counts, so that others who write do not wait for all of it.
func TestManyUntold(t *testing.T) {
	at := processes(t, 1)[0].remembered
	for i := range 2*mostTold + 1 {
		at.untold[conversation{ann.ID, fmt.Sprint(i)}] = true
	}
	const enough = "CREATE TRIGGER enough BEFORE INSERT ON taints WHEN (SELECT count(*) FROM taints) >= 2 * $1 BEGIN SELECT RAISE(ABORT, 'enough'); END"
	if err := at.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(strings.Replace(enough, "$1", fmt.Sprint(mostTold), 1))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	at.tellUntold()
	at.mu.Lock()
	defer at.mu.Unlock()
	if len(at.untold) != 1 || at.again == nil {
		t.Errorf("%d are told in vain", len(at.untold))
	}
}

// TestClaimComesWithTheIntent: a request is claimed by what it is about to change, in the
// same transaction, and by nothing that only reads; where another process has claimed it,
// the call is not made and the request ends.
func TestClaimComesWithTheIntent(t *testing.T) {
	p := processes(t, 1, policy.Rule{Allow: []string{"*"}})[0]
	var claims int
	var taken error
	p.tools = p.Around(Client{Caller: ann, Claim: func(*store.Tx) error { claims++; return taken }}, p.inner)
	read := p.call("steps", `{}`)
	tool := *read.Tool
	tool.Declared = dragoman.ReadOnly
	read.Tool = &tool
	p.run(read)
	if claims != 0 {
		t.Errorf("what only reads claims %d times", claims)
	}
	if res := p.run(p.call("write", `{}`)); code(res) != "ran" || claims == 0 {
		t.Errorf("%+v, claimed %d times", res, claims)
	}
	taken = errors.Join(idempotency.ErrRunning, errors.New("as the door says it"))
	ran := p.inner.Ran("write")
	res, err := p.tools.Call(t.Context(), p.call("write", `{"n":2}`))
	if !errors.Is(err, idempotency.ErrRunning) || res.Ran != dragoman.RanNot || p.inner.Ran("write") != ran {
		t.Errorf("%+v, %v, ran %d times", res, err, p.inner.Ran("write"))
	}
	intents := 0
	for _, r := range p.records() {
		if r == "intent write allow" {
			intents++
		}
	}
	if intents != 1 {
		t.Errorf("%d intents", intents)
	}
}

// TestNobodyIsAskedForAnotherProcess: of a call that one request makes at two processes, and
// that waits for one approval at both, the one that comes second asks for no other; neither
// does one that comes when the call was made.
func TestNobodyIsAskedForAnotherProcess(t *testing.T) {
	p := processes(t, 1, policy.Rule{Ask: []string{"*"}})[0]
	taken := false
	claim := func(mine bool) func(*store.Tx) error {
		return func(*store.Tx) error {
			if !mine && taken {
				return idempotency.ErrRunning
			}
			return nil
		}
	}
	here := p.Around(Client{Caller: ann, Claim: claim(true)}, p.inner)
	there := p.Around(Client{Caller: ann, Claim: claim(false)}, p.inner)
	write := p.call("write", `{"n":1}`)
	waits, err := here.Call(t.Context(), write)
	if err != nil || code(waits) != "asks" {
		t.Fatalf("%+v, %v", waits, err)
	}
	waitsToo, err := there.Call(t.Context(), write)
	if err != nil || code(waitsToo) != "asks" {
		t.Fatalf("%+v, %v", waitsToo, err)
	}
	if _, err := p.ledger.Inbox.Approve(t.Context(), p.waiting().ID, operator); err != nil {
		t.Fatal(err)
	}
	if res, err := here.Call(t.Context(), again(write, waits)); err != nil || code(res) != "ran" {
		t.Fatalf("%+v, %v", res, err)
	}
	taken = true
	for _, call := range []dragoman.Call{again(write, waitsToo), write} {
		if res, err := there.Call(t.Context(), call); !errors.Is(err, idempotency.ErrRunning) || res.Ran != dragoman.RanNot || res.Asks != nil {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if all, err := p.ledger.Inbox.List(t.Context(), approval.Filter{State: approval.Pending}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if n := p.inner.Ran("write"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// TestRememberedExpires: what has expired goes.
func TestRememberedExpires(t *testing.T) {
	p := processes(t, 1)[0]
	p.remembered.taint(t.Context(), "key-ann", "one")
	spend, err := p.remembered.spend("key-ann", p.remembered.leg("key-ann"))
	if err != nil {
		t.Fatal(err)
	}
	rows := func() (n int) {
		if err := p.ledger.DB.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT (SELECT count(*) FROM legs) + (SELECT count(*) FROM taints)", nil, &n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := p.ledger.DB.Write(t.Context(), spend); err != nil || rows() != 2 {
		t.Fatalf("%d rows, %v", rows(), err)
	}
	err = p.ledger.DB.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec("UPDATE legs SET expires = 1"); err != nil {
			return err
		}
		_, err := tx.Exec("UPDATE taints SET expires = 1")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeping.New(p.ledger.DB, store.Quota{}, slog.New(slog.DiscardHandler)).Sweep(t.Context()); err != nil || rows() != 0 {
		t.Errorf("%d rows are left, %v", rows(), err)
	}
}
