package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/queryplan"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, ".") }

// A bench is an inbox with a clock of its own, and what it wrote down.
type bench struct {
	*Inbox
	clock    *time.Time
	recorded *[]string
}

func at(t testing.TB, path string, clock *time.Time) bench {
	t.Helper()
	db := storetest.Open(t, storetest.At(t, path))
	var recorded []string
	in := New(db, Config{}, func(_ *store.Tx, a Approval) (string, error) {
		recorded = append(recorded, fmt.Sprintf("%s by %s", a.State, a.By))
		return "", nil
	})
	in.now = func(*store.Tx) (time.Time, error) { return *clock, nil }
	return bench{in, clock, &recorded}
}

func fresh(t testing.TB) bench {
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return at(t, ":memory:", &clock)
}

var operator = Person{ID: "terminal:ada", Name: "ada"}

func request(arguments string) Request {
	return Request{
		Key:       Key{Caller: "key-1", Server: "files", Tool: "write_file", Pin: [32]byte{1}},
		Arguments: json.RawMessage(arguments), Rule: "writes", Details: Details{Name: "files__write_file", Effect: "may change something"},
	}
}

func asked(t testing.TB, b bench, r Request) Approval {
	t.Helper()
	a, err := b.Ask(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func approved(t testing.TB, b bench, r Request) Approval {
	t.Helper()
	a, err := b.Approve(t.Context(), asked(t, b, r).ID, operator)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (b bench) spend(id string, key Key, call string) error {
	return b.db.Write(context.Background(), b.Spend(id, key, call))
}

func state(t testing.TB, b bench, id string) State {
	t.Helper()
	a, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return a.State
}

// TestAsk: equal calls of one caller share a question, and nothing else does.
func TestAsk(t *testing.T) {
	b := fresh(t)
	first := asked(t, b, request(`{"path":"/a","n":1}`))
	if first.State != Pending || string(first.Arguments) != `{"n":1,"path":"/a"}` || first.Expires.Sub(first.Asked) != time.Hour {
		t.Errorf("%+v", first)
	}
	*b.clock = b.clock.Add(10 * time.Minute)
	if again := asked(t, b, request(` {"n":1, "path":"\u002fa"} `)); again.ID != first.ID {
		t.Error("an equal call is asked about anew")
	} else if first.Left != time.Hour || again.Left != 50*time.Minute {
		t.Errorf("by the store's clock it is good for %s, and ten minutes later for %s", first.Left, again.Left)
	}
	ids := map[string]string{first.ID: "the first"}
	for what, change := range map[string]func(*Request){
		"caller":    func(r *Request) { r.Caller = "key-2" },
		"server":    func(r *Request) { r.Server = "others" },
		"tool":      func(r *Request) { r.Tool = "write_files" },
		"pin":       func(r *Request) { r.Pin[31]++ },
		"arguments": func(r *Request) { r.Arguments = json.RawMessage(`{"n":1.0,"path":"/a"}`) },
		"rule":      func(r *Request) { r.Rule = "others" },
		"approvers": func(r *Request) { r.Approvers = []string{"eve"} },
	} {
		r := request(`{"path":"/a","n":1}`)
		change(&r)
		a := asked(t, b, r)
		if ids[a.ID] != "" {
			t.Errorf("another %s shares a question with %s", what, ids[a.ID])
		}
		ids[a.ID] = what
	}
	for _, r := range []Request{request(`{"a":1,"a":2}`), request(`{"a":`)} {
		if a, err := b.Ask(t.Context(), r); err == nil {
			t.Errorf("%s became %+v", r.Arguments, a)
		}
	}
	if _, err := b.Ask(t.Context(), request(`"`+strings.Repeat("x", MaxArguments)+`"`)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

// TestJoinsApproved: a call that comes again finds its approval, until it is spent.
func TestJoinsApproved(t *testing.T) {
	b := fresh(t)
	a := approved(t, b, request(`{}`))
	if again := asked(t, b, request(``)); again.ID != a.ID || again.State != Approved {
		t.Errorf("%+v", again)
	}
	if err := b.spend(a.ID, a.Key, "call-1"); err != nil {
		t.Fatal(err)
	}
	if again := asked(t, b, request(`{}`)); again.ID == a.ID || again.State != Pending {
		t.Errorf("what was spent is found again: %+v", again)
	}
	denied := asked(t, b, request(`[]`))
	if _, err := b.Deny(t.Context(), denied.ID, operator, "not today"); err != nil {
		t.Fatal(err)
	}
	if again := asked(t, b, request(`[]`)); again.ID == denied.ID {
		t.Error("what was denied cannot be asked again")
	}
}

// TestTooMany: one caller cannot fill the inbox, and not that of others.
func TestTooMany(t *testing.T) {
	b := fresh(t)
	b.Use(Config{Pending: 3})
	for i := range 3 {
		asked(t, b, request(fmt.Sprint(i)))
	}
	if _, err := b.Ask(t.Context(), request("3")); !errors.Is(err, ErrTooMany) {
		t.Errorf("the fourth: %v", err)
	}
	asked(t, b, request("2"))
	other := request("3")
	other.Caller = "key-2"
	asked(t, b, other)
	*b.clock = b.clock.Add(time.Hour)
	asked(t, b, request("3"))
}

// TestDecide: who may, and only once.
func TestDecide(t *testing.T) {
	b := fresh(t)
	r := request(`{}`)
	r.Approvers, r.CallerName = []string{"ada", "key-ops-*"}, "ada"
	id := asked(t, b, r).ID
	for _, tc := range []struct {
		by   Person
		want error
	}{
		{Person{ID: "key-1", Name: "ada"}, ErrOwn},
		{Person{ID: "key-ops-7", Name: "ada", Called: "ada"}, ErrOwn},
		{Person{ID: "https://login.example#1", Called: "ada"}, ErrOwn},
		{Person{}, ErrNotApprover},
		{Person{ID: "key-3"}, ErrNotApprover},
		{Person{ID: "key-3", Name: "adam"}, ErrNotApprover},
	} {
		if _, err := b.Approve(t.Context(), id, tc.by); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.by, err, tc.want)
		}
		if _, err := b.Deny(t.Context(), id, tc.by, "no"); !errors.Is(err, tc.want) {
			t.Errorf("%+v denies: %v, want %v", tc.by, err, tc.want)
		}
	}
	a, err := b.Deny(t.Context(), id, Person{ID: "key-ops-7"}, "first do the other thing")
	if err != nil || a.State != Denied || a.By != "key-ops-7" || a.Why != "first do the other thing" || !a.Decided.Equal(*b.clock) {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := b.Approve(t.Context(), id, operator); !errors.Is(err, ErrDecided) {
		t.Errorf("a second answer: %v", err)
	}
	if _, err := b.Approve(t.Context(), "nobody", operator); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such: %v", err)
	}
	late := asked(t, b, request(`[]`))
	*b.clock = late.Expires
	if _, err := b.Approve(t.Context(), late.ID, operator); !errors.Is(err, ErrDecided) {
		t.Errorf("too late: %v", err)
	}
	if got := fmt.Sprint(*b.recorded); got != "[denied by key-ops-7]" {
		t.Errorf("written down: %s", got)
	}
}

// TestDecidedTogether: of many answers at once one counts.
func TestDecidedTogether(t *testing.T) {
	b := fresh(t)
	id := asked(t, b, request(`{}`)).ID
	var yes, no atomic.Int32
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if i%2 == 0 {
				if _, err := b.Approve(t.Context(), id, operator); err == nil {
					yes.Add(1)
				}
			} else if _, err := b.Deny(t.Context(), id, operator, ""); err == nil {
				no.Add(1)
			}
		})
	}
	wg.Wait()
	want := map[State]int32{Approved: yes.Load(), Denied: no.Load()}
	if yes.Load()+no.Load() != 1 || want[state(t, b, id)] != 1 {
		t.Errorf("%d times yes, %d times no; it is %s", yes.Load(), no.Load(), state(t, b, id))
	}
}

