package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/queryplan"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestFindInPages: what is found is the same, and in the same order, as if all records of all
// logs were read and sorted: those of several processes, at the same time, and of the log that
// all once shared.
func TestFindInPages(t *testing.T) {
	logs := several(t, 2)
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for i := range sought/3 + 50 { // more than one page in all
		r := intent(fmt.Sprint("call-", i%5))
		r.Time, r.Caller = start.Add(time.Duration(i/7)*time.Second), fmt.Sprint("key-", i%3)
		r.Verdict = []string{Allow, Ask, Deny, Allow}[i%4]
		logs[0].Append(r)
		logs[1].Append(r)
		if err := logs[0].db.Write(t.Context(), func(tx *store.Tx) error {
			last, err := head(tx, "")
			if err == nil {
				_, err = appendTo(tx, last, r)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, logs[0])
	flush(t, logs[1])
	var all []Record
	if err := logs[0].each(t.Context(), Filter{}, func(r *row) error {
		record, err := parse(r.body)
		if record.Kind != Heads {
			all = append(all, record)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b Record) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(inStore(a.Log), inStore(b.Log)), cmp.Compare(b.Seq, a.Seq))
	})
	if len(all) != 3*(sought/3+50) {
		t.Fatalf("%d records", len(all))
	}
	for _, f := range []Filter{
		{}, {Limit: 1}, {Limit: sought - 1}, {Limit: sought}, {Limit: sought + 1}, {Limit: page + 1}, {Limit: 2*page + 7}, {Limit: 10 * page},
		{Caller: "key-1"}, {Caller: "key-2", Limit: page + 3}, {Verdict: Deny}, {Verdict: Ask, Caller: "key-*", Limit: 40},
		{Call: "call-3"}, {Kind: Intent, Limit: page + 9}, {Kind: Outcome}, {Failed: true},
		{Since: start.Add(20 * time.Second), Until: start.Add(30 * time.Second)}, {Until: start.Add(time.Second), Limit: 20},
	} {
		var want []string
		for i := range all {
			r := &all[i]
			if (f.Caller == "" || f.Caller == r.Caller || f.Caller == "key-*") && (f.Verdict == "" || f.Verdict == r.Verdict) &&
				(f.Call == "" || f.Call == r.Call) && (f.Kind == "" || f.Kind == r.Kind) && !f.Failed &&
				(f.Since.IsZero() || !r.Time.Before(f.Since)) && (f.Until.IsZero() || r.Time.Before(f.Until)) &&
				(f.Limit == 0 || len(want) < f.Limit) {
				want = append(want, fmt.Sprint(inStore(r.Log), " ", r.Seq))
			}
		}
		var got []string
		for _, r := range found(t, logs[1], f) {
			got = append(got, fmt.Sprint(inStore(r.Log), " ", r.Seq))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %d records, want %d: %.200v, want %.200v", f, len(got), len(want), got, want)
		}
	}
}

// all is what SQLite says of a query that reads a whole table of records.
var all = regexp.MustCompile(`^SCAN (audit|audit_records|r)( |$)`)

// TestNothingReadsAll: no query of those who look at a page, or remove what is old, reads or
// sorts all records: a log of a year has hundreds of millions.
func TestNothingReadsAll(t *testing.T) {
	db := queryplan.Open(t)
	some := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	behind := &row{log: "abc", seq: 7, time: store.Time(some)}
	queries := map[string][]any{"SELECT log FROM (" + distinctLogs + ")": nil}
	add := func(query string, args []any) { queries[query] = args }
	for _, f := range []Filter{{}, {Failed: true}, {Kind: Decision, Verdict: Deny}, {Call: "c"}, {Since: some}, {Since: some, Until: some.Add(time.Hour), Verdict: Deny}} {
		add(newest(f, nil, 50))
		add(newest(f, behind, page))
		add(pageOf("", f, 1000))
		add(pageOf("abc", f, 1000))
	}
	for _, log := range []string{"", "abc"} {
		from, its := table(log)
		add(firstYoung(from, its), []any{log, int64(5), int64(5)})
	}
	for query, args := range queries {
		for _, step := range queryplan.Of(t, db, query, args...) {
			if all.MatchString(step) {
				t.Errorf("%s: %s", step, query)
			}
		}
	}
}

// BenchmarkLook looks for the newest 50 of 20,000 records, and checks all of them.
func BenchmarkLook(b *testing.B) {
	l := logged(b, nil)
	const records = 20_000
	for i := range records {
		l.Append(intent(fmt.Sprint("call-", i)))
		if i%1000 == 0 {
			flush(b, l)
		}
	}
	flush(b, l)
	b.Run("newest", func(b *testing.B) {
		for b.Loop() {
			if got := found(b, l, Filter{Limit: 50}); len(got) != 50 {
				b.Fatal(len(got))
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if v := verified(b, l); v.Records != records {
				b.Fatal(v.Records)
			}
		}
	})
}
