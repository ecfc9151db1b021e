package usage

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A group has spent what its callers have, each added up, at whatever moment somebody asks, and
// whoever is in it meanwhile.
func TestTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "usage.db")
	ours, others := New(open(t, file), nil), New(open(t, file), nil)
	defer ours.Close()
	defer others.Close()
	ins := []func(caller, name string) bool{
		func(string, string) bool { return true },
		func(caller, _ string) bool { return strings.HasSuffix(caller, "1") || strings.HasSuffix(caller, "2") },
		func(_, name string) bool { return strings.HasPrefix(name, "team-a") },
		func(_, name string) bool { return name == "" },
	}
	var groups []*Group
	renew := func() {
		groups = nil
		for _, in := range ins {
			groups = append(groups, NewGroup(in))
		}
		ours.Count(groups)
	}
	renew()
	r := rand.New(rand.NewPCG(5, 6))
	var s *Spending
	for i := range 3000 {
		caller := fmt.Sprint("key-", r.IntN(12))
		switch r.IntN(12) {
		case 0:
			ours.Named(caller, fmt.Sprintf("team-%c%d", 'a'+rune(r.IntN(2)), r.IntN(3)))
		case 1:
			others.Named(caller, "team-"+caller)
			others.Add(Key{Caller: caller, Model: "m"}, Sum{Input: int64(r.IntN(100)), Cost: 7})
		case 2:
			if r.IntN(4) == 0 {
				others.Flush()
			}
		case 3:
			if r.IntN(4) == 0 {
				ours.Flush()
			}
		case 4:
			if r.IntN(50) == 0 {
				renew()
			}
		default:
			ours.Add(Key{Caller: caller, Model: "m"}, Sum{Input: int64(r.IntN(100)), Output: 1, Cost: int64(r.IntN(3))})
		}
		if r.IntN(3) == 0 || s == nil {
			ours.spending.tried = time.Time{}
			s = ours.Spending(t.Context())
		}
		everybody := map[string]bool{}
		for caller := range s.ThisMonth {
			everybody[caller] = true
		}
		ours.EachUnwritten(func(caller string) { everybody[caller] = true })
		for n, g := range groups {
			var wantToday, wantMonth Spent
			for caller := range everybody {
				if !ins[n](caller, ours.CalledSo(s, caller)) {
					continue
				}
				today, month := ours.Unwritten(s, caller)
				wantToday.Add(today)
				wantToday.Add(s.Today[caller])
				wantMonth.Add(month)
				wantMonth.Add(s.ThisMonth[caller])
			}
			if today, month := ours.Together(s, g); today != wantToday || month != wantMonth {
				t.Fatalf("step %d, group %d: %+v and %+v, want %+v and %+v", i, n, today, month, wantToday, wantMonth)
			}
		}
	}
}

// Callers are looked at when there is a new reading, and when they spend something: not each time
// that somebody asks.
func TestTogetherLooksOnce(t *testing.T) {
	book := New(open(t, filepath.Join(t.TempDir(), "usage.db")), nil)
	defer book.Close()
	looked := 0
	g := NewGroup(func(string, string) bool { looked++; return true })
	book.Count([]*Group{g})
	for i := range 500 {
		book.Add(Key{Caller: fmt.Sprint("key-", i), Model: "m"}, Sum{Input: 1})
	}
	book.Flush()
	s := book.Spending(t.Context())
	book.Together(s, g)
	looked = 0
	for range 100 {
		if today, _ := book.Together(s, g); today.Tokens != 500 {
			t.Fatalf("%d tokens are spent", today.Tokens)
		}
	}
	book.Add(Key{Caller: "key-7", Model: "m"}, Sum{Input: 1})
	if today, month := book.Together(s, g); today.Tokens != 501 || month.Tokens != 501 || looked > 1 {
		t.Errorf("%d and %d tokens are spent, and callers were looked at %d times", today.Tokens, month.Tokens, looked)
	}
}

// BenchmarkTogether is what it costs to ask what ten thousand callers have spent, who go on
// spending.
func BenchmarkTogether(b *testing.B) {
	book := New(nil, nil)
	g := NewGroup(func(string, string) bool { return true })
	book.spending.asked, book.spending.missing = true, map[spender]Spent{}
	book.Count([]*Group{g})
	day, month := beginnings(time.Now())
	s := &Spending{Day: day, Month: month, Today: map[string]Spent{}, ThisMonth: map[string]Spent{}}
	for i := range 10_000 {
		caller := fmt.Sprint("key-", i)
		s.ThisMonth[caller] = Spent{1, 1}
		book.spending.add(place{Key{Caller: caller}, hour(day)}, Sum{Input: 1}, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		book.Together(s, g)
	}
}
