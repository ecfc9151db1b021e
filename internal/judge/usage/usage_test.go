package usage

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/queryplan"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: the same in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^(TestWrittenOnce|TestAddedUpToDays|TestNamesGo|TestTidyInSteps|TestTwoProcessesAddUp|TestSpentOnce|TestSpendingOfPeriods|TestReadingSettles|TestOldReadingSettles|TestTimesInRows|TestHoursAndKinds)$")
}

func open(t *testing.T, file string) *store.DB {
	t.Helper()
	return storetest.Open(t, storetest.At(t, file))
}

func read(t *testing.T, db *store.DB, q Query) []Row {
	t.Helper()
	rows, err := Read(t.Context(), db, q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

var (
	chat = Key{Caller: "ada", Model: "m"}
	tool = Key{Caller: "bob", Server: "s", Tool: "t"}
)

// A batch counts once, however often it is written.
func TestWrittenOnce(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	b := batch{id: "one", sums: map[place]Sum{{chat, hour(time.Now())}: {Calls: 2, Input: 10, Output: 20, Cost: 5}}}
	for range 3 {
		if err := db.Write(t.Context(), b.write); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]Row{{Sum: Sum{Calls: 2, Input: 10, Output: 20, Cost: 5}}}, read(t, db, Query{})); diff != "" {
		t.Error(diff)
	}
}

// Several who read usage at once, while more is used, each find what was used before they
// asked, and none ends the process by waiting.
func TestManyFlush(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	b := New(db, nil)
	const readers, times = 16, 100
	var all sync.WaitGroup
	for i := range readers {
		who := Key{Caller: fmt.Sprint("reader-", i)}
		all.Go(func() {
			for range times {
				b.Add(who, Sum{Calls: 1})
				b.Flush()
			}
			rows, err := Read(t.Context(), db, Query{Caller: who.Caller})
			if err != nil || len(rows) != 1 || rows[0].Calls != times {
				t.Errorf("%s: %v %v", who.Caller, rows, err)
			}
		})
	}
	all.Wait()
	b.Close()
}

// What several processes add is added up, and what is pending at the end is written.
func TestTwoProcessesAddUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage.db")
	db := open(t, file)
	books := []*Book{New(db, nil), New(open(t, file), nil)}
	for _, b := range books {
		b.Add(chat, Sum{Calls: 1, Input: 7})
		b.Add(tool, Sum{Calls: 1, Errors: 1, Cuts: 1})
		b.Add(tool, Sum{Calls: 1})
		b.Close()
		b.Add(tool, Sum{Calls: 100}) // too late
	}
	got := read(t, db, Query{By: []string{ByTool, ByCaller, ByModel, ByServer}, Since: time.Now().Add(-time.Hour)})
	want := []Row{{Caller: "ada", Model: "m", Sum: Sum{Calls: 2, Input: 14}}, {Caller: "bob", Server: "s", Tool: "t", Sum: Sum{Calls: 4, Errors: 2, Cuts: 2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := read(t, db, Query{Caller: "ada"}); len(got) != 1 || got[0].Calls != 2 {
		t.Errorf("ada's: %+v", got)
	}
	if got := read(t, db, Query{Caller: "nobody"}); len(got) != 0 {
		t.Errorf("nobody's: %+v", got)
	}
}

// Hours become days once they are old, without a difference to the sums, and go when they
// are older than is kept.
func TestAddedUpToDays(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	now := time.Now()
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		for age, n := range map[time.Duration]int64{0: 1, time.Hour: 2, 30 * 24 * time.Hour: 4, 30*24*time.Hour + time.Hour: 8, 100 * 24 * time.Hour: 16} {
			if err := add(tx, hour(now.Add(-age)), 1, chat, Sum{Calls: n}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b := New(db, nil)
	for range 2 {
		if err := b.Tidy(t.Context(), DefaultRetention); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, db, Query{}); len(got) != 1 || got[0].Calls != 15 {
		t.Errorf("%+v, want 15 calls", got)
	}
	var hours int64
	if err := db.Read(context.Background(), func(tx *store.Tx) error {
		return tx.Row("SELECT count(*) FROM usage WHERE hours = 1", nil, &hours)
	}); err != nil || hours > 2 {
		t.Errorf("%d hours are left, %v", hours, err)
	}
	days := read(t, db, Query{By: []string{ByDay}, Since: now.Add(-40 * 24 * time.Hour)})
	if len(days) < 2 || len(days) > 4 || days[0].Day == "" {
		t.Errorf("by the day: %+v", days)
	}
}

// What callers are called goes with what they used, and comes back with what they use later.
func TestNamesGo(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	b := New(db, nil)
	uses := func(caller, want string) {
		t.Helper()
		b.Named("key-ada", "ada")
		b.Named("key-bob", "bob")
		b.Add(Key{Caller: caller, Model: "m"}, Sum{Calls: 1})
		b.flush()
		if err := b.Tidy(t.Context(), DefaultRetention); err != nil {
			t.Fatal(err)
		}
		names, err := Names(t.Context(), db)
		if got := slices.Sorted(maps.Values(names)); err != nil || strings.Join(got, " ") != want {
			t.Errorf("names are %s, want %s, %v", got, want, err)
		}
	}
	uses("key-ada", "ada")
	uses("key-bob", "ada bob")
	if err := db.Write(t.Context(), func(tx *store.Tx) error { // long ago
		_, err := tx.Exec("UPDATE usage SET period = period - $1", int64((DefaultRetention+48*time.Hour)/time.Hour))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for caller := range b.said {
		b.said[caller] -= int64(DefaultRetention/(24*time.Hour)) + 2
	}
	uses("key-bob", "bob")
	uses("key-ada", "ada bob")
	b.Close()
}

// Many callers are added up, and removed, a little at a time, with the same sums.
func TestTidyInSteps(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	now := time.Now()
	const callers = 2*tidied + 7
	old, older := hour(now.AddDate(0, 0, -30))/24*24, hour(now.AddDate(0, 0, -100))
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		for i := range callers {
			k := Key{Caller: fmt.Sprintf("caller %d", i), Model: "m"}
			for _, at := range []int64{old, old + 1, older, hour(now)} {
				if err := add(tx, at, 1, k, Sum{Calls: 1}); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	waited := db.Waited()
	b := New(db, nil)
	if err := b.Tidy(t.Context(), DefaultRetention); err != nil {
		t.Fatal(err)
	}
	if steps := db.Waited() - waited; steps < 2*(callers/tidied) {
		t.Errorf("in %d steps", steps)
	}
	if got := read(t, db, Query{}); len(got) != 1 || got[0].Calls != 3*callers {
		t.Errorf("%+v, want %d calls", got, 3*callers)
	}
	for hours, want := range map[int]int64{1: callers, 24: callers} {
		var n int64
		if err := db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT count(*) FROM usage WHERE hours = $1", []any{hours}, &n)
		}); err != nil || n != want {
			t.Errorf("%d rows of %d hours, want %d, %v", n, hours, want, err)
		}
	}
}

// In a file, neither what is tidied nor what is told of some time is looked for among all.
func TestFoundByIndex(t *testing.T) {
	db := queryplan.Open(t)
	queries := map[string][]any{
		"SELECT period, hours FROM usage WHERE hours = 1 AND period < $1 ORDER BY period, hours LIMIT 1": {1},
		"SELECT period, hours FROM usage WHERE period < $1 ORDER BY period, hours LIMIT 1":               {1},
		addDays: {1, 1, "c"},
	}
	for _, q := range []Query{{Since: time.Now()}, {Since: time.Now(), By: []string{ByHour, ByModel}, Of: OfModels}, {Since: time.Now(), Caller: "ada", By: []string{ByDay}}} {
		text, args := q.statement()
		queries[text] = args
	}
	for query, args := range queries {
		for _, step := range queryplan.Of(t, db, query, args...) {
			if strings.HasPrefix(step, "SCAN usage") {
				t.Errorf("%s: %s", step, query)
			}
		}
	}
}

func TestPrices(t *testing.T) {
	p := Price{Input: "2.50", Cached: "0.25", Output: "10"}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		sum  Sum
		want int64
	}{
		{Sum{}, 0}, {Sum{Input: 1_000_000}, 2_500_000}, {Sum{Input: 1_000_000, Cached: 1_000_000}, 250_000},
		{Sum{Output: 100}, 1000}, {Sum{Input: 1}, 3}, {Sum{Input: 10, Cached: 4, Output: 2}, 15 + 1 + 20},
	} {
		if got := p.Cost(test.sum); got != test.want {
			t.Errorf("%+v costs %d, want %d", test.sum, got, test.want)
		}
	}
}

func TestWhatIsAskedFor(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "7d": now.AddDate(0, 0, -7), "12h": now.Add(-12 * time.Hour)} {
		if got, err := ParseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"d", "-1d", "soon", "-2h", "1.5d", "07d"} {
		if got, err := ParseSince(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	if by, err := ParseBy("tool, caller,tool"); err != nil || !cmp.Equal(by, []string{"tool", "caller"}) {
		t.Errorf("%v, %v", by, err)
	}
	if _, err := ParseBy("caller;drop"); err == nil {
		t.Error("a column that there is not")
	}
}
