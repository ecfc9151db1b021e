package run

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/keeping"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestOnPostgres: all of it, in PostgreSQL.
func TestOnPostgres(t *testing.T) {
	pgtest.Again(t, "^Test(Follow|FollowedUntilErased|Takeover|DiesAnywhere|Wait|WokenMeanwhile|Cancel|EndedElsewhere|Stop|NobodyIsDead.*|Owners|OneHolder|Turns|Unreadable|Abandoned|Find)$")
}

// opened returns what a process has of the store at a path.
func opened(t testing.TB, path string, config Config) *Runs {
	t.Helper()
	return openedAt(t, storetest.At(t, path), config)
}

// openedAt is opened where a store's configuration says.
func openedAt(t testing.TB, where store.Config, config Config) *Runs {
	t.Helper()
	db, keys := storetest.OpenSealed(t, where)
	return Open(db, keys, config)
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "dragoman.db") }

func begin(t testing.TB, in *Runs, owner, id string) *Held {
	t.Helper()
	h, err := in.Begin(t.Context(), New{Owner: owner, ID: id, Label: "m", Document: []byte("watermelon"), Events: [][]byte{[]byte("e0"), []byte("e1")}})
	if err != nil || h == nil {
		t.Fatalf("%v, %v", h, err)
	}
	return h
}

func fine(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// die lets everybody take a run's holder for dead.
func die(t testing.TB, in *Runs, id string) {
	t.Helper()
	fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE runs SET lease = 1 WHERE id = $1 AND state = 'running'", id)
		return err
	}))
}

// taken lets a process look, and returns what it takes, which it has on.
func taken(t testing.TB, in *Runs) (all []*Held) {
	t.Helper()
	fine(t, in.wake(t.Context()))
	found, err := in.free(t.Context())
	fine(t, err)
	for _, k := range found {
		h, err := in.take(t.Context(), k)
		if fine(t, err); h != nil {
			all = append(all, h)
		}
	}
	return all
}

// all reads a run to its end, as one who follows it.
func all(t testing.TB, in *Runs, id string, after int64) (events []string) {
	for e, err := range in.Follow(t.Context(), "ann", id, after) {
		if err != nil {
			t.Error(err)
			return events
		}
		if want := after + int64(len(events)) + 1; e.Number != want {
			t.Errorf("event %d where %d was to come", e.Number, want)
		}
		events = append(events, string(e.Data))
	}
	return events
}

// TestFollow: whoever follows, from whichever event on, in whichever process, has every
// event once and in order, while they come and after the end.
func TestFollow(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{}), opened(t, path, Config{})
	h := begin(t, here, "ann", "r")
	const n = 500
	want := []string{"e0", "e1"}
	for i := 2; i < n; i++ {
		want = append(want, fmt.Sprintf("e%d %s", i, strings.Repeat("x", i)))
	}
	var wg sync.WaitGroup
	for i, in := range []*Runs{here, there, there} {
		after := int64(i*100 - 1)
		wg.Go(func() {
			if got := all(t, in, "r", after); !slices.Equal(got, want[after+1:]) {
				t.Errorf("behind %d: %d events", after, len(got))
			}
		})
	}
	for _, e := range want[2:] {
		h.Say([]byte(e))
	}
	fine(t, h.End(t.Context(), Completed, nil))
	wg.Wait()
	if got := all(t, there, "r", -1); !slices.Equal(got, want) {
		t.Errorf("afterwards: %d events", len(got))
	}
	if got := all(t, there, "r", n-1); len(got) > 0 {
		t.Errorf("behind the last: %v", got)
	}
	r, err := there.Get(t.Context(), "ann", "r")
	if err != nil || r.State != Done || r.Outcome != Completed || r.Last != n-1 || r.Ended.IsZero() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFollowedUntilErased: whoever follows a run hears that it is not there any more, also
