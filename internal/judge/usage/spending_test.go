package usage

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// known returns what a book knows of a caller's month, from a reading that is new.
func known(t *testing.T, b *Book, caller string) Spent {
	t.Helper()
	b.spending.tried = time.Time{}
	s := b.Spending(t.Context())
	_, more := b.Unwritten(s, caller)
	sum := s.ThisMonth[caller]
	sum.Add(more)
	return sum
}

// What was spent is counted once: while it is pending, on its way, written, and read, and
// that of another process as soon as it is written.
func TestSpentOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage.db")
	db := open(t, file)
	ours, others := New(db, nil), New(open(t, file), nil)
	defer ours.Close()
	defer others.Close()
	check := func(when string, want Spent) {
		t.Helper()
		if got := known(t, ours, "ada"); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	ours.Add(chat, Sum{Calls: 1, Input: 10, Output: 5, Cost: 3})
	check("before anybody asked", Spent{15, 3})
	ours.Add(chat, Sum{Calls: 1, Input: 1})
	check("pending", Spent{16, 3})
	others.Add(chat, Sum{Calls: 1, Input: 100, Cost: 100})
	others.Flush()
	check("another's", Spent{116, 103})

	// A batch that is on its way, and written before it is read.
	ours.mu.Lock()
	of := batch{"flying", ours.pending, ours.names}
	ours.pending, ours.names = map[place]Sum{}, map[string]string{}
	ours.spending.sent(of)
	ours.mu.Unlock()
	check("on its way", Spent{116, 103})
	if err := db.Write(t.Context(), of.write); err != nil {
		t.Fatal(err)
	}
	s := ours.Spending(t.Context()) // read before it was written
	if _, more := ours.Unwritten(s, "ada"); more != (Spent{16, 3}) || s.ThisMonth["ada"] != (Spent{100, 100}) {
		t.Errorf("written, and not read: %+v and %+v", s.ThisMonth["ada"], more)
	}
	check("written and read", Spent{116, 103})
	check("read again", Spent{116, 103})
	if len(ours.spending.flying) != 0 || len(ours.spending.missing) != 0 {
		t.Errorf("it is remembered: %+v, %+v", ours.spending.flying, ours.spending.missing)
	}
	ours.Add(chat, Sum{Output: 1})
	ours.Flush()
	check("flushed", Spent{117, 103})
}

// A batch that cannot be written is pending again and counts on, and one of which nobody
// knows does not.
func TestSpentOfABatchThatFails(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	b := New(db, nil)
	b.Spending(t.Context())
	b.Add(chat, Sum{Input: 7})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b.flush()
	if _, got := b.Unwritten(b.Spending(t.Context()), "ada"); got != (Spent{Tokens: 7}) {
		t.Errorf("what cannot be written counts as %+v", got)
	}
	b.closed = true
	b.flush()
	if _, got := b.Unwritten(b.Spending(t.Context()), "ada"); got != (Spent{}) {
		t.Errorf("what is given up counts as %+v", got)
	}
}

