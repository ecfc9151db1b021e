package usage

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What times say of a share is right to within a factor of two, and what they do not know
// is nothing.
func TestTimes(t *testing.T) {
	var none Times
	if got := none.Within(0.95); got != 0 {
		t.Errorf("nothing took %s", got)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	var times Times
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(dice.ExpFloat64() * float64(300*time.Millisecond))
		all = append(all, d)
		times.Add(Used(d).Times)
	}
	slices.Sort(all)
	for _, share := range []float64{0.5, 0.95, 0.99} {
		got, want := times.Within(share), all[int(share*float64(len(all)))]
		if got < want/2 || got > want*2 {
			t.Errorf("%.0f %% took %s at most, want %s", share*100, got, want)
		}
	}
	for d, want := range map[time.Duration]int{0: 0, time.Millisecond: 0, time.Millisecond + 1: 1, 3 * time.Millisecond: 2, time.Hour: 19, bound(18): 18} {
		counts := took(d)
		if got := slices.Index(counts[:], 1); got != want {
			t.Errorf("%s is counted at %d, want %d", d, got, want)
		}
	}
	if long := Used(time.Hour).Times; long.Within(0.5) != bound(18) {
		t.Errorf("what is longer than all bounds took %s", long.Within(0.5))
	}
}

// Times are in the rows, add up in them and in what is read, and outlive hours that become
// days.
func TestTimesInRows(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	now := time.Now()
	sum := Used(3 * time.Millisecond)
	sum.Add(Used(100 * time.Millisecond))
	for _, age := range []time.Duration{0, 0, 30 * 24 * time.Hour, 30*24*time.Hour + time.Hour} {
		b := batch{id: time.Now().String(), sums: map[place]Sum{{tool, hour(now.Add(-age))}: sum}}
		if err := db.Write(t.Context(), b.write); err != nil {
			t.Fatal(err)
		}
	}
	b := New(db, nil)
	check := func(when string) {
		t.Helper()
		got := read(t, db, Query{By: []string{ByTool}})
		if len(got) != 1 || got[0].Times[2] != 4 || got[0].Times[7] != 4 || got[0].P50 < 2000 || got[0].P50 > 4000 || got[0].P95 < 64_000 || got[0].P95 > 128_000 {
			t.Errorf("%s: %+v", when, got)
		}
	}
	check("in hours")
	if err := b.Tidy(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	check("in days")
}

// Hours are told apart alone and several together, and only what is asked for is told.
func TestHoursAndKinds(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "usage.db"))
	at := time.Date(2026, 11, 24, 13, 30, 0, 0, time.UTC)
	other := Key{Caller: "bob", Server: "s", Tool: "u"}
	b := batch{id: "one", sums: map[place]Sum{
		{chat, hour(at)}: {Calls: 1}, {tool, hour(at)}: {Calls: 2}, {other, hour(at)}: {Calls: 4}, {tool, hour(at) + 2}: {Calls: 8}, {tool, hour(at) + 30}: {Calls: 16},
	}}
	if err := db.Write(t.Context(), b.write); err != nil {
		t.Fatal(err)
	}
	told := func(q Query) map[string]int64 {
		all := map[string]int64{}
		for _, r := range read(t, db, q) {
			all[r.Hour+r.Tool] = r.Calls
		}
		return all
	}
	for _, test := range []struct {
		q    Query
		want map[string]int64
	}{
		{Query{By: []string{ByHour}}, map[string]int64{"2026-11-24T13:00:00Z": 7, "2026-11-24T15:00:00Z": 8, "2026-11-25T19:00:00Z": 16}},
		{Query{By: []string{ByHour}, Step: 6, Of: OfTools}, map[string]int64{"2026-11-24T12:00:00Z": 14, "2026-11-25T18:00:00Z": 16}},
		{Query{By: []string{ByHour}, Step: 24, Of: OfModels}, map[string]int64{"2026-11-24T00:00:00Z": 1}},
		{Query{By: []string{ByTool}, Only: map[string][]string{ByTool: {"t", "no' such"}}}, map[string]int64{"t": 26}},
		{Query{By: []string{ByTool}, Of: OfTools, Only: map[string][]string{ByTool: {"t", "u"}, ByServer: {"s"}}, Caller: "bob"}, map[string]int64{"t": 26, "u": 4}},
		{Query{Only: map[string][]string{ByModel: nil}}, map[string]int64{}},
	} {
		if diff := cmp.Diff(test.want, told(test.q)); diff != "" {
			t.Errorf("%+v: %s", test.q, diff)
		}
	}
}