// TestSpentOnce: of a hundred who spend one approval at once, through two
// processes' connections, one does.
func TestSpentOnce(t *testing.T) {
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "spend.db")
	one, two := at(t, path, &clock), at(t, path, &clock)
	a := approved(t, one, request(`{}`))
	var spent, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 100 {
		b := one
		if i%2 == 0 {
			b = two
		}
		wg.Go(func() {
			switch err := b.spend(a.ID, a.Key, fmt.Sprint("call-", i)); {
			case err == nil:
				spent.Add(1)
			case errors.Is(err, ErrNotSpendable):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if spent.Load() != 1 || refused.Load() != 99 || state(t, two, a.ID) != Used {
		t.Errorf("%d spent it, %d were refused, and it is %s", spent.Load(), refused.Load(), state(t, two, a.ID))
	}
}

// TestBound: an approval is for the call that was asked about, and no other.
func TestBound(t *testing.T) {
	b := fresh(t)
	a := approved(t, b, request(`{"path":"/a"}`))
	other, err := canonical.Digest(json.RawMessage(`{"path":"/b"}`))
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Key){
		"caller": func(k *Key) { k.Caller = "key-2" },
		"server": func(k *Key) { k.Server = "others" },
		"tool":   func(k *Key) { k.Tool = "read_file" },
		"pin":    func(k *Key) { k.Pin[0]++ },
		"digest": func(k *Key) { k.Digest = other },
		"all":    func(k *Key) { *k = Key{} },
	} {
		key := a.Key
		change(&key)
		if err := b.spend(a.ID, key, "call"); !errors.Is(err, ErrNotSpendable) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	for _, state := range []State{Pending, Denied} {
		r := request(fmt.Sprintf("%q", state))
		a := asked(t, b, r)
		if state == Denied {
			if _, err := b.Deny(t.Context(), a.ID, operator, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.spend(a.ID, a.Key, "call"); !errors.Is(err, ErrNotSpendable) {
			t.Errorf("what is %s: %v", state, err)
		}
	}
	*b.clock = a.Expires
	if err := b.spend(a.ID, a.Key, "call"); !errors.Is(err, ErrNotSpendable) {
		t.Errorf("expired: %v", err)
	}
	*b.clock = a.Expires.Add(-time.Microsecond)
	if err := b.spend(a.ID, a.Key, "call"); err != nil {
		t.Errorf("at the last moment: %v", err)
	}
}

// TestGiveBack: only who spent it gives it back, once, and it lasts no longer.
func TestGiveBack(t *testing.T) {
	b := fresh(t)
	a := approved(t, b, request(`{}`))
	if err := b.GiveBack(t.Context(), a.ID, ""); !errors.Is(err, ErrNotSpendable) {
		t.Errorf("not spent: %v", err)
	}
	if err := b.spend(a.ID, a.Key, "call-1"); err != nil {
		t.Fatal(err)
	}
	if err := b.GiveBack(t.Context(), a.ID, "call-2"); !errors.Is(err, ErrNotSpendable) {
		t.Errorf("another call's: %v", err)
	}
	if err := b.GiveBack(t.Context(), a.ID, "call-1"); err != nil {
		t.Fatal(err)
	}
	if err := b.GiveBack(t.Context(), a.ID, "call-1"); !errors.Is(err, ErrNotSpendable) {
		t.Errorf("twice: %v", err)
	}
	if err := b.spend(a.ID, a.Key, "call-3"); err != nil {
		t.Errorf("spent again: %v", err)
	}
	if err := b.GiveBack(t.Context(), a.ID, "call-3"); err != nil {
		t.Fatal(err)
	}
	*b.clock = a.Expires
	if err := b.spend(a.ID, a.Key, "call-4"); !errors.Is(err, ErrNotSpendable) {
		t.Errorf("expired: %v", err)
	}
	want := "[approved by terminal:ada approved by terminal:ada approved by terminal:ada]"
	if got := fmt.Sprint(*b.recorded); got != want {
		t.Errorf("written down: %s", got)
	}
}

// TestSpendRolledBack: what is spent in a transaction that fails is not spent.
func TestSpendRolledBack(t *testing.T) {
	b := fresh(t)
	a := approved(t, b, request(`{}`))
	errDisk := errors.New("the intent cannot be written")
	err := b.db.Write(t.Context(), func(tx *store.Tx) error {
		if err := b.Spend(a.ID, a.Key, "call")(tx); err != nil {
			return err
		}
		return errDisk
	})
	if !errors.Is(err, errDisk) || state(t, b, a.ID) != Approved {
		t.Errorf("%v, and it is %s", err, state(t, b, a.ID))
	}
}

// TestRestart: another process finds everything.
func TestRestart(t *testing.T) {
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "restart.db")
	before := at(t, path, &clock)
	r := request(`{"n":9007199254740993}`)
	r.Approvers = []string{"ada"}
	pending, done := asked(t, before, r), approved(t, before, request(`1`))
	before.db.Close()

	after := at(t, path, &clock)
	got, err := after.Get(t.Context(), pending.ID[:minID+2])
	if err != nil || got.ID != pending.ID || string(got.Arguments) != `{"n":9007199254740993}` || got.Details != r.Details ||
		!slices.Equal(got.Approvers, r.Approvers) || got.Digest != pending.Digest || got.Pin != r.Pin || !got.Expires.Equal(pending.Expires) {
		t.Errorf("%+v, %v", got, err)
	}
	if again := asked(t, after, r); again.ID != pending.ID {
		t.Error("it is asked anew")
	}
	if again := asked(t, after, request(`1`)); again.ID != done.ID || again.State != Approved {
		t.Errorf("the approval is %+v", again)
	}
	if err := after.spend(done.ID, done.Key, "call"); err != nil {
		t.Error(err)
	}
}

// TestNewestByIndex: SQLite finds the newest approvals without reading all.
func TestNewestByIndex(t *testing.T) {
	query, args := listed(Filter{}, time.Now())
	if plan := strings.Join(queryplan.Of(t, queryplan.Open(t), query, args...), "; "); !strings.Contains(plan, "approvals_asked") {
		t.Error(plan)
	}
}

// TestListIsBounded: without a limit, or with one that is none, a list has the 100
// that were asked last; one of the caller's choice is kept to.
func TestListIsBounded(t *testing.T) {
	b := fresh(t)
	b.config.Load().Pending = 200
	var ids []string
	for i := range 102 {
		ids = append(ids, asked(t, b, request(fmt.Sprint(i))).ID)
		*b.clock = b.clock.Add(time.Second)
	}
	for limit, want := range map[int]int{-1: 100, 0: 100, 1: 1, 2: 2, 101: 101, 1000: 102} {
		all, err := b.List(t.Context(), Filter{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != want || all[0].ID != ids[101] || all[len(all)-1].ID != ids[102-want] {
			t.Errorf("limit %d: %d approvals", limit, len(all))
		}
	}
}

func TestList(t *testing.T) {
	b := fresh(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, asked(t, b, request(fmt.Sprint(i))).ID)
		*b.clock = b.clock.Add(time.Minute)
	}
	if _, err := b.Approve(t.Context(), ids[1], operator); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Deny(t.Context(), ids[2], operator, ""); err != nil {
		t.Fatal(err)
	}
	listed := func(f Filter) (got []string) {
		all, err := b.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			got = append(got, fmt.Sprint(slices.Index(ids, a.ID), " ", a.State))
		}
		return got
	}
	for _, tc := range []struct {
		f    Filter
		want string
	}{
		{Filter{State: Pending}, "[0 pending 3 pending 4 pending]"},
		{Filter{State: Approved}, "[1 approved]"},
		{Filter{State: Denied, Caller: "key-1"}, "[2 denied]"},
		{Filter{Caller: "key-2"}, "[]"},
		{Filter{Limit: 2}, "[4 pending 3 pending]"},
	} {
		if got := fmt.Sprint(listed(tc.f)); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.f, got, tc.want)
		}
	}
	*b.clock = b.clock.Add(55*time.Minute + time.Second) // the first has expired
	for range 2 {
		if _, err := b.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	long := request(`"` + strings.Repeat("x", maxUnanswered) + `"`)
	long.Expires = time.Nanosecond
	unread := asked(t, b, long)
	if _, err := b.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := b.Get(t.Context(), unread.ID); err != nil || a.State != Expired || string(a.Arguments) != "null" {
		t.Errorf("long arguments that nobody read are kept: %.80s, %v", a.Arguments, err)
	}
	if got := fmt.Sprint(listed(Filter{State: Expired, Caller: "key-1"})); got != "[-1 expired 0 expired]" {
		t.Errorf("expired: %s", got)
	}
	if got := fmt.Sprint(*b.recorded); got != "[approved by terminal:ada denied by terminal:ada expired by  expired by ]" {
		t.Errorf("written down: %s", got)
	}
	*b.clock = b.clock.Add(8 * 24 * time.Hour)
	if _, err := b.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := listed(Filter{}); len(got) != 0 {
		t.Errorf("after a week there still are %v", got)
	}
}

// TestWait: an answer is seen, whichever process gives it, and so is the end of
// the time.
func TestWait(t *testing.T) {
	clock := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "wait.db")
	here, there := at(t, path, &clock), at(t, path, &clock)
	type answer struct {
		a   Approval
		err error
	}
	waits := func(id string) chan answer {
		told := make(chan answer, 1)
		go func() {
			a, err := here.Wait(context.Background(), id)
			told <- answer{a, err}
		}()
		return told
	}
	mine, other := asked(t, here, request(`1`)), asked(t, here, request(`2`))
	first, second, third := waits(mine.ID), waits(mine.ID), waits(other.ID)
	if _, err := here.Approve(t.Context(), mine.ID, operator); err != nil {
		t.Fatal(err)
	}
	for _, told := range []chan answer{first, second} {
		if got := <-told; got.err != nil || got.a.State != Approved {
			t.Errorf("%+v", got)
		}
	}
	if _, err := there.Deny(t.Context(), other.ID, operator, "no"); err != nil {
		t.Fatal(err)
	}
	if got := <-third; got.err != nil || got.a.State != Denied || got.a.Why != "no" {
		t.Errorf("another process's answer: %+v", got)
	}
	if a, err := here.Wait(t.Context(), mine.ID); err != nil || a.State != Approved {
		t.Errorf("what was answered before: %+v, %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := here.Wait(ctx, asked(t, here, request(`3`)).ID); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	last := waits(asked(t, here, request(`4`)).ID)
	here.db.Close()
	if got := <-last; !errors.Is(got.err, store.ErrClosed) {
		t.Errorf("closed: %+v", got)
	}
}

// TestWaitExpires: whoever waits learns that nobody answered in time.
func TestWaitExpires(t *testing.T) {
	b := fresh(t)
	b.now = (*store.Tx).Now
	r := request(`{}`)
	r.Expires = 50 * time.Millisecond
	a, err := b.Wait(t.Context(), asked(t, b, r).ID)
	if err != nil || a.State != Expired {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestClockGoesBack: what was written down as expired is not good again when the
// clock is set back (fault 36).
func TestClockGoesBack(t *testing.T) {
	b := fresh(t)
	a, waits := approved(t, b, request(`1`)), asked(t, b, request(`2`))
	*b.clock = a.Expires
	if _, err := b.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	*b.clock = a.Asked
	if err := b.spend(a.ID, a.Key, "call"); !errors.Is(err, ErrNotSpendable) {
		t.Errorf("spend: %v", err)
	}
	if _, err := b.Approve(t.Context(), waits.ID, operator); !errors.Is(err, ErrDecided) {
		t.Errorf("approve: %v", err)
	}
	if again := asked(t, b, request(`1`)); again.ID == a.ID || again.State != Pending {
		t.Errorf("asked again: %+v", again)
	}
}

// People choose what an authorization server calls them: a rule that names ada means
// a key of that name, or an ID.
func TestNamesOfTokensDoNotCount(t *testing.T) {
	x := Approval{Key: Key{Caller: "key-ann", Server: "files", Tool: "write"}, Details: Details{CallerName: "ann"}, Approvers: []string{"ada", "key-2", "https://login.example#7"}}
	grants := []string{"approve:files__*"}
	for _, tt := range []struct {
		who    caller.Caller
		shows  bool
		answer error
	}{
		{caller.Caller{ID: "key-1", Name: "ada", Grants: grants}, true, nil},
		{caller.Caller{ID: "key-1", Name: "ada", Grants: []string{"tool:*"}}, false, nil},
		{caller.Caller{ID: "key-ann", Name: "ada", Grants: grants}, false, ErrOwn},
		{caller.Caller{ID: "https://login.example#6", Name: "ada", Issuer: "https://login.example", Grants: grants}, true, ErrNotApprover},
		{caller.Caller{ID: "https://login.example#7", Name: "eve", Issuer: "https://login.example", Scopes: []string{"approve:files__write"}}, true, nil},
		// But nobody is a second person by a second key, or a token beside it.
		{caller.Caller{ID: "key-2", Name: "anna", Grants: grants}, true, nil},
		{caller.Caller{ID: "key-2", Name: "ann", Grants: grants}, true, ErrOwn},
		{caller.Caller{ID: "https://login.example#7", Name: "ann", Issuer: "https://login.example", Grants: grants}, true, ErrOwn},
		{caller.Caller{}, false, ErrNotApprover},
	} {
		if got := x.Shows(tt.who); got != tt.shows {
			t.Errorf("%+v is shown it: %v", tt.who, got)
		}
		if err := x.MayDecide(PersonOf(tt.who)); !errors.Is(err, tt.answer) || (err == nil) != (tt.answer == nil) {
			t.Errorf("%+v answers: %v, want %v", tt.who, err, tt.answer)
		}
	}
}