// where its owner was erased, in another process, or its time is over.
func TestFollowedUntilErased(t *testing.T) {
	for name, remove := range map[string]func(in *Runs){
		"erased": func(in *Runs) {
			_, err := keeping.Erase(t.Context(), in.db, keeping.Whose{Caller: "ann"})
			fine(t, err)
		},
		"expired": func(in *Runs) {
			fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec("UPDATE runs SET expires = 1"); return err }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			here, there := opened(t, path, Config{Lease: 10 * time.Millisecond}), opened(t, path, Config{})
			begin(t, there, "ann", "r")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			n, last := 0, error(nil)
			for _, err := range here.Follow(ctx, "ann", "r", -1) {
				if last = err; err != nil {
					break
				}
				if n++; n == 2 {
					wg.Go(func() {
						for range 200 { // meanwhile it has begun to wait
							_, err := there.Get(ctx, "ann", "r")
							fine(t, err)
						}
						remove(there)
					})
				}
			}
			if wg.Wait(); n != 2 || !errors.Is(last, ErrNone) {
				t.Errorf("%d events, then %v", n, last)
			}
		})
	}
}

// TestTakeover: a run whose process is taken for dead is taken by another one, once, with
// all that was kept, and the first one writes nothing more.
func TestTakeover(t *testing.T) {
	path := file(t)
	here, there, third := opened(t, path, Config{}), opened(t, path, Config{}), opened(t, path, Config{})
	h := begin(t, here, "ann", "r")
	fine(t, h.Keep(t.Context(), "model 1", []byte("pineapple")))
	if got := taken(t, there); len(got) > 0 {
		t.Fatal("taken though its process lives")
	}
	die(t, here, "r")
	got := slices.Concat(taken(t, there), taken(t, third))
	if len(got) != 1 {
		t.Fatalf("%d took it", len(got))
	}
	next := got[0]
	step, err := next.Step(t.Context(), "model 1")
	said, err2 := there.Said(t.Context(), "ann", "r")
	if err != nil || err2 != nil || string(step) != "pineapple" || string(next.Document) != "watermelon" || next.Attempt != 1 || next.Next() != 2 || len(said) != 2 {
		t.Errorf("%q, %q, %+v, %v, %v, %v", step, said, next.Attempt, next.Next(), err, err2)
	}
	for what, err := range map[string]error{
		"keep": h.Keep(t.Context(), "x", nil), "end": h.End(t.Context(), Completed, nil),
		"fence": here.db.Write(t.Context(), func(tx *store.Tx) error { return h.Fence(tx) }),
	} {
		if !errors.Is(err, ErrLost) {
			t.Errorf("%s of the dead: %v", what, err)
		}
	}
	if !errors.Is(context.Cause(h.Context()), ErrLost) {
		t.Error("the dead one does not know")
	}
	h.Say([]byte("e2 of the dead"))
	next.Say([]byte("e2"))
	fine(t, next.End(t.Context(), Failed, nil))
	if got := all(t, here, "r", -1); !slices.Equal(got, []string{"e0", "e1", "e2"}) {
		t.Errorf("%q", got)
	}
}

// away has everything fail that is done in a table, until the function that it returns is
// called.
func away(t testing.TB, in *Runs, table string) (back func()) {
	t.Helper()
	rename := func(from, to string) {
		t.Helper()
		fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("ALTER TABLE " + from + " RENAME TO " + to)
			return err
		}))
	}
	rename(table, "away")
	return func() { rename("away", table) }
}

// TestNobodyIsDeadWhileTheStoreIsAway: after a time in which the store could not be used,
// whoever has a run gets the time to say that it lives before others take it.
func TestNobodyIsDeadWhileTheStoreIsAway(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{}), opened(t, path, Config{})
	there.Work(func(*Held) {})
	h := begin(t, here, "ann", "r")
	back := away(t, there, "runs")
	if err := there.Look(t.Context()); err == nil {
		t.Fatal("it can be looked at")
	}
	back()
	die(t, here, "r") // it was away for longer than a lease
	fine(t, there.Look(t.Context()))
	if len(taken(t, there)) > 0 {
		t.Fatal("taken though its process lives")
	}
	here.beat(t.Context())
	if h.ctx.Err() != nil {
		t.Errorf("its process has it no more: %v", context.Cause(h.ctx))
	}
	die(t, here, "r")
	there.unseen = there.unseen.Add(-DefaultLease)
	if len(taken(t, there)) != 1 {
		t.Error("nobody takes what its process has said nothing of since")
	}
}

