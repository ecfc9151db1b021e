package audit

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// several returns logs of as many processes on one store.
func several(t *testing.T, n int) (logs []*Log) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	for i := range n {
		l := New(opened(t, path, 0), Config{}, nil)
		l.Of(fmt.Sprint("n", i+1), "1.0")
		logs = append(logs, l)
	}
	return logs
}

func written(t *testing.T, l *Log, calls ...string) {
	t.Helper()
	for _, call := range calls {
		if err := l.Intent(t.Context(), intent(call)); err != nil {
			t.Fatal(err)
		}
	}
}

func checked(t *testing.T, l *Log, kept ...Head) Check {
	t.Helper()
	check, err := l.Verify(t.Context(), kept...)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if n, err := l.Count(t.Context()); err != nil || n != check.Records {
		t.Errorf("%d of %d records are counted, %v", n, check.Records, err)
	}
	for _, log := range check.Logs {
		if log.Untold {
			t.Errorf("no record says what was removed of %+v", log)
		}
	}
	return check
}

// TestRemovedByNobody: who takes away the beginning of a log, and all of another one, and
// says in the tables that it was removed, is found out by those who look, and by heads.
func TestRemovedByNobody(t *testing.T) {
	old := logged(t, nil)
	written(t, old, "a", "b", "c", "d")
	first, err := old.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written(t, old, "e", "f")
	l := New(old.db, Config{}, nil)
	written(t, l, "g")
	if got := checked(t, l, first).Unseen; got != nil {
		t.Errorf("%v are there", got)
	}
	remove := func(through uint64) Head {
		t.Helper()
		var hash []byte
		if err := l.db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT hash FROM audit_records WHERE log = $1 AND seq = $2", []any{old.name, int64(through)}, &hash)
		}); err != nil {
			t.Fatal(err)
		}
		tamper(t, l, "DELETE FROM audit_records WHERE log = $1 AND seq <= $2", old.name, int64(through))
		tamper(t, l, "UPDATE audit_logs SET removed = $1, removed_hash = $2 WHERE log = $3", int64(through), Hash(hash).String(), old.name)
		return Head{old.name, through, Hash(hash)}
	}
	forged := first
	forged.Hash[0]++
	last, err := old.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := remove(first.Seq + 1)
	if check, err := l.Verify(t.Context(), before); err != nil || check.Logs[0].Untold || check.Unseen != nil {
		t.Errorf("a head says what was before: %+v, %v", check, err)
	}
	check, err := l.Verify(t.Context(), first, forged, last)
	if err != nil || len(check.Logs) != 2 || !check.Logs[0].Untold || check.Logs[1].Untold || !slices.Equal(check.Unseen, []Head{first, forged}) {
		t.Errorf("the beginning was taken away: %+v, %v", check, err)
	}
	remove(last.Seq)
	check, err = l.Verify(t.Context(), first, last)
	if err != nil || len(check.Logs) != 1 || !slices.Equal(check.Unseen, []Head{first, last}) {
		t.Errorf("all was taken away: %+v, %v", check, err)
	}
}

