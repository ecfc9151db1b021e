package budget

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: the same in PostgreSQL.
func TestOnPostgres(t *testing.T) { pgtest.Again(t, "^(TestGroup|TestOtherProcesses|TestOneWarns)$") }

var (
	ada = caller.Caller{ID: "key-a", Name: "team-ada"}
	bob = caller.Caller{ID: "key-b", Name: "team-bob"}
	eve = caller.Caller{ID: "key-e", Name: "eve"}
)

func book(t *testing.T, file string) *usage.Book {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.At(t, file))
	if err != nil {
		t.Fatal(err)
	}
	b := usage.New(db, nil)
	t.Cleanup(func() {
		b.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func fresh(t *testing.T) *usage.Book { return book(t, filepath.Join(t.TempDir(), "usage.db")) }

func spend(b *usage.Book, who caller.Caller, tokens, cost int64) {
	b.Named(who.ID, who.RuleName())
	b.Add(usage.Key{Caller: who.ID, Model: "m"}, usage.Sum{Calls: 1, Input: tokens, Cost: cost})
}

func refused(t *testing.T, b *Budgets, who caller.Caller, tool bool) *dragoman.Problem {
	t.Helper()
	return b.Admit(t.Context(), who, tool)
}

// Each key has a budget of its own: tokens refuse models, money refuses tools, too.
func TestPerCaller(t *testing.T) {
	of := fresh(t)
	b := New(Options{Book: of, Budgets: []Budget{{Name: "tokens", Tokens: 100, Period: "day"}, {Name: "money", Cost: "0.50"}}})
	spend(of, ada, 99, 0)
	if p := refused(t, b, ada, false); p != nil {
		t.Errorf("below: %v", p.Message)
	}
	spend(of, ada, 1, 100)
	p := refused(t, b, ada, false)
	if p == nil || p.Code != dragoman.CodeBudget || p.RetryAfter <= 0 || p.RetryAfter > aDay || !strings.Contains(p.Message, `"tokens" is 100 tokens a day, and it is used up`) {
		t.Errorf("used up: %+v", p)
	}
	if p := refused(t, b, ada, true); p != nil {
		t.Errorf("a tool, for tokens: %v", p.Message)
	}
	if p := refused(t, b, bob, false); p != nil {
		t.Errorf("another's: %v", p.Message)
	}
	spend(of, bob, 0, 500_000)
	for _, tool := range []bool{false, true} {
		if p := refused(t, b, bob, tool); p == nil || !strings.Contains(p.Message, `"money" is 0.50 a month`) || p.RetryAfter > aMonth {
			t.Errorf("money, tool %t: %+v", tool, p)
		}
	}
	b.Use([]Budget{{Name: "tokens", Tokens: 101, Period: "day"}})
	if p := refused(t, b, ada, false); p != nil {
		t.Errorf("raised: %v", p.Message)
	}
	b.Use(nil)
	if p := refused(t, b, bob, true); p != nil || b.States(t.Context(), nil) != nil {
		t.Error("there are no budgets any more")
	}
	var none *Budgets
	if refused(t, none, ada, false) != nil || none.States(t.Context(), &ada) != nil {
		t.Error("no budgets refuse somebody")
	}
}

// A group is who is meant by the names of keys, with what they spent before this process
// began, and whether or not they came by since.
func TestGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage.db")
	before := book(t, file)
	spend(before, bob, 60, 0)
	spend(before, eve, 1000, 0)
	before.Close()
	of := book(t, file)
	b := New(Options{Book: of, Budgets: []Budget{{Name: "team", Caller: []string{"team-*"}, Per: "all", Tokens: 100}}})
	if p := refused(t, b, ada, false); p != nil {
		t.Errorf("at 60 of 100: %v", p.Message)
	}
	spend(of, ada, 40, 0)
	if p := refused(t, b, ada, false); p == nil || !strings.Contains(p.Message, "for all who share it") {
		t.Errorf("at 100 of 100: %+v", p)
	}
	if p := refused(t, b, bob, false); p == nil {
		t.Error("the other one has something left")
	}
	if p := refused(t, b, eve, false); p != nil {
		t.Errorf("who is none of them: %v", p.Message)
	}
	// Whom an authorization server calls so is none of them either.
	if p := refused(t, b, caller.Caller{ID: "https://i#x", Name: "team-x", Issuer: "https://i"}, false); p != nil {
		t.Errorf("a name that somebody chose: %v", p.Message)
	}
	states := b.States(t.Context(), &ada)
	if len(states) != 1 || states[0].Tokens != 100 || states[0].TokensLeft != 0 || states[0].Percent != 100 || states[0].Level != Spent || states[0].Caller != "" {
		t.Errorf("%+v", states)
	}
	if states := b.States(t.Context(), &eve); len(states) != 0 {
		t.Errorf("hers: %+v", states)
	}
}

// What other processes wrote counts here, and once.
func TestOtherProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage.db")
	ours, others := book(t, file), book(t, file)
	budgets := []Budget{{Name: "b", Tokens: 100}}
	spend(others, ada, 50, 0)
	others.Flush()
	spend(ours, ada, 49, 0)
	b := New(Options{Book: ours, Budgets: budgets})
	if p := refused(t, b, ada, false); p != nil {
		t.Errorf("at 99: %v", p.Message)
	}
	ours.Flush()
	if p := refused(t, b, ada, false); p != nil {
		t.Errorf("at 99, written: %v", p.Message)
	}
	spend(ours, ada, 1, 0)
	if p := refused(t, b, ada, false); p == nil {
		t.Error("at 100 it goes on")
	}
}