// TestNobodyIsDeadWhileNobodyIsSeenToLive: so it is where the store is away while this
// process says that its own runs live, which may take longer than a lease.
func TestNobodyIsDeadWhileNobodyIsSeenToLive(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{}), opened(t, path, Config{})
	begin(t, here, "ann", "r")
	begin(t, there, "ann", "own")
	back := away(t, there, "runs")
	there.beat(t.Context())
	back()
	die(t, here, "r")
	if got := taken(t, there); len(got) > 0 {
		t.Fatal("taken though its process lives")
	}
}

// TestNobodyIsDeadWhileTheStoreStandsStill: so it is where nothing fails, and the store answers
// late: what waits for it is done first, and leases are over.
func TestNobodyIsDeadWhileTheStoreStandsStill(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{}), opened(t, path, Config{})
	there.Work(func(*Held) {})
	begin(t, here, "ann", "r")
	begin(t, there, "ann", "own")
	die(t, here, "r")
	late := func() func() time.Time { // each answer comes a lease later
		at := time.Now()
		return func() time.Time { at = at.Add(DefaultLease); return at }
	}
	k := key{store.Owner("ann"), "r"}
	for what, do := range map[string]func(){
		"looking": func() { fine(t, there.Look(t.Context())) },
		"taking": func() {
			if h, err := there.take(t.Context(), k); h != nil || err != nil {
				t.Errorf("%v, %v", h, err)
			}
		},
		"saying that its own lives": func() { there.beat(t.Context()) },
	} {
		there.unseen, there.clock = time.Time{}, late()
		do()
		there.clock = time.Now
		if len(taken(t, there)) > 0 {
			t.Fatalf("%s: taken though its process lives", what)
		}
	}
	there.unseen = there.unseen.Add(-DefaultLease)
	if len(taken(t, there)) != 1 {
		t.Error("nobody takes what its process has said nothing of since")
	}
}

// TestOneWithoutItsKey: a run whose key cannot be read, which is tried to be taken with each
// look, keeps nobody from those whose process has died.
func TestOneWithoutItsKey(t *testing.T) {
	path := file(t)
	full, in := opened(t, path, Config{Most: 1}), opened(t, path, Config{})
	begin(t, full, "ann", "r")
	if h, err := full.Begin(t.Context(), New{Owner: "bob", ID: "unreadable"}); h != nil || err != nil {
		t.Fatal(h, err)
	}
	fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE owner_keys SET wrapped = $1 WHERE owner = $2", []byte("not this"), store.Owner("bob"))
		return err
	}))
	if err := in.Look(t.Context()); err == nil {
		t.Fatal("it is taken")
	}
	die(t, full, "r")
	found, err := in.free(t.Context())
	if fine(t, err); !slices.Contains(found, key{store.Owner("ann"), "r"}) {
		t.Errorf("nobody takes what its process has said nothing of: %v", found)
	}
}

// TestSaidWhileTheStoreIsAway: what is said while the store cannot be written is written once
// it can, in its order, and the run goes on; unless that takes too long.
func TestSaidWhileTheStoreIsAway(t *testing.T) {
	in := opened(t, file(t), Config{})
	for _, late := range []bool{false, true} {
		id := fmt.Sprint("late ", late)
		h := begin(t, in, "ann", id)
		back := away(t, in, "run_events")
		h.Say([]byte("e2"))
		h.flushSoon()
		h.Say(bytes.Repeat([]byte("x"), 2*maxBlock))
		if h.ctx.Err() != nil {
			t.Fatalf("it is given up: %v", context.Cause(h.ctx))
		}
		if late {
			h.mu.Lock()
			h.failing = h.failing.Add(-in.config.Patience)
			h.mu.Unlock()
			h.flushSoon()
			if h.ctx.Err() == nil {
				t.Error("it is tried for ever")
			}
		}
		back()
		if late {
			continue
		}
		h.flushSoon()
		if !h.flushAgain(errors.New("of one who was too slow to write it")) || !h.failing.IsZero() {
			t.Errorf("there is nothing to write, and since %s that fails", h.failing)
		}
		h.Say([]byte("e4"))
		fine(t, h.End(t.Context(), Completed, nil))
		if got := all(t, in, id, -1); len(got) != 5 || got[2] != "e2" || got[4] != "e4" {
			t.Errorf("%d events", len(got))
		}
	}
}

