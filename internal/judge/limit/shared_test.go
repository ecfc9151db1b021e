package limit

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// three returns limiters of three replicas on one store.
func three(t *testing.T, callTime time.Duration, limits ...Limit) (all [3]*Limiter) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.db")
	var joined [3]*nodes.Node
	for i := range all {
		var err error
		db := storetest.Open(t, storetest.At(t, path))
		if joined[i], err = nodes.Join(t.Context(), db, nodes.Info{}); err != nil {
			t.Fatal(err)
		}
		if all[i], err = New(t.Context(), Options{Limits: limits, Store: db, Node: joined[i], CallTime: callTime}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range joined { // so that each knows of all
		if err := n.Beat(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// settled waits until no limiter is asking the store, and what its answer led to is done.
func settled(all ...*Limiter) {
	for _, l := range all {
		for {
			l.mu.Lock()
			var done chan struct{}
			for _, h := range l.leased {
				if h.counter.lease.done != nil {
					done = h.counter.lease.done
				}
			}
			l.mu.Unlock()
			if done == nil {
				break
			}
			<-done
		}
	}
}

func TestSharedRate(t *testing.T) {
	all := three(t, 0, Limit{Rate: "40/h"}, Limit{Name: "wide", Rate: "1000/s"})
	var admitted atomic.Int64
	var each sync.WaitGroup
	for i := range 90 {
		each.Go(func() {
			leave, problem := all[i%3].Admit(t.Context(), tool(ada, "a", "x"))
			defer leave(dragoman.Result{})
			switch {
			case problem == nil:
				admitted.Add(1)
			case problem.Code != dragoman.CodeRateLimited || problem.RetryAfter < time.Minute || problem.RetryAfter > 90*time.Second+time.Millisecond:
				t.Errorf("%+v", problem)
			}
		})
	}
	each.Wait()
	if n := admitted.Load(); n != 40 {
		t.Errorf("%d of 40 were admitted", n)
	}
	if n, _ := uses(t, all[0], tool(bob, "a", "x"), 3); n != 3 {
		t.Errorf("%d of another caller", n)
	}
}

// TestSharedRateAfterAReload: a rate that is made quicker, be it while the store is asked by
// the slow one, lets through at once what it says, however long the slow one had to be waited
// for.
func TestSharedRateAfterAReload(t *testing.T) {
	all := three(t, 0, Limit{Name: "turns", Rate: "1/h", Burst: 2})
	for i, l := range all {
		if n, _ := uses(t, l, tool(ada, "a", "x"), 1); n == 1 != (i < 2) {
			t.Fatalf("%d: %d were admitted", i, n)
		}
	}
	for _, l := range all {
		l.mu.Lock()
		h := held{limit: &l.limits[0], counter: l.counter(&l.limits[0], ada.ID, "turns")}
		h.counter.lease.asking++
		h.counter.lease.empty = time.Time{}
		asked := l.exchange(&h)
		h.counter.lease.asking--
		l.mu.Unlock()
		if err := l.Use(t.Context(), []Limit{{Name: "turns", Rate: "1000/s"}}); err != nil {
			t.Fatal(err)
		}
		_, _ = uses(t, l, tool(ada, "a", "x"), 1)
		<-asked
	}
	for i, l := range all {
		for admitted := 0; admitted < 3; {
			leave, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
			switch leave(dragoman.Result{}); {
			case problem == nil:
				admitted++
			case problem.RetryAfter > time.Second:
				t.Fatalf("%d: %v, in %s", i, problem, problem.RetryAfter)
			default:
				<-time.After(problem.RetryAfter)
			}
		}
	}
}

// TestSharedRateWhileItIsRolledOut: while replicas have different limits, nobody refills what
// others have used up by theirs.
func TestSharedRateWhileItIsRolledOut(t *testing.T) {
	all := three(t, 0, Limit{Name: "turns", Rate: "1/h", Burst: 50})
	if err := all[1].Use(t.Context(), []Limit{{Name: "turns", Rate: "1/h", Burst: 1}}); err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for range 5 {
		for i, l := range all[:2] {
			n, _ := uses(t, l, tool(ada, "a", "x"), 60-59*i)
			admitted += n
			l.mu.Lock()
			l.counter(&l.limits[0], ada.ID, "turns").lease.empty = time.Time{} // it is asked again
			l.mu.Unlock()
		}
	}
	if admitted != 50+1 {
		t.Errorf("%d were admitted", admitted)
	}
}

// TestSharedRateInTime: three replicas that are asked as fast as they can answer admit
// what the limit says, and each loses no more than its portion.
func TestSharedRateInTime(t *testing.T) {
	const rate, burst, most = 200, 20, 200
	all := three(t, 0, Limit{Rate: "200/s", Burst: burst})
	began := time.Now()
	var admitted atomic.Int64
	var each sync.WaitGroup
	for _, l := range all {
		each.Go(func() {
			for admitted.Load() < most && time.Since(began) < 20*time.Second {
				leave, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
				if leave(dragoman.Result{}); problem == nil {
					admitted.Add(1)
					continue
				}
				<-time.After(min(problem.RetryAfter, 10*time.Millisecond))
			}
		})
	}
	each.Wait()
	took := time.Since(began)
	if least := time.Duration(float64(most-burst-3*rate/10) / rate * float64(time.Second)); took < least {
		t.Errorf("%d calls in %s, which have to take %s", admitted.Load(), took, least)
	}
	t.Logf("%d calls in %s with %d statements", admitted.Load(), took, all[0].store.Statements()+all[1].store.Statements()+all[2].store.Statements())
}

func TestSharedSlots(t *testing.T) {
	all := three(t, 0, Limit{Concurrent: 3, Per: []string{"all"}})
	var running, peak, ran atomic.Int64
	var each sync.WaitGroup
	for i := range 45 {
		each.Go(func() {
			leave, problem := all[i%3].Admit(t.Context(), tool(ada, "a", "x"))
			if problem != nil {
				t.Error(problem)
				return
			}
			n := running.Add(1)
			for {
				was := peak.Load()
				if n <= was || peak.CompareAndSwap(was, n) {
					break
				}
			}
			<-time.After(5 * time.Millisecond)
			running.Add(-1)
			ran.Add(1)
			leave(dragoman.Result{Ran: dragoman.RanYes})
		})
	}
	each.Wait()
	if ran.Load() != 45 || peak.Load() > 3 {
		t.Errorf("%d ran, %d at a time", ran.Load(), peak.Load())
	}
	settled(all[:]...)
	// Whoever may not wait is refused while others have all, and admitted after.
	var leaves []func(dragoman.Result)
	for _, l := range all {
		leave, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
		if problem != nil {
			t.Fatal(problem)
		}
		leaves = append(leaves, leave)
	}
	if _, problem := all[0].Admit(t.Context(), Model(ada, "m")); problem == nil || problem.Code != dragoman.CodeRateLimited {
		t.Errorf("a fourth: %v", problem)
	}
	leaves[1](dragoman.Result{})
	settled(all[:]...)
	if leave, problem := all[0].Admit(t.Context(), tool(ada, "a", "x")); problem != nil {
		t.Error(problem)
	} else {
		leave(dragoman.Result{})
	}
	leaves[0](dragoman.Result{})
	// One that ends hands back what it has.
	if err := all[2].Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(all[:]...)
	var left int
	if err := all[0].store.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Row("SELECT count(*) FROM limit_slots", nil, &left)
	}); err != nil || left != 0 {
		t.Errorf("%d rows of slots are left, %v", left, err)
	}
}

// A call that began before there were slots gives its own back all the same.
func TestSharedSlotsAfterAReload(t *testing.T) {
	all := three(t, 0, Limit{Name: "turns", Calls: 100, Per: []string{"all"}})
	before, problem := all[0].Admit(t.Context(), tool(ada, "a", "x"))
	if problem != nil {
		t.Fatal(problem)
	}
	for _, l := range all {
		if err := l.Use(t.Context(), []Limit{{Name: "turns", Concurrent: 2, Per: []string{"all"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, problem := all[0].Admit(t.Context(), tool(ada, "a", "x")); problem != nil {
		t.Fatal(problem)
	}
	before(dragoman.Result{})
	settled(all[0])
	if _, problem := all[1].Admit(t.Context(), Model(ada, "m")); problem != nil {
		t.Errorf("one of two runs: %v", problem)
	}
}

// TestSharedSlotsOfTheDead: what ran in a replica that died may run for as long as a call
// does, and no longer.
func TestSharedSlotsOfTheDead(t *testing.T) {
	all := three(t, 300*time.Millisecond, Limit{Concurrent: 1})
	if _, problem := all[0].Admit(t.Context(), tool(ada, "a", "x")); problem != nil {
		t.Fatal(problem)
	}
	all[0].mu.Lock()
	all[0].closed = true // it says nothing more
	all[0].mu.Unlock()
	began := time.Now()
	if leave, problem := all[1].Admit(t.Context(), tool(ada, "a", "x")); problem != nil {
		t.Error(problem)
	} else {
		leave(dragoman.Result{})
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("after %s", took)
	}
}

// TestSharedSlotsRenewed: what runs for longer keeps its slot.
func TestSharedSlotsRenewed(t *testing.T) {
	all := three(t, 300*time.Millisecond, Limit{Concurrent: 1})
	leave, problem := all[0].Admit(t.Context(), tool(ada, "a", "x"))
	if problem != nil {
		t.Fatal(problem)
	}
	defer leave(dragoman.Result{})
	for began := time.Now(); time.Since(began) < time.Second; <-time.After(50 * time.Millisecond) {
		if _, problem := all[1].Admit(t.Context(), Model(ada, "m")); problem == nil {
			t.Fatalf("it was given to another after %s", time.Since(began))
		}
	}
}

// kept waits until what a replica used of the day is in the store.
func kept(t *testing.T, l *Limiter) {
	t.Helper()
	l.keep()
	if err := l.store.Write(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestSharedDays(t *testing.T) {
	all := three(t, 0, Limit{Calls: 10, Tokens: 100})
	admitted := 0
	for i := range 30 {
		n, _ := uses(t, all[i%3], tool(ada, "a", "x"), 1)
		admitted += n
		kept(t, all[i%3])
	}
	if admitted != 10 {
		t.Errorf("%d of 10 were admitted", admitted)
	}
	all[0].Tokens(bob, "m", 100)
	kept(t, all[0])
	if _, problem := all[1].Admit(t.Context(), Model(bob, "m")); problem == nil || problem.Code != dragoman.CodeBudget {
		t.Errorf("tokens that were used elsewhere: %v", problem)
	}
}

// TestSharedAgain: what was admitted before takes nothing more of a rate, at whichever
// replica it goes on.
func TestSharedAgain(t *testing.T) {
	all := three(t, 0, Limit{Name: "rate", Rate: "1/h"})
	u := tool(ada, "a", "x")
	if n, _ := uses(t, all[0], u, 1); n != 1 {
		t.Fatal("nothing is admitted")
	}
	again := u
	again.Again = true
	for i, l := range all {
		if n, problem := uses(t, l, again, 2); n != 2 {
			t.Errorf("again at replica %d: %v", i, problem)
		}
		if n, _ := uses(t, l, u, 1); n != 0 {
			t.Errorf("another use at replica %d is admitted", i)
		}
	}
}

// TestSharedAway: while the store is away each replica admits its share.
func TestSharedAway(t *testing.T) {
	all := three(t, 0, Limit{Name: "rate", Rate: "9/m", Of: []string{"a__*"}}, Limit{Name: "slots", Concurrent: 3, Of: []string{"b__*"}})
	for i, l := range all {
		if err := l.store.Close(); err != nil {
			t.Fatal(err)
		}
		if n, problem := uses(t, l, tool(ada, "a", "x"), 10); n != 3 || problem.Code != dragoman.CodeRateLimited || problem.RetryAfter < 15*time.Second {
			t.Errorf("replica %d: %d, %v", i, n, problem)
		}
		leave, problem := l.Admit(t.Context(), tool(ada, "b", "x"))
		if problem != nil {
			t.Errorf("replica %d: %v", i, problem)
		}
		if _, problem := l.Admit(t.Context(), Model(ada, "b__x")); problem != nil {
			t.Errorf("what no limit counts: %v", problem)
		}
		l.mu.Lock()
		var at held
		for _, each := range []string{"slots"} {
			c, _ := l.counters.Get(ada.ID, each)
			at = held{limit: &l.limits[1], counter: c}
		}
		if n := l.places(&at, time.Now()); n != 1 {
			t.Errorf("replica %d has %d slots", i, n)
		}
		l.mu.Unlock()
		leave(dragoman.Result{})
	}
}