// TestLogs: processes that write at once have a log each, which any of them verifies, lists
// and exports with all others.
func TestLogs(t *testing.T) {
	logs := several(t, 3)
	var all sync.WaitGroup
	for i, l := range logs {
		for n := range 20 {
			all.Go(func() {
				if err := l.Intent(t.Context(), intent(fmt.Sprintf("call-%d-%d", i, n))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for _, l := range logs {
		if err := l.Witness(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check := checked(t, logs[2])
	names := map[string]bool{}
	for _, log := range check.Logs {
		names[log.Node] = true
		if log.Head.Log == "" || log.Version != "1.0" || log.Records < 20 {
			t.Errorf("%+v", log)
		}
	}
	if len(check.Logs) != 3 || len(names) != 3 {
		t.Errorf("%+v", check)
	}
	calls := map[string]int{}
	for _, r := range found(t, logs[0], Filter{}) {
		calls[r.Call]++
	}
	if len(calls) != 60 {
		t.Errorf("%d calls are found", len(calls))
	}
	var b bytes.Buffer
	if err := logs[1].Export(t.Context(), &b, Filter{}); err != nil {
		t.Fatal(err)
	}
	if again, err := VerifyExport(bytes.NewReader(b.Bytes()), check.Heads()...); err != nil || again.Records != check.Records || !slices.Equal(again.Heads(), check.Heads()) {
		t.Errorf("%+v, %v; want %+v", again, err, check)
	}
	heads, err := OpenHeads(t.Context(), logs[0].db)
	if err != nil || len(heads) == 0 || len(heads) > 1 && len(heads) == len(check.Logs) {
		t.Errorf("heads that no log names: %v, %v", heads, err)
	}
	for _, text := range []string{heads[0].String(), strings.ReplaceAll(heads[0].String(), ":", "x")} {
		if h, err := ParseHead(text); (err == nil) != (h == heads[0]) {
			t.Errorf("%s: %v, %v", text, h, err)
		}
	}
}

// TestWitness: each log says how far the others have come, and nothing where they say no
// more than that of each other.
func TestWitness(t *testing.T) {
	logs := several(t, 3)
	written(t, logs[0], "a", "b")
	written(t, logs[1], "c")
	for range 3 {
		for _, l := range logs {
			if err := l.Witness(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func() (n int) { return len(found(t, logs[0], Filter{Kind: Heads})) }
	before := count()
	for range 3 {
		for _, l := range logs {
			if err := l.Witness(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := count(); after != before || before == 0 {
		t.Errorf("%d records of heads, then %d", before, after)
	}
	written(t, logs[0], "d")
	at, err := logs[0].Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		if err := l.Witness(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	by := map[string]bool{}
	for _, r := range found(t, logs[0], Filter{Kind: Heads}) {
		if slices.Contains(r.Seen, at) {
			by[r.Node] = true
		}
	}
	if len(by) != 2 {
		t.Errorf("the head is named by %v; want both others", by)
	}
	checked(t, logs[0])
}

// TestTakenAway: what was cut off a log with care, or taken away with all that is known of
// it, is found by what other logs say of it.
func TestTakenAway(t *testing.T) {
	for what, statements := range map[string][]string{
		"its end": {
			"DELETE FROM audit_records WHERE log = $1 AND seq > 2",
			"UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit_records WHERE log = $1 AND seq = 2) WHERE log = $1",
		},
		"all of it": {
			"DELETE FROM audit_records WHERE log = $1", "DELETE FROM audit_head WHERE log = $1", "DELETE FROM audit_logs WHERE log = $1",
		},
	} {
		logs := several(t, 2)
		written(t, logs[0], "a", "b", "c")
		written(t, logs[1], "d")
		checked(t, logs[1])
		for _, statement := range statements {
			tamper(t, logs[1], statement, logs[0].name)
		}
		_, err := logs[1].Verify(t.Context())
		if bad, ok := errors.AsType[*Bad](err); !ok || bad.Log != logs[0].name || bad.Seq != 3 {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The record of an approval, which the intent that spends it names.
	logs := several(t, 2)
	written(t, logs[0], "a")
	written(t, logs[1], "b")
	var at Head
	if err := logs[0].db.Write(t.Context(), func(tx *store.Tx) (err error) {
		at, err = logs[0].Tx(Record{Kind: Approval, Approval: "x", State: "approved"})(tx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	spends := intent("c")
	spends.Approval, spends.Answered = "x", at
	if err := logs[1].Intent(t.Context(), spends); err != nil {
		t.Fatal(err)
	}
	checked(t, logs[0])
	tamper(t, logs[0], "DELETE FROM audit_records WHERE log = $1 AND seq = 2", at.Log)
	tamper(t, logs[0], "UPDATE audit_head SET seq = 1, hash = (SELECT hash FROM audit_records WHERE log = $1 AND seq = 1) WHERE log = $1", at.Log)
	if _, err := logs[0].Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "record 2 of log "+at.Log) {
		t.Errorf("%v", err)
	}
}

// TestPutAmongOthers: a record that people would be shown, and that no chain has, is found.
func TestPutAmongOthers(t *testing.T) {
	for _, name := range []string{sharedName, "", "abcdefghijkl"} {
		l := several(t, 1)[0]
		written(t, l, "a", "b")
		checked(t, l)
		tamper(t, l, `INSERT INTO audit_records (log, seq, time, kind, call, caller, server, target, verdict, hash, body)
			SELECT $1, seq, time, kind, call, caller, server, target, verdict, hash, body FROM audit_records WHERE seq = 2`, name)
		if _, err := l.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "stored") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestLogsGo: logs that are old go, whoever wrote them, and later what is known of them; the
// rest stays verifiable at each step, also what all processes once shared.
func TestLogsGo(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	logs := several(t, 2)
	for _, l := range logs {
		l.Use(Config{Retention: 24 * time.Hour})
		l.now = func() time.Time { return now }
	}
	old, l := logs[0], logs[1]
	shared := New(old.db, Config{}, nil)
	shared.name, shared.now = "", l.now
	written(t, shared, "s", "t")
	tamper(t, shared, "DELETE FROM audit_logs WHERE log = ''") // no process has that log as its own
	written(t, old, "a", "b", "c")
	kept, err := old.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written(t, l, "d")
	checked(t, l, kept)
	prune := func(want uint64) {
		t.Helper()
		if n, err := l.Prune(t.Context()); err != nil || n != want {
			t.Fatalf("%d went, %v; want %d", n, err, want)
		}
	}
	prune(0)
	now = now.Add(25 * time.Hour)
	written(t, l, "e")
	prune(2 + 4 + 2) // records of heads begin two of them
	checked(t, l, kept)
	if got := found(t, l, Filter{Kind: Pruned}); len(got) != 3 {
		t.Errorf("%+v", got)
	}
	known := func() (n int) {
		t.Helper()
		if err := l.db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Row("SELECT count(*) FROM audit_logs WHERE log = $1", []any{old.name}, &n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if known() != 1 {
		t.Error("what is left of a log is not known any more")
	}
	for range 4 {
		now = now.Add(25 * time.Hour)
		written(t, l, "f")
		if _, err := l.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		checked(t, l)
	}
	if known() != 0 {
		t.Error("of a log that is gone it is known for ever")
	}
	if _, err := l.Verify(t.Context(), kept); err == nil {
		t.Error("a head of a log that is gone is one of a log")
	}
}

// TestPrunedMeanwhile: what is removed while somebody looks, by whomever, is no beginning that
// was taken away, and what is known of kept heads stays known.
func TestPrunedMeanwhile(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for by := range 2 {
		for looks, n := 1, 1; n >= looks; looks++ {
			now := start
			logs := several(t, 2)
			prune := func() {
				if removed, err := logs[by].Prune(t.Context()); removed == 0 || err != nil {
					t.Fatalf("%d were removed, %v", removed, err)
				}
			}
			for i, l := range logs {
				l.Use(Config{Retention: time.Hour})
				l.now = func() time.Time { return now }
				now = start.Add(time.Duration(i) * time.Second)
				for n := range page + 50 {
					l.Append(intent(fmt.Sprint(n)))
					now = now.Add(time.Minute)
				}
				flush(t, l)
			}
			now = start.Add(70 * time.Minute)
			prune()
			kept := checked(t, logs[0]).Logs
			heads := []Head{{kept[0].Head.Log, kept[0].First - 1, kept[0].before}, {kept[1].Head.Log, kept[1].First - 1, kept[1].before}}
			n = 0
			check, err := verify(func(fn func(*store.Tx) error) error {
				if n++; n == looks {
					now = now.Add(10 * time.Minute)
					prune()
				}
				return logs[0].db.Read(t.Context(), fn)
			}, heads)
			if err != nil || check.Unseen != nil || len(check.Logs) != 2 || check.Logs[0].Untold || check.Logs[1].Untold {
				t.Errorf("pruned by log %d before look %d of %d: %+v, %v", by, looks, n, check, err)
			}
		}
	}
}