// TestKeptWhileTheStoreIsAway: a step that cannot be kept at once is kept once it can, and is
// given up where that takes too long.
func TestKeptWhileTheStoreIsAway(t *testing.T) {
	for _, patience := range []time.Duration{0, 1} {
		var in *Runs
		back, tried := func() {}, 0
		in = opened(t, file(t), Config{Patience: patience, At: func(point string) {
			switch point {
			case "before model 1":
				if tried++; tried == 1 {
					back = away(t, in, "run_steps")
				}
			case "after model 1":
				back()
				back = func() {}
			}
		}})
		h := begin(t, in, "ann", "r")
		err := h.Keep(t.Context(), "model 1", []byte("said"))
		kept, reading := h.Step(t.Context(), "model 1")
		fine(t, reading)
		if late := patience != 0; (err != nil) != late || (kept == nil) != late || late != (tried == 1) {
			t.Errorf("patience %s: %q is kept after %d times: %v", patience, kept, tried, err)
		}
	}
}

// TestDiesAnywhere: whichever write is the last one of a process, its successor goes on
// behind it, and no follower misses an event or has one twice.
func TestDiesAnywhere(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{}), opened(t, path, Config{})
	steps := []func(*Held) error{
		func(h *Held) error { h.Say([]byte("e2")); return h.Flush(t.Context()) },
		func(h *Held) error { return h.Keep(t.Context(), "model 1", []byte("m")) },
		func(h *Held) error { h.Say([]byte("e3")); return h.Flush(t.Context()) },
		func(h *Held) error { return h.Keep(t.Context(), "call 1", []byte("c")) },
		func(h *Held) error { h.Say([]byte("e4")); h.Say([]byte("e5")); return h.Flush(t.Context()) },
	}
	for point := range len(steps) + 1 {
		id := fmt.Sprint("r", point)
		followed := make(chan []string)
		h := begin(t, here, "ann", id)
		go func() { followed <- all(t, there, id, -1) }()
		for _, step := range steps[:point] {
			fine(t, step(h))
		}
		h.writing.Lock() // it writes nothing meanwhile
		h.Say([]byte("lost"))
		die(t, here, id)
		next := taken(t, there)
		h.writing.Unlock()
		if len(next) != 1 {
			t.Fatalf("%d were taken at %d", len(next), point)
		}
		for at := next[0].Next(); at < 8; at++ {
			next[0].Say(fmt.Appendf(nil, "e%d", at))
		}
		if err := h.Flush(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("the dead one writes: %v", err)
		}
		fine(t, next[0].End(t.Context(), Completed, nil))
		want := []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"}
		if got := all(t, here, id, -1); !slices.Equal(got, want) {
			t.Errorf("at %d: %q", point, got)
		}
		if got := <-followed; !slices.Equal(got, want) {
			t.Errorf("who followed from before, at %d: %q", point, got)
		}
	}
}

// TestWait: what waits is nobody's until what it waits for has come or its time is over.
func TestWait(t *testing.T) {
	come := map[string]bool{}
	path := file(t)
	in := opened(t, path, Config{Woken: func(_ *store.Tx, waits string) (bool, error) { return come[waits], nil }})
	for _, id := range []string{"a", "b", "c"} {
		h := begin(t, in, "ann", id)
		h.Say([]byte("e2"))
		most := time.Hour
		if id == "c" {
			most = -time.Hour
		}
		fine(t, h.Wait(t.Context(), "approval "+id, most))
		if !errors.Is(context.Cause(h.Context()), ErrWaits) {
			t.Error("it does not know that it waits")
		}
	}
	names := func(all []*Held) (ids []string) {
		for _, h := range all {
			ids = append(ids, h.ID)
			if h.Attempt != 0 || h.Next() != 3 {
				t.Errorf("%s: attempt %d, next %d", h.ID, h.Attempt, h.Next())
			}
		}
		return ids
	}
	if got := names(taken(t, in)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("taken %v", got)
	}
	fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error { return Wake(tx, "approval a") }))
	if got := names(taken(t, in)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("taken %v", got)
	}
	if r, err := in.Get(t.Context(), "ann", "b"); err != nil || r.State != Waiting || r.Waits != "approval b" {
		t.Errorf("%+v, %v", r, err)
	}
	come["approval d"] = true // before it waits
	h := begin(t, in, "ann", "d")
	h.Say([]byte("e2"))
	fine(t, h.Wait(t.Context(), "approval d", time.Hour))
	if got := names(taken(t, in)); !slices.Equal(got, []string{"d"}) {
		t.Errorf("taken %v", got)
	}
}

