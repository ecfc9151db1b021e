package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// TestOnPostgres: all of it, but for what is about files, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Chain|Also|Arguments|LongIDs|OddText|Find|FindInPages|Export|Prune|Heads|Mutations|Logs|Witness|LogsGo|TakenAway|PutAmongOthers)$")
}

func opened(t testing.TB, path string, maxBytes int64) *store.DB {
	t.Helper()
	config := storetest.At(t, path)
	config.MaxBytes = maxBytes
	return storetest.Open(t, config)
}

// logged returns a log in memory, and its configuration's defaults changed by
// change, if there is one.
func logged(t testing.TB, change func(*Config)) *Log {
	t.Helper()
	var config Config
	config.SetDefaults()
	if change != nil {
		change(&config)
	}
	return New(opened(t, ":memory:", 0), config, nil)
}

// flush waits for what was appended.
func flush(t testing.TB, l *Log) {
	t.Helper()
	if err := l.db.Write(context.Background(), func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// verified checks what a store with one log, or none, has.
func verified(t testing.TB, l *Log, heads ...Head) Checked {
	t.Helper()
	check, err := l.Verify(context.Background(), heads...)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return only(t, check)
}

// only is the one log that was checked; the zero Checked where there is none.
func only(t testing.TB, check Check) Checked {
	t.Helper()
	if len(check.Logs) > 1 {
		t.Fatalf("there are %d logs: %+v", len(check.Logs), check)
	}
	if len(check.Logs) == 0 {
		return Checked{}
	}
	return check.Logs[0]
}

func found(t testing.TB, l *Log, f Filter) []Record {
	t.Helper()
	records, err := l.Find(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func intent(call string) Record {
	return Record{Kind: Intent, Call: call, Caller: "key-1", Door: "api", Server: "files", Target: "write_file", Verdict: Allow, Rule: "default", Arguments: json.RawMessage(`{"path": "/tmp/a", "n": 9007199254740993}`)}
}

// TestChain: intents and outcomes of many callers make one chain, in which what
// was returned stands with everything that was said.
func TestChain(t *testing.T) {
	l := logged(t, func(c *Config) { c.Arguments = Full })
	if check := verified(t, l); check != (Checked{}) {
		t.Errorf("an empty log: %+v", check)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			r := intent(fmt.Sprintf("call-%02d", i))
			if err := l.Intent(t.Context(), r); err != nil {
				t.Error(err)
			}
			r.Came(dragoman.Result{Content: json.RawMessage(`{"content":[]}`), Ran: dragoman.RanYes, Info: dragoman.Info{Duration: 3 * time.Millisecond}})
			l.Append(r)
		})
	}
	wg.Wait()
	flush(t, l)
	check := verified(t, l)
	if check.Records != 80 || check.First != 1 || check.Head.Seq != 80 {
		t.Errorf("%+v", check)
	}
	if head, err := l.Head(t.Context()); err != nil || head != check.Head {
		t.Errorf("the head is %v, %v", head, err)
	}
	for i := range 40 {
		pair := found(t, l, Filter{Call: fmt.Sprintf("call-%02d", i)})
		if len(pair) != 2 || pair[1].Kind != Intent || pair[0].Kind != Outcome || pair[0].Ran != "yes" || pair[0].Out != 14 || pair[0].Microseconds != 3000 {
			t.Fatalf("call %d: %+v", i, pair)
		}
		if got := string(pair[1].Arguments); got != `{"n":9007199254740993,"path":"/tmp/a"}` {
			t.Errorf("arguments are %s", got)
		}
	}
}

// TestAlso: what is done with an intent is done with it or not at all.
func TestAlso(t *testing.T) {
	for _, off := range []bool{false, true} {
		l := logged(t, func(c *Config) { c.Off = off })
		if err := l.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("CREATE TABLE spent (id TEXT)"); return err }); err != nil {
			t.Fatal(err)
		}
		spend := func(tx *store.Tx) error { _, err := tx.Exec("INSERT INTO spent (id) VALUES ('a')"); return err }
		errTwice := errors.New("spent twice")
		if err := l.Intent(t.Context(), intent("1"), spend, func(*store.Tx) error { return errTwice }); !errors.Is(err, errTwice) {
			t.Errorf("got %v", err)
		}
		if n, _ := l.Failures(); n != 0 {
			t.Error("what somebody else did not want is counted as a failure of the log")
		}
		if err := l.Intent(t.Context(), intent("2"), spend); err != nil {
			t.Fatal(err)
		}
		var spent int
		if err := l.db.Read(t.Context(), func(tx *store.Tx) error { return tx.Row("SELECT count(*) FROM spent", nil, &spent) }); err != nil || spent != 1 {
			t.Errorf("spent %d times, %v", spent, err)
		}
		want := uint64(1)
		if off {
			want = 0
		}
		if check := verified(t, l); check.Records != want {
			t.Errorf("off is %v, and there are %d records", off, check.Records)
		}
	}
}