// The day and the month are those of UTC, whatever hours were added up to days, and names
// are kept with what was used.
func TestSpendingOfPeriods(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	now := time.Date(2026, 11, 24, 13, 30, 0, 0, time.UTC)
	if err := db.Write(t.Context(), func(tx *store.Tx) error {
		for at, n := range map[time.Time]int64{
			now: 1, now.Add(-2 * time.Hour): 2, now.Add(-14 * time.Hour): 4, now.AddDate(0, 0, -23): 8, now.AddDate(0, 0, -24): 16, now.Add(time.Hour): 32,
		} {
			if err := add(tx, hour(at), 1, chat, Sum{Input: n, Cost: n}); err != nil {
				return err
			}
		}
		for more, err := true, error(nil); more; {
			if more, err = rollUp(tx, hour(now.AddDate(0, 0, -7))/24*24); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), batch{id: "n", names: map[string]string{"ada": "Ada"}}.write); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSpending(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	want := &Spending{
		Day: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC), Month: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		Today: map[string]Spent{"ada": {35, 35}}, ThisMonth: map[string]Spent{"ada": {47, 47}}, Names: map[string]string{"ada": "Ada"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The next day and the next month begin with nothing where nothing can be read.
	if next := got.on(want.Day.AddDate(0, 0, 1), want.Month); len(next.Today) != 0 || len(next.ThisMonth) != 1 {
		t.Errorf("tomorrow: %+v", next)
	}
	if next := got.on(want.Month.AddDate(0, 1, 0), want.Month.AddDate(0, 1, 0)); len(next.Today)+len(next.ThisMonth) != 0 {
		t.Errorf("next month: %+v", next)
	}
}

// A reading takes what is settled from the one before, and sees what came late.
func TestReadingSettles(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	now := time.Date(2026, 11, 24, 13, 30, 0, 0, time.UTC)
	write := func(at time.Time) {
		t.Helper()
		if err := db.Write(t.Context(), func(tx *store.Tx) error { return add(tx, hour(at), 1, chat, Sum{Input: 1}) }); err != nil {
			t.Fatal(err)
		}
	}
	var r reading
	read := func(now time.Time, all bool, want int64) {
		t.Helper()
		if err := db.Read(t.Context(), func(tx *store.Tx) error { return r.read(tx, now, nil, all) }); err != nil {
			t.Fatal(err)
		}
		if got := r.spending().Today["ada"].Tokens; got != want {
			t.Errorf("%s: %d, want %d", now.Format(time.TimeOnly), got, want)
		}
	}
	write(now.Add(-5 * time.Hour))
	write(now)
	read(now, false, 2)
	write(now.Add(-5 * time.Hour)) // late
	write(now.Add(-time.Hour))
	read(now.Add(time.Second), false, 3)
	read(now.Add(2*time.Second), true, 4)
	write(now.Add(-5 * time.Hour))
	read(now.Add(2*time.Second+settledFor+time.Second), false, 5)
	write(now.Add(-5 * time.Hour))
	read(now.Add(time.Hour), false, 6)
	read(now.AddDate(0, 0, 1), false, 0)
}

// What is older than two days before the day is read once an hour, and at once where somebody
// knows that it is not what it was.
func TestOldReadingSettles(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	now := time.Date(2026, 11, 24, 13, 30, 0, 0, time.UTC)
	write := func(at time.Time, n int64) {
		t.Helper()
		if err := db.Write(t.Context(), func(tx *store.Tx) error { return add(tx, hour(at), 1, chat, Sum{Input: n}) }); err != nil {
			t.Fatal(err)
		}
	}
	var r reading
	read := func(now time.Time, all bool, want int64) {
		t.Helper()
		if err := db.Read(t.Context(), func(tx *store.Tx) error { return r.read(tx, now, nil, all) }); err != nil {
			t.Fatal(err)
		}
		if got := r.spending().ThisMonth["ada"].Tokens; got != want {
			t.Errorf("%s: %d, want %d", now.Format(time.DateTime), got, want)
		}
	}
	old, young, other := now.AddDate(0, 0, -10), now.AddDate(0, 0, -1), now.AddDate(0, -1, 0)
	write(old, 1)
	write(young, 2)
	write(now, 4)
	write(other, 1000)
	read(now, false, 7)
	write(old, 8)
	write(young, 16)
	next := now.Add(settledFor + time.Second)
	read(next, false, 23) // without what is old
	read(next, true, 31)
	write(old, 32)
	read(next.Add(settledFor+time.Second), false, 31)
	read(next.Add(oldFor+time.Second), false, 63)
	write(old, 64)
	read(next.AddDate(0, 0, 1), false, 127) // another day
	read(next.AddDate(0, 1, 0), false, 0)   // another month
}