// TestWaitsByTheClockOfTheStore: a run waits as long as it is told where the database's clock
// is hours ahead of this process's, or behind it.
func TestWaitsByTheClockOfTheStore(t *testing.T) {
	for _, apart := range []string{"2 hours", "-2 hours"} {
		url := pgtest.URL(t)
		pgtest.SQL(t, url, "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + interval '"+apart+"' $$")
		in := openedAt(t, store.Config{URL: secret.New(url + "&search_path=public,pg_catalog")}, Config{})
		fine(t, begin(t, in, "ann", "long").Wait(t.Context(), "", time.Hour), begin(t, in, "ann", "over").Wait(t.Context(), "", -time.Second))
		if all := taken(t, in); len(all) != 1 || all[0].ID != "over" {
			t.Errorf("%s apart: %d runs are taken", apart, len(all))
		}
	}
}

// TestWokenMeanwhile: what comes in the moment in which a run begins to wait wakes it.
func TestWokenMeanwhile(t *testing.T) {
	path := file(t)
	woken := func(tx *store.Tx, waits string) (bool, error) {
		n := 0
		err := tx.Row("SELECT count(*) FROM topics WHERE name = $1", []any{"come " + waits}, &n)
		return n > 0, err
	}
	here, there := opened(t, path, Config{Woken: woken}), opened(t, path, Config{Woken: woken})
	for i := range 20 {
		id := fmt.Sprint("r", i)
		h := begin(t, here, "ann", id)
		var both sync.WaitGroup
		both.Go(func() {
			if err := h.Wait(t.Context(), id, time.Hour); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := there.db.Write(t.Context(), func(tx *store.Tx) error {
				tx.Raise("come " + id)
				if err := tx.Lock("come", id); err != nil {
					return err
				}
				if _, err := tx.Exec("INSERT INTO topics (name, n) VALUES ($1, 0)", "come "+id); err != nil {
					return err
				}
				return Wake(tx, id)
			}); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if r, err := there.Get(t.Context(), "ann", id); err != nil || r.State != Ready {
			t.Errorf("%s: %+v, %v", id, r, err)
		}
	}
}

// TestWaitingIsCheap: a thousand that wait hold no goroutine and next to no memory.
func TestWaitingIsCheap(t *testing.T) {
	in := opened(t, store.Memory, Config{Woken: func(*store.Tx, string) (bool, error) { return false, nil }})
	measure := func() (uint64, int) {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse, runtime.NumGoroutine()
	}
	before, goroutines := measure()
	const n = 1000
	for i := range n {
		h, err := in.Begin(t.Context(), New{Owner: "ann", ID: fmt.Sprint(i), Document: bytes.Repeat([]byte("x"), 4<<10), Events: [][]byte{[]byte("e0")}})
		fine(t, err)
		fine(t, h.Wait(t.Context(), "approval", time.Hour))
	}
	fine(t, in.Look(t.Context()))
	after, now := measure()
	each := (int64(after) - int64(before)) / n
	t.Logf("%d bytes each, %d goroutines more", each, now-goroutines)
	if each > 64<<10 || now > goroutines+2 || len(in.held) > 0 {
		t.Errorf("%d bytes each, %d goroutines where there were %d, %d held", each, now, goroutines, len(in.held))
	}
}

// TestCancel: who cancels ends a run wherever it is, once, and its holder writes nothing more.
func TestCancel(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{}), opened(t, path, Config{})
	h := begin(t, here, "ann", "r")
	times := 0
	for range 2 {
		r, err := there.Cancel(t.Context(), "ann", "r", func(*store.Tx) error { times++; return nil })
		if err != nil || r.State != Done || r.Outcome != Cancelled {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if times != 1 {
		t.Errorf("ended %d times", times)
	}
	if err := h.End(t.Context(), Completed, nil); !errors.Is(err, ErrLost) {
		t.Errorf("its holder ends it: %v", err)
	}
	if why := context.Cause(h.Context()); !errors.Is(why, ErrCancelled) {
		t.Errorf("its holder is told %v", why)
	}
	mine := begin(t, here, "ann", "s")
	if _, err := here.Cancel(t.Context(), "ann", "s", nil); err != nil || !errors.Is(context.Cause(mine.Context()), ErrCancelled) {
		t.Errorf("%v, %v", err, context.Cause(mine.Context()))
	}
	fine(t, here.Delete(t.Context(), "ann", "s", nil))
	if _, err := here.Get(t.Context(), "ann", "s"); !errors.Is(err, ErrNone) {
		t.Errorf("deleted: %v", err)
	}
	if len(here.held) > 0 {
		t.Errorf("%d are held", len(here.held))
	}
}

// TestEndedElsewhere: the process that has a run is told at once that it was cancelled, or deleted, at
// another one, and need not write anything to learn of it.
func TestEndedElsewhere(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{Lease: time.Hour, Look: time.Hour}), opened(t, path, Config{})
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { here.Watch(ctx, func(h *Held) { <-h.Context().Done() }) })
	defer watching.Wait()
	defer stop()
	other := begin(t, here, "ann", "other")
	for id, end := range map[string]func() error{
		"cancelled": func() error { _, err := there.Cancel(t.Context(), "ann", "cancelled", nil); return err },
		"deleted":   func() error { return there.Delete(t.Context(), "ann", "deleted", nil) },
	} {
		h := begin(t, here, "ann", id)
		fine(t, end())
		select {
		case <-h.Context().Done():
			if why := context.Cause(h.Context()); !errors.Is(why, ErrCancelled) {
				t.Errorf("%s: its holder is told %v", id, why)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: its holder is not told", id)
		}
	}
	if err := other.Context().Err(); err != nil {
		t.Errorf("one that nobody ended: %v", err)
	}
}

// TestCancelWhileItEnds: a run that ends while another process cancels it has one end, which
// is the one that everybody was told.
func TestCancelWhileItEnds(t *testing.T) {
	url := pgtest.URL(t)
	where := store.Config{URL: secret.New(url)}
	here, there := openedAt(t, where, Config{}), openedAt(t, where, Config{})
	h := begin(t, here, "ann", "r")
	cancels := make(chan struct{})
	var cancelled sync.WaitGroup
	ends := func(*store.Tx) error {
		cancelled.Go(func() {
			r, err := there.Cancel(t.Context(), "ann", "r", func(*store.Tx) error { close(cancels); return nil })
			if err != nil || r.Outcome != Completed {
				t.Errorf("who cancels it is told %+v, %v", r, err)
			}
		})
		for pgtest.SQL(t, url, "SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
			select {
			case <-cancels: // it knows nothing of the end
				return nil
			default:
			}
		}
		return nil
	}
	err := h.End(t.Context(), Completed, ends)
	cancelled.Wait()
	if r, getErr := there.Get(t.Context(), "ann", "r"); err != nil || getErr != nil || r.Outcome != Completed {
		t.Errorf("it has ended (%v), and is %+v, %v", err, r, getErr)
	}
}

// TestStop: a process that ends gives back what it has, and what there was no room for goes
// on elsewhere, too.
func TestStop(t *testing.T) {
	path := file(t)
	here, there := opened(t, path, Config{Most: 1}), opened(t, path, Config{})
	begin(t, here, "ann", "r")
	if h, err := here.Begin(t.Context(), New{Owner: "ann", ID: "s"}); h != nil || err != nil {
		t.Fatalf("%v, %v", h, err)
	}
	here.Stop()
	if got := taken(t, there); len(got) != 2 || got[0].Attempt+got[1].Attempt != 0 {
		t.Errorf("%d were taken", len(got))
	}
}

// TestOneHolder: of processes that look at the same time one has a run.
func TestOneHolder(t *testing.T) {
	path := file(t)
	first := opened(t, path, Config{})
	for i := range 10 {
		begin(t, first, "ann", fmt.Sprint(i))
		die(t, first, fmt.Sprint(i))
	}
	var mu sync.Mutex
	times := map[string]int{}
	var wg sync.WaitGroup
	for range 3 {
		in := opened(t, path, Config{})
		in.Work(func(h *Held) {
			mu.Lock()
			times[h.ID]++
			mu.Unlock()
			<-h.Context().Done()
		})
		t.Cleanup(in.Stop)
		wg.Go(func() {
			if err := in.Look(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, err := range []error{first.Look(t.Context())} {
		fine(t, err)
	}
	all, err := first.List(t.Context(), Filter{State: Running})
	fine(t, err)
	for _, r := range all {
		if r.Attempt != 1 {
			t.Errorf("%s was taken %d times", r.ID, r.Attempt)
		}
	}
	if len(all) != 10 {
		t.Errorf("%d were taken", len(all))
	}
}

// TestTurns: whoever has begun many runs lets nobody else wait for all of them.
func TestTurns(t *testing.T) {
	path := file(t)
	none := opened(t, path, Config{Most: 1})
	begin(t, none, "eve", "has it")
	for i := range 20 {
		for _, owner := range []string{"ann", "ann", "bob"} {
			if owner == "bob" && i < 18 {
				continue
			}
			id := fmt.Sprint(owner, i, rand.Text())
			if h, err := none.Begin(t.Context(), New{Owner: owner, ID: id}); h != nil || err != nil {
				t.Fatal(h, err)
			}
		}
	}
	of := map[string]int{}
	for _, h := range taken(t, opened(t, path, Config{Most: 4})) {
		of[h.Owner]++
	}
	if of["ann"] != 2 || of["bob"] != 2 {
		t.Errorf("%v were taken", of)
	}
}

// TestUnreadable: a run that nobody can read any more fails, and keeps nobody from others.
func TestUnreadable(t *testing.T) {
	path := file(t)
	full, in := opened(t, path, Config{Most: 1}), opened(t, path, Config{})
	begin(t, full, "eve", "has it")
	for _, id := range []string{"a", "b"} {
		if h, err := full.Begin(t.Context(), New{Owner: "ann", ID: id}); h != nil || err != nil {
			t.Fatal(h, err)
		}
	}
	fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("UPDATE runs SET content = $1 WHERE id = 'a'", []byte("not this"))
		return err
	}))
	if got := taken(t, in); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("%d were taken", len(got))
	}
	if r, err := in.Get(t.Context(), "ann", "a"); err != nil || r.Outcome != Failed {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAbandoned: what work leaves without an end, or panics with, rests for a while and is
// tried again, as if the process had died with it; nobody has it meanwhile.
func TestAbandoned(t *testing.T) {
	in := opened(t, file(t), Config{})
	times := 0
	in.Work(func(h *Held) {
		if times++; times == 2 {
			panic("a mistake")
		}
	})
	in.Go(begin(t, in, "ann", "r"))
	for attempt := 1; attempt <= 2; attempt++ {
		in.working.Wait()
		r, err := in.Get(t.Context(), "ann", "r")
		if err != nil || r.State != Waiting || r.Attempt != attempt || len(in.held) > 0 {
			t.Fatalf("%+v, %v, %d are held", r, err, len(in.held))
		}
		if got := taken(t, in); len(got) > 0 {
			t.Error("taken at once")
		}
		fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("UPDATE runs SET due = 1 WHERE state = 'waiting'")
			return err
		}), in.Look(t.Context()))
	}
}

// TestFind: a run is found by its id, or the beginning that no other has, by whom it is.
func TestFind(t *testing.T) {
	in := opened(t, file(t), Config{})
	for _, id := range []string{"resp_a1", "resp_a2", "resp_a"} {
		begin(t, in, "ann", id)
	}
	for id, want := range map[string]error{"resp_a1": nil, "resp_a": nil, "resp_": ErrSeveral, "resp_b": ErrNone, "": ErrNone, "resp_%": ErrNone} {
		if r, err := in.Find(t.Context(), "", id); !errors.Is(err, want) || err == nil && r.ID != id {
			t.Errorf("%q: %+v, %v", id, r, err)
		}
	}
	if _, err := in.Find(t.Context(), "bob", "resp_a1"); !errors.Is(err, ErrNone) {
		t.Errorf("another one finds it: %v", err)
	}
}

// TestManyWait: what waits costs a look nothing, however many there are.
func TestManyWait(t *testing.T) {
	in := opened(t, file(t), Config{})
	const n = 100_000
	fine(t, in.db.Write(t.Context(), func(tx *store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		_, err = tx.Exec(`WITH RECURSIVE each(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < $1)
			INSERT INTO runs (owner, id, label, state, outcome, node, epoch, attempt, lease, waits, due, last, made, ended, content, size, expires)
			SELECT 'ann', 'r' || n, '', 'waiting', '', '', 1, 0, 0, 'a' || n, $2, 1, n, 0, $3, 0, $2 FROM each`,
			n, store.Time(now.Add(time.Hour)), []byte{})
		return err
	}))
	const looks = 50
	start := time.Now()
	for range looks {
		fine(t, in.Look(t.Context()))
	}
	took := time.Since(start)
	t.Logf("%d wait, and a look takes %s", n, took/looks)
	for _, query := range []string{
		"SELECT owner, id FROM runs WHERE state = 'waiting' AND due > 0 AND due <= 1 ORDER BY due LIMIT 500",
		"SELECT owner, id FROM runs WHERE (state = 'ready' OR state = 'running' AND lease < 1) AND expires > 1",
		"UPDATE runs SET state = 'ready', waits = '', due = 0 WHERE waits = 'a7' AND waits <> '' AND state = 'waiting'",
	} {
		plan := ""
		fine(t, in.db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Rows("EXPLAIN QUERY PLAN "+query, nil, func(scan func(...any) error) error {
				var a, b, c int
				var line string
				err := scan(&a, &b, &c, &line)
				plan += line + "\n"
				return err
			})
		}))
		if strings.Contains(plan, "SCAN runs") {
			t.Errorf("%s reads all of them:\n%s", query, plan)
		}
	}
}