// TestArguments: only what the configuration says is kept of arguments.
func TestArguments(t *testing.T) {
	const secret = "correct horse"
	for _, kept := range []string{None, Digest, Full} {
		l := logged(t, func(c *Config) { c.Arguments = kept })
		for _, text := range []string{`{"b":"` + secret + `","a":1}`, ` { "a":1, "b":"` + secret + `"}`, `{"a":1,"a":"` + secret + `"}`, "\xff" + secret, ""} {
			r := intent(text[:min(1, len(text))])
			r.Arguments = json.RawMessage(text)
			if err := l.Intent(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		verified(t, l)
		records := found(t, l, Filter{})
		var b bytes.Buffer
		if err := l.Export(t.Context(), &b, Filter{}); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(b.String(), secret), map[string]int{None: 0, Digest: 0, Full: 4}[kept]; got != want {
			t.Errorf("%s: the secret stands there %d times, want %d", kept, got, want)
		}
		same := records[4].Digest == records[3].Digest && records[3].Digest != records[2].Digest
		if none := records[4].Digest == (Hash{}); none != (kept == None) || !none && !same {
			t.Errorf("%s: digests %v, %v and %v", kept, records[4].Digest, records[3].Digest, records[2].Digest)
		}
	}
}

// What is kept of arguments is what the newest configuration says, and nothing where the
// log is off.
func TestUse(t *testing.T) {
	l := logged(t, func(c *Config) { c.Arguments = None })
	write := func(name string) {
		t.Helper()
		r := intent(name)
		r.Arguments = json.RawMessage(`{"a":"` + name + `"}`)
		if err := l.Intent(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	l.Use(Config{Arguments: Full, Retention: time.Hour})
	write("two")
	l.Use(Config{Off: true})
	write("three")
	verified(t, l)
	var b bytes.Buffer
	if err := l.Export(t.Context(), &b, Filter{}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`"a":"one"`: false, `"a":"two"`: true, `"a":"three"`: false} {
		if got := strings.Contains(b.String(), text); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestOddText: whatever names others give things, the record can be read again.
func TestOddText(t *testing.T) {
	l := logged(t, func(c *Config) { c.Arguments = Full })
	r := intent("nul \x00, half a rune \xe2\x82, a line \u2028 and <html>")
	r.Target, r.Why = strings.Repeat("é", maxText), "\x1b]52;c;aGk=\a"
	r.Arguments = json.RawMessage(`{"html":"<b>&</b>","long":"` + strings.Repeat("x", maxArguments) + `"}`)
	if err := l.Intent(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Arguments = json.RawMessage(`{"html":"<b>&</b>"}`)
	if err := l.Intent(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	verified(t, l)
	got := found(t, l, Filter{})
	if len(got) != 2 || got[1].Arguments != nil || got[1].Digest == (Hash{}) || string(got[0].Arguments) != `{"html":"<b>&</b>"}` {
		t.Errorf("%.300v", got)
	}
}

// TestLongIDs: who makes up ids of calls, however long, is seen, and keeps nobody else from
// being so.
func TestLongIDs(t *testing.T) {
	l := logged(t, nil)
	random := make([]byte, 32<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // nothing to compress
	long := intent(hex.EncodeToString(random))
	if err := l.Intent(t.Context(), long); err != nil {
		t.Error(err)
	}
	long.Kind = Decision
	l.Append(long)
	flush(t, l)
	if n := len(found(t, l, Filter{})); n != 2 {
		t.Errorf("%d records of 2", n)
	}
	verified(t, l)
}

func TestFind(t *testing.T) {
	l := logged(t, nil)
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range 30 {
		r := intent(fmt.Sprint("call-", i))
		r.Time = start.Add(time.Duration(i) * time.Minute)
		r.Caller, r.Server, r.Target = fmt.Sprint("key-", i%3), []string{"files", "weather"}[i%2], fmt.Sprint("tool_", i%5)
		r.CallerName = []string{"key-0", "ada", "bob"}[i%3]
		r.Verdict = []string{Allow, Ask, Deny}[i%3]
		l.Append(r)
	}
	flush(t, l)
	for _, tc := range []struct {
		f    Filter
		want int
	}{
		{Filter{}, 30},
		{Filter{Limit: 7}, 7},
		{Filter{Since: start.Add(20 * time.Minute)}, 10},
		{Filter{Until: start.Add(20 * time.Minute)}, 20},
		{Filter{Since: start.Add(5 * time.Minute), Until: start.Add(6 * time.Minute)}, 1},
		{Filter{Caller: "key-1"}, 10},
		{Filter{Caller: "key-?", Server: "wea*"}, 15},
		{Filter{Caller: "KEY-1"}, 0},
		{Filter{Caller: "ada"}, 10},
		{Filter{Caller: "a*", Server: "files"}, 5},
		{Filter{Caller: "ada", Limit: 3}, 3},
		{Filter{Tool: "tool_3", Server: "files"}, 3},
		{Filter{Verdict: Deny, Limit: 4}, 4},
		{Filter{Kind: Outcome}, 0},
		{Filter{Call: "call-3"}, 1},
		{Filter{Call: "call-3' OR '1'='1"}, 0},
	} {
		got := found(t, l, tc.f)
		if len(got) != tc.want {
			t.Errorf("%+v: %d records, want %d", tc.f, len(got), tc.want)
		}
		for i := range got {
			if got[i].Caller == "key-0" && got[i].CallerName != "" {
				t.Error("a name that says no more than the ID is kept")
			}
			if i > 0 && got[i].Seq >= got[i-1].Seq {
				t.Errorf("%+v: not the newest first", tc.f)
			}
		}
		var b bytes.Buffer
		if err := l.Export(t.Context(), &b, tc.f); err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(b.Bytes(), []byte("\n")); tc.f.Limit == 0 && lines != tc.want {
			t.Errorf("%+v: %d lines, want %d", tc.f, lines, tc.want)
		}
	}
}

// TestExport: an export can be checked without the log, and what was changed in it
// is found.
func TestExport(t *testing.T) {
	l := logged(t, func(c *Config) { c.Arguments = Full })
	for i := range page + 5 { // more than one page
		r := intent(fmt.Sprint(i))
		r.Why = `,"hash":"not this one"`
		l.Append(r)
	}
	flush(t, l)
	var b bytes.Buffer
	if err := l.Export(t.Context(), &b, Filter{}); err != nil {
		t.Fatal(err)
	}
	check, err := VerifyExport(bytes.NewReader(b.Bytes()))
	if whole := verified(t, l); err != nil || only(t, check) != whole {
		t.Fatalf("%+v, %v", check, err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("\n"))
	for n, changed := range map[uint64][]byte{
		3: bytes.Join(append(append([][]byte{}, lines[:2]...), lines[3:]...), nil),
		5: bytes.Replace(b.Bytes(), []byte(`"call":"4"`), []byte(`"call":"5"`), 1),
		6: bytes.Replace(b.Bytes(), []byte(`"seq":6,`), []byte(`"seq":6,"x":1,`), 1),
	} {
		_, err := VerifyExport(bytes.NewReader(changed))
		if bad, ok := errors.AsType[*Bad](err); !ok || bad.Seq != n {
			t.Errorf("record %d was changed: %v", n, err)
		}
	}
	for _, more := range []string{`,"verdict":"deny"}`, ` }`} { // behind the hash, where readers see it
		changed := bytes.Join(append([][]byte{append(bytes.TrimSuffix(lines[0], []byte("}\n")), more+"\n"...)}, lines[1:]...), nil)
		_, err := VerifyExport(bytes.NewReader(changed))
		if bad, ok := errors.AsType[*Bad](err); !ok || bad.Seq != 1 {
			t.Errorf("%s stands behind a hash: %v", more, err)
		}
	}
	if _, err := VerifyExport(bytes.NewReader(lines[0]), only(t, check).Head); err == nil {
		t.Error("a cut export has a head that it does not have")
	}
	begins := bytes.Join(lines[5:], nil) // behind the record of a head that was kept
	var sixth Record
	if err := json.Unmarshal(lines[5], &sixth); err != nil {
		t.Fatal(err)
	}
	head := Head{sixth.Log, 5, sixth.Prev}
	if check, err := VerifyExport(bytes.NewReader(begins), head); err != nil || check.Logs[0].Untold || check.Unseen != nil {
		t.Errorf("an export that begins behind a head: %+v, %v", check, err)
	}
	head.Hash[0]++
	if _, err := VerifyExport(bytes.NewReader(begins), head); err == nil {
		t.Error("an export begins behind another record than the one whose head was kept")
	}
	if found := found(t, l, Filter{Limit: 1}); true {
		if line, err := found[0].Line(); err != nil || !bytes.Equal(line, append(lines[len(lines)-1], '\n')) {
			t.Errorf("%s, %v", line, err)
		}
	}
}

// TestPrune: what is old goes, in steps, the rest stays verifiable, and nobody can
// remove more than the log says.
func TestPrune(t *testing.T) {
	l := logged(t, func(c *Config) { c.Retention = time.Hour })
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l.now = func() time.Time { return now }
	l.step = 30
	var oldHead Head
	for i := range 40 {
		l.Append(intent(fmt.Sprint(i)))
		if i == 5 {
			flush(t, l)
			oldHead = verified(t, l).Head
		}
	}
	flush(t, l)
	if n, err := l.Prune(t.Context()); n != 0 || err != nil {
		t.Fatalf("all are young: %d, %v", n, err)
	}
	now = now.Add(2 * time.Hour)
	young := intent("young")
	if err := l.Intent(t.Context(), young); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Prune(t.Context()); n != 40 || err != nil {
		t.Fatalf("%d were removed, %v", n, err)
	}
	check := verified(t, l, oldHead)
	if check.Untold {
		t.Errorf("no record says what was removed: %+v", check)
	}
	if n, err := l.Count(t.Context()); check.Records != 3 || check.First != 41 || n != 3 || err != nil {
		t.Errorf("%+v; %d are counted, %v", check, n, err)
	}
	if got := found(t, l, Filter{Kind: Pruned}); len(got) != 2 || got[0].Through != 40 || got[0].Count != 10 {
		t.Errorf("%+v", got)
	}
	now = now.Add(2 * time.Hour)
	if n, err := l.Prune(t.Context()); n != 3 || err != nil {
		t.Fatalf("with nothing young left: %d, %v", n, err)
	}
	check = verified(t, l)
	if err := l.Intent(t.Context(), intent("after")); err != nil {
		t.Fatal(err)
	}
	verified(t, l, check.Head)
	tamper(t, l, "DELETE FROM audit_records WHERE seq <= $1", int64(check.Head.Seq))
	if _, err := l.Verify(t.Context()); err == nil {
		t.Error("more was removed than the log says, and nobody minds")
	}
}

func tamper(t testing.TB, l *Log, query string, args ...any) {
	t.Helper()
	if err := l.db.Write(context.Background(), func(tx *store.Tx) error { _, err := tx.Exec(query, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

// TestFull: when the disk is full intents fail, the rest is counted, and when there
// is room again a record says what is missing (fault 28).
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.db")
	config := Config{Arguments: Full}
	var said bytes.Buffer
	l := New(opened(t, path, 1<<20), config, newLogger(&said))
	big := intent("big")
	big.Arguments = json.RawMessage(`{"a":"` + strings.Repeat("x", 60<<10) + `"}`)
	var err error
	for n := 0; err == nil && n < 100; n++ {
		err = l.Intent(t.Context(), big)
	}
	if err == nil {
		t.Fatal("the disk never is full")
	}
	for range 3 {
		l.Append(big)
		if err := l.Intent(t.Context(), big); err == nil {
			t.Fatal("an intent is said to be on a disk that is full")
		}
	}
	if n, last := l.Failures(); n != 7 || last == nil {
		t.Errorf("%d failures, the last %v; want 7", n, last)
	}
	before := verified(t, l)
	l.db.Close()

	l2 := New(opened(t, path, 0), config, nil)
	l2.lost.Store(l.lost.Load()) // it is the same process, with more room
	if err := l2.Intent(t.Context(), intent("room again")); err != nil {
		t.Fatal(err)
	}
	if check, err := l2.Verify(t.Context(), before.Head); err != nil || len(check.Logs) != 2 {
		t.Errorf("%+v, %v", check, err)
	}
	if gap := found(t, l2, Filter{Kind: Gap}); len(gap) != 1 || gap[0].Count != 3 {
		t.Errorf("the gap is %+v; want 3 records", gap)
	}
	if n := strings.Count(said.String(), "cannot be written"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}

// FuzzVerifyExport: whatever a file holds, it is judged and nothing breaks; and
// what is found in order is in order once more when it is written anew.
func FuzzVerifyExport(f *testing.F) {
	l := logged(f, nil)
	for range 3 {
		l.Append(intent("a"))
	}
	flush(f, l)
	var b bytes.Buffer
	if err := l.Export(context.Background(), &b, Filter{}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"seq":1,"hash":"00"}` + "\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		check, err := VerifyExport(bytes.NewReader(in))
		if err == nil && check.Records != uint64(bytes.Count(bytes.TrimSuffix(in, []byte("\n")), []byte("\n")))+1 && len(in) > 0 {
			t.Errorf("%d records in %q", check.Records, in)
		}
	})
}