// That the end is near is said once in a period, and counted.
func TestWarning(t *testing.T) {
	of := fresh(t)
	var log bytes.Buffer
	b := New(Options{Book: of, Budgets: []Budget{{Name: "b", Cost: "1", WarnAt: 50}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	count := func() map[string]int64 {
		n := map[string]int64{}
		b.Readings(func(budget, state string, count int64) { n[budget+" "+state] = count })
		return n
	}
	spend(of, ada, 0, 499_999)
	refused(t, b, ada, false)
	of.Flush()
	if log.Len() > 0 || count()["b near"] != 0 {
		t.Errorf("below the mark: %s", &log)
	}
	spend(of, ada, 0, 1)
	for range 3 {
		refused(t, b, ada, false)
	}
	of.Flush()
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "budget=b percent=50") || !strings.Contains(log.String(), "caller=key-a") || count()["b near"] != 1 {
		t.Errorf("past the mark, %d lines: %s", n, &log)
	}
	spend(of, ada, 0, 1_000_000)
	refused(t, b, ada, false)
	of.Flush()
	if got := count(); got["b near"] != 0 || got["b used_up"] != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("used up: %v, %s", got, &log)
	}
	states := b.States(t.Context(), nil)
	if len(states) != 1 || states[0].Percent != 150 || states[0].CostLeft != 0 || states[0].Caller != ada.ID || !states[0].Money() {
		t.Errorf("%+v", states)
	}
}

// Of several processes on a store one says that the end is near, and each counts it.
func TestOneWarns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage.db")
	var logs [2]bytes.Buffer
	for i := range logs {
		of := book(t, file)
		b := New(Options{Book: of, Budgets: []Budget{{Name: "b", Tokens: 100, WarnAt: 50}, {Name: "day", Tokens: 100, Period: "day", WarnAt: 50}}, Log: slog.New(slog.NewTextHandler(&logs[i], nil))})
		spend(of, ada, 50, 0)
		b.States(t.Context(), nil)
		of.Flush()
		near := int64(0)
		b.Readings(func(_, state string, n int64) {
			if state == Near {
				near += n
			}
		})
		if want := []int{2, 0}[i]; strings.Count(logs[i].String(), "nearly used up") != want || near != []int64{2, 0}[i] {
			t.Errorf("process %d: %d near, %s", i, near, &logs[i])
		}
	}
}

// A budget of no money at all refuses from the beginning.
func TestNothing(t *testing.T) {
	b := New(Options{Book: fresh(t), Budgets: []Budget{{Cost: "0"}}})
	if p := refused(t, b, ada, true); p == nil || !strings.Contains(p.Message, `"budgets[0]" is 0.00 a month`) {
		t.Errorf("%+v", p)
	}
}

func TestRead(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	s := &usage.Spending{
		Day: now.Truncate(aDay), Month: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		Today: map[string]usage.Spent{"key-a": {Tokens: 5}}, ThisMonth: map[string]usage.Spent{"key-a": {Tokens: 50}, "key-b": {Tokens: 90}},
		Names: map[string]string{"key-b": "team-bob"},
	}
	states := Read([]Budget{{Name: "day", Tokens: 10, Period: "day"}, {Name: "team", Tokens: 100, Caller: []string{"team-*"}}}, s)
	var got []string
	for _, s := range states {
		got = append(got, s.Budget+" "+s.Caller+" "+s.Level+" "+s.Ends.Format(time.DateOnly))
	}
	if want := "team key-b near 2027-01-01, day key-a fine 2027-01-01, day key-b fine 2027-01-01"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}

func TestCheck(t *testing.T) {
	kept := usage.Config{Retention: usage.DefaultRetention}
	for want, test := range map[string]struct {
		all  []Budget
		kept usage.Config
	}{
		"":                          {[]Budget{{Tokens: 1}, {Cost: "2.50", Per: "all", Period: "day"}}, kept},
		"it is a budget of nothing": {[]Budget{{Name: "x"}}, kept},
		"no amount of money":        {[]Budget{{Cost: "ten"}}, kept},
		"neither day nor month":     {[]Budget{{Tokens: 1, Period: "week"}}, kept},
		"neither caller nor all":    {[]Budget{{Tokens: 1, Per: "tool"}}, kept},
		"above the whole":           {[]Budget{{Tokens: 1, WarnAt: 101}}, kept},
		"one line":                  {[]Budget{{Tokens: 1, Name: "a\nb"}}, kept},
		"two budgets are called":    {[]Budget{{Tokens: 1, Name: "a"}, {Tokens: 2, Name: "a"}}, kept},
		"usage.off keeps none":      {[]Budget{{Tokens: 1}}, usage.Config{Off: true}},
		"744h or more":              {[]Budget{{Tokens: 1}}, usage.Config{Retention: aDay}},
	} {
		err := Check(test.all, test.kept)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Check([]Budget{{Tokens: 1, Period: "day"}}, usage.Config{Retention: aDay}); err != nil {
		t.Error(err)
	}
	if err := Check([]Budget{{Tokens: 1}}, usage.Config{}); err != nil {
		t.Errorf("kept for ever: %v", err)
	}
}

// TestPercent: a part is what it is, rounded down, also where no fraction of two says so, and
// of the largest budget that there may be.
func TestPercent(t *testing.T) {
	for spent := range int64(301) {
		for _, whole := range []int64{100, 2_000_000, 1_000_000_000_000_000} {
			if got := percent(spent*(whole/100), whole); got != spent {
				t.Errorf("%d of %d are %d %%, want %d", spent*(whole/100), whole, got, spent)
			}
		}
	}
	if got := percent(1_999_999, 2_000_000); got != 99 {
		t.Errorf("nearly all is %d %%", got)
	}
}