// TestOwners: a run is its owner's, and gone with it.
func TestOwners(t *testing.T) {
	in := opened(t, file(t), Config{})
	h := begin(t, in, "ann", "r")
	fine(t, h.Keep(t.Context(), "model 1", []byte("pineapple")))
	begin(t, in, "bob", "r")
	if all, err := in.List(t.Context(), Filter{Owner: "bob"}); err != nil || len(all) != 1 || all[0].Owner != "bob" {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := in.List(t.Context(), Filter{}); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := in.Cancel(t.Context(), "eve", "r", nil); !errors.Is(err, ErrNone) {
		t.Errorf("another one cancels: %v", err)
	}
	for _, err := range in.Follow(t.Context(), "eve", "r", -1) {
		if !errors.Is(err, ErrNone) {
			t.Errorf("another one follows: %v", err)
		}
	}
	found, err := keeping.Erase(t.Context(), in.db, keeping.Whose{Caller: "ann"})
	fine(t, err)
	rows := map[string]int64{}
	for _, share := range found {
		rows[share.Table] = share.Rows
	}
	if rows["runs"] != 1 || rows["run_events"] != 1 || rows["run_steps"] != 1 {
		t.Errorf("%v", rows)
	}
	if err := h.End(t.Context(), Completed, nil); !errors.Is(err, ErrLost) {
		t.Errorf("erased, and ends: %v", err)
	}
}

// TestNothingIsReadable: no word of a run stands in the file.
func TestNothingIsReadable(t *testing.T) {
	path := file(t)
	h := begin(t, opened(t, path, Config{}), "ann", "r")
	fine(t, h.Keep(t.Context(), "model 1", []byte("pineapple")))
	h.Say([]byte("grapefruit"))
	fine(t, h.Flush(t.Context()))
	for _, name := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(name)
		fine(t, err)
		for _, word := range []string{"watermelon", "pineapple", "grapefruit"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s has %q", name, word)
			}
		}
	}
}

// Counts tell what has not ended, of all owners.
func TestCounts(t *testing.T) {
	in := opened(t, file(t), Config{Woken: func(*store.Tx, string) (bool, error) { return false, nil }})
	begin(t, in, "ann", "a")
	fine(t, begin(t, in, "ann", "b").Wait(t.Context(), "something", time.Hour), begin(t, in, "bob", "c").End(t.Context(), "completed", nil))
	got, err := in.Counts(t.Context())
	if want := map[string]int64{Ready: 0, Running: 1, Waiting: 1}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
