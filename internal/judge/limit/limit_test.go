package limit

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

var (
	ada = caller.Caller{ID: "key-1", Name: "ada"}
	bob = caller.Caller{ID: "key-2", Name: "bob"}
)

func tool(who caller.Caller, server, name string) Use {
	return Call(who, dragoman.Call{Tool: &dragoman.Tool{Server: server, Original: name}})
}

func made1(t testing.TB, limits ...Limit) *Limiter {
	t.Helper()
	l, err := New(t.Context(), Options{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// uses enters and leaves, and returns how many were admitted, and the last problem.
func uses(t testing.TB, l *Limiter, u Use, n int) (admitted int, last *dragoman.Problem) {
	t.Helper()
	for range n {
		leave, problem := l.Admit(t.Context(), u)
		leave(dragoman.Result{Ran: dragoman.RanYes})
		if problem != nil {
			last = problem
			continue
		}
		admitted++
	}
	return admitted, last
}

func TestNoLimits(t *testing.T) {
	if n, problem := uses(t, nil, tool(ada, "a", "x"), 1000); n != 1000 {
		t.Errorf("%d, %v", n, problem)
	}
	(*Limiter)(nil).Tokens(ada, "m", 1)
}

// TestEnterAgain: whether a call was admitted before is asked only where a rate counts it, and
// then it takes no place in that.
func TestEnterAgain(t *testing.T) {
	l := made1(t, Limit{Rate: "1/m", Of: []string{"a__*"}}, Limit{Calls: 100})
	for _, tt := range []struct {
		server       string
		again, asked bool
		admitted     bool
	}{
		{"a", true, true, true}, {"a", false, true, true}, {"a", false, true, false}, {"a", true, true, true},
		{"b", true, false, true},
	} {
		asked := false
		call := dragoman.Call{Tool: &dragoman.Tool{Server: tt.server, Original: "x"}}
		leave, problem := l.Enter(t.Context(), ada, &call, func() bool { asked = true; return tt.again })
		leave(dragoman.Result{Ran: dragoman.RanYes})
		if asked != tt.asked || (problem == nil) != tt.admitted {
			t.Errorf("%+v: asked %t, %v", tt, asked, problem)
		}
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := made1(t, Limit{Name: "slow", Rate: "6/m", Of: []string{"a__*"}}, Limit{Rate: "100/s", Burst: 1000})
		if n, problem := uses(t, l, tool(ada, "a", "x"), 10); n != 6 || problem.Code != dragoman.CodeRateLimited || problem.RetryAfter < 10*time.Second || problem.RetryAfter > 10*time.Second+2*time.Millisecond ||
			problem.Message != `The gateway's limit "slow" is 6 calls a minute. Try again in 11 seconds.` {
			t.Errorf("%d, %+v", n, problem)
		}
		if n, _ := uses(t, l, tool(bob, "a", "x"), 10); n != 6 {
			t.Errorf("%d calls of another caller", n)
		}
		if n, _ := uses(t, l, tool(ada, "b", "x"), 10); n != 10 {
			t.Errorf("%d calls of another server", n)
		}
		_, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
		time.Sleep(problem.RetryAfter) // what it says is true
		if n, _ := uses(t, l, tool(ada, "a", "x"), 10); n != 1 {
			t.Errorf("%d calls after the time it said", n)
		}
		time.Sleep(time.Hour)
		if n, _ := uses(t, l, tool(ada, "a", "x"), 100); n != 6 {
			t.Errorf("%d calls at once after an hour", n)
		}
	})
}

func TestPer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no midnight comes in between
		for _, tt := range []struct {
			per  []string
			want int // of 2 callers × 2 servers × 2 tools
		}{{nil, 2}, {[]string{}, 2}, {[]string{"caller"}, 2}, {[]string{"all"}, 1}, {[]string{"server"}, 2}, {[]string{"tool"}, 4}, {[]string{"caller", "server"}, 4}, {[]string{"caller", "tool"}, 8}} {
			l := made1(t, Limit{Per: tt.per, Calls: 1})
			admitted := 0
			for _, who := range []caller.Caller{ada, bob} {
				for _, server := range []string{"a", "b"} {
					for _, name := range []string{"x", "y"} {
						n, _ := uses(t, l, tool(who, server, name), 3)
						admitted += n
					}
				}
			}
			if admitted != tt.want {
				t.Errorf("per %v: %d", tt.per, admitted)
			}
		}
	})
}

func TestWhom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no midnight comes in between
		l := made1(t, Limit{Caller: []string{"ad?", "local"}, Of: []string{"model:gpt-*", "route:/v1/files*"}, Calls: 1})
		for _, tt := range []struct {
			u    Use
			want int
		}{
			{Model(ada, "gpt-5"), 1}, {Route(ada, "/v1/files"), 0}, {Model(caller.Local, "gpt-5"), 1}, {Model(ada, "o3"), 5}, {tool(ada, "a", "x"), 5}, {Model(bob, "gpt-5"), 5},
			{Model(caller.Caller{ID: "https://login#ada", Name: "ada", Issuer: "https://login"}, "gpt-5"), 5}, // a name that people choose
		} {
			if n, _ := uses(t, l, tt.u, 5); n != tt.want {
				t.Errorf("%+v: %d", tt.u, n)
			}
		}
	})
}

// TestSpellingsOfRoutes: a route is limited however its path is spelled.
func TestSpellingsOfRoutes(t *testing.T) {
	for _, per := range [][]string{nil, {"tool"}} {
		l := made1(t, Limit{Of: []string{"route:/v1/Files/", "route:/v1/uploads/*"}, Per: per, Rate: "1/h"})
		for _, paths := range [][]string{{"/v1/files", "/v1/files/", "/v1/Files", "/v1/FILES//"}, {"/v1/uploads/a", "/V1/uploads/A/"}} {
			admitted := 0
			for _, path := range paths {
				n, _ := uses(t, l, Route(ada, path), 1)
				admitted += n
			}
			if per != nil && admitted != 1 || admitted > 1 {
				t.Errorf("per %v, %q: %d", per, paths, admitted)
			}
		}
		if n, _ := uses(t, l, Route(ada, "/v1/files-2"), 2); n != 2 {
			t.Errorf("per %v: another route: %d", per, n)
		}
	}
}

func TestDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC, 2000-01-01
		time.Sleep(22 * time.Hour)
		l := made1(t, Limit{Calls: 3, Tokens: 1000})
		if n, problem := uses(t, l, tool(ada, "a", "x"), 5); n != 3 || problem.Code != dragoman.CodeBudget || problem.RetryAfter != 2*time.Hour || !strings.Contains(problem.Message, "3 calls a day") {
			t.Errorf("%d, %+v", n, problem)
		}
		l.Tokens(bob, "gpt-5", 400)
		l.Tokens(bob, "gpt-5", 700)
		l.Tokens(bob, "gpt-5", -5000)
		if n, problem := uses(t, l, Model(bob, "gpt-5"), 1); n != 0 || !strings.Contains(problem.Message, "1000 tokens a day") {
			t.Errorf("%d, %+v", n, problem)
		}
		for range 4 { // no sum goes around
			l.Tokens(bob, "gpt-5", math.MaxInt64)
		}
		if n, _ := uses(t, l, Model(bob, "gpt-5"), 1); n != 0 {
			t.Error("more tokens than can be counted are none")
		}
		if n, _ := uses(t, l, tool(bob, "a", "x"), 1); n != 1 {
			t.Error("tokens of models keep tools from running")
		}
		// What did not run is not counted.
		for range 10 {
			leave, problem := l.Admit(t.Context(), tool(caller.Local, "a", "x"))
			if problem != nil {
				t.Fatal(problem)
			}
			leave(dragoman.Result{Ran: dragoman.RanNot})
			leave(dragoman.Result{Ran: dragoman.RanNot}) // once is enough
		}
		if n, _ := uses(t, l, tool(caller.Local, "a", "x"), 5); n != 3 {
			t.Errorf("%d calls after ten that did not run", n)
		}
		late, _ := l.Admit(t.Context(), tool(caller.Caller{ID: "late"}, "a", "x"))
		time.Sleep(2 * time.Hour)
		late(dragoman.Result{Ran: dragoman.RanNot}) // a call of yesterday is none of today's
		if n, _ := uses(t, l, tool(caller.Caller{ID: "late"}, "a", "x"), 5); n != 3 {
			t.Errorf("%d calls of who was late", n)
		}
		if n, _ := uses(t, l, Model(bob, "gpt-5"), 1); n != 1 {
			t.Error("a new day does not begin anew")
		}
	})
}

func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := made1(t, Limit{Name: "two", Concurrent: 2}, Limit{Per: []string{"tool"}, Concurrent: 1, Of: []string{"a__single"}})
		var running, most atomic.Int32
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				leave, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
				if problem != nil {
					t.Error(problem)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				running.Add(-1)
				leave(dragoman.Result{})
			})
		}
		wg.Wait()
		if most.Load() != 2 || fmt.Sprint(order) != "[0 1 2 3 4 5 6 7]" {
			t.Errorf("%d at a time, in the order %v", most.Load(), order)
		}

		// A model does not wait, and a tool not for ever.
		one, _ := l.Admit(t.Context(), tool(ada, "a", "x"))
		two, _ := l.Admit(t.Context(), tool(ada, "a", "x"))
		if _, problem := l.Admit(t.Context(), Model(ada, "m")); problem == nil || problem.RetryAfter != time.Second || !strings.Contains(problem.Message, `"two" is 2 at a time`) {
			t.Errorf("%+v", problem)
		}
		begin := time.Now()
		if _, problem := l.Admit(t.Context(), tool(ada, "a", "x")); problem == nil || problem.Code != dragoman.CodeRateLimited || time.Since(begin) != maxWait {
			t.Errorf("%+v after %s", problem, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, problem := l.Admit(ctx, tool(ada, "a", "x")); problem == nil || problem.Code != dragoman.CodeCanceled {
			t.Errorf("%+v", problem)
		}
		if n, _ := uses(t, l, tool(bob, "a", "x"), 1); n != 1 {
			t.Error("one caller holds up another")
		}

		// One who waits for two things lets others pass meanwhile.
		single, _ := l.Admit(t.Context(), tool(bob, "a", "single"))
		one(dragoman.Result{})
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			leave, problem := l.Admit(t.Context(), tool(ada, "a", "single"))
			if problem != nil {
				t.Error(problem)
			}
			leave(dragoman.Result{})
		}()
		synctest.Wait()
		if n, problem := uses(t, l, tool(ada, "a", "x"), 3); n != 3 {
			t.Errorf("%d, %v: a slot is held by one who waits for another", n, problem)
		}
		two(dragoman.Result{})
		single(dragoman.Result{})
		<-waited
		for _, u := range []Use{tool(ada, "a", "x"), tool(bob, "a", "single")} {
			owner, key := l.limits[0].key(&u)
			if c, _ := l.counters.Get(owner, key); c.running != 0 || len(c.waiting) != 0 {
				t.Errorf("%d run and %d wait in the end", c.running, len(c.waiting))
			}
		}
	})
}

// Callers who give up lose nobody's turn, whatever happens at the same time.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := made1(t, Limit{Concurrent: 3, Per: []string{"all"}}, Limit{Concurrent: 2, Per: []string{"server"}})
		var wg sync.WaitGroup
		var admitted atomic.Int32
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i*7%100) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*300*time.Millisecond+time.Millisecond)
				defer cancel()
				leave, problem := l.Admit(ctx, tool(ada, []string{"a", "b", "c"}[i%3], "x"))
				if problem == nil {
					admitted.Add(1)
					time.Sleep(time.Duration(10+i%4*10) * time.Millisecond)
				}
				leave(dragoman.Result{})
			})
		}
		wg.Wait()
		for i := range l.limits {
			for _, server := range []string{"a", "b", "c"} {
				u := tool(ada, server, "x")
				owner, key := l.limits[i].key(&u)
				if c, ok := l.counters.Get(owner, key); ok && (c.running != 0 || len(c.waiting) != 0) {
					t.Errorf("%s: %d run and %d wait in the end", key, c.running, len(c.waiting))
				}
			}
		}
		if n := admitted.Load(); n < 100 {
			t.Errorf("%d were admitted", n)
		}
	})
}

func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no midnight comes in between
		l := made1(t, Limit{Rate: "1/h", Per: []string{"caller", "tool"}})
		l.counters.Bytes = 1 << 18
		for i := range 800 {
			l.Admit(t.Context(), Model(ada, fmt.Sprint(i)))
		}
		if _, bytes := l.counters.Held(); bytes > 1<<18 {
			t.Errorf("%d bytes are kept", bytes)
		}
		// The one who asked for so much lost counts, and nobody else.
		l.Admit(t.Context(), tool(bob, "a", "x"))
		for i := range 800 {
			l.Admit(t.Context(), Model(ada, fmt.Sprint("again", i)))
		}
		if _, problem := l.Admit(t.Context(), tool(bob, "a", "x")); problem == nil {
			t.Error("bob's count is gone")
		}

		full := made1(t, Limit{Calls: 1, Per: []string{"tool"}})
		for i := range maxUsages {
			full.days.used[strconv.Itoa(i)] = nil
		}
		if _, problem := full.Admit(t.Context(), tool(ada, "a", "x")); problem == nil || problem.RetryAfter <= 0 {
			t.Errorf("a count too many: %+v", problem)
		}

		// Nobody uses up the counts of others, whatever they make up.
		made := made1(t, Limit{Calls: 5, Per: []string{"tool"}})
		for i := range maxUsages {
			if _, last := made.Admit(t.Context(), Model(ada, strconv.Itoa(i))); last != nil {
				break
			}
		}
		if n, problem := uses(t, made, tool(bob, "a", "x"), 1); n != 1 {
			t.Errorf("ada has used what she could think of, and bob is refused: %v", problem)
		}
		if n, problem := uses(t, made, Model(ada, "0"), 5); n != 4 || problem.Code != dragoman.CodeBudget {
			t.Errorf("what was counted goes on: %d, %v", n, problem)
		}
		time.Sleep(24 * time.Hour)
		if n, problem := uses(t, made, Model(ada, "another"), 1); n != 1 {
			t.Errorf("the next day: %v", problem)
		}
	})
}

func TestRefused(t *testing.T) {
	for want, l := range map[string]Limit{
		"limits nothing":        {},
		`"github" matches`:      {Of: []string{"github"}, Calls: 1},
		`"day" is none of`:      {Per: []string{"day"}, Calls: 1},
		"stands alone":          {Per: []string{"all", "tool"}, Calls: 1},
		`"5" is no rate`:        {Rate: "5"},
		`"0/s" is no rate`:      {Rate: "0/s"},
		`"5/d" is no rate`:      {Rate: "5/d"},
		"nothing to burst":      {Burst: 5},
		"a limit below nothing": {Calls: -1},
	} {
		if _, err := New(t.Context(), Options{Limits: []Limit{l}}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "limits[0]: ") {
			t.Errorf("%+v: %v, want %q", l, err, want)
		}
	}
}

func BenchmarkEnter(b *testing.B) {
	l := made1(b, Limit{Rate: "1000000/s"}, Limit{Per: []string{"caller", "tool"}, Concurrent: 100}, Limit{Of: []string{"a__*"}, Calls: 1_000_000_000})
	u := tool(ada, "a", "x")
	b.ReportAllocs()
	for b.Loop() {
		leave, problem := l.Admit(b.Context(), u)
		if problem != nil {
			b.Fatal(problem)
		}
		leave(dragoman.Result{Ran: dragoman.RanYes})
	}
}

// Other limits hold at once: also for those who wait for their turn, and with what was
// counted under a name before.
func TestUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Limit{Name: "turns", Concurrent: 1}
		l := made1(t, one)
		use := func(limits ...Limit) {
			t.Helper()
			if err := l.Use(t.Context(), limits); err != nil {
				t.Fatal(err)
			}
		}
		leave, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
		if problem != nil {
			t.Fatal(problem)
		}
		admitted := make(chan func(dragoman.Result), 1)
		go func() {
			second, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
			if problem != nil {
				t.Errorf("who waited: %v", problem)
			}
			admitted <- second
		}()
		synctest.Wait()
		use(one, Limit{Name: "other", Rate: "100/s"})
		synctest.Wait()
		if len(admitted) != 0 || len(l.waiting) != 1 {
			t.Errorf("another limit came, and %d were admitted; they wait at %d counters", len(admitted), len(l.waiting))
		}
		use(Limit{Name: "turns", Concurrent: 2})
		synctest.Wait()
		if len(admitted) != 1 {
			t.Fatal("there is room for two, and one waits")
		}
		leave(dragoman.Result{})
		(<-admitted)(dragoman.Result{})
		if len(l.waiting) != 0 {
			t.Errorf("%d counters are kept at which nobody waits", len(l.waiting))
		}

		// What began while as many as liked, or fewer than now, could run makes room all the same.
		for _, before := range []Limit{{Name: "turns", Calls: 100}, one} {
			use(before)
			first, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
			if problem != nil {
				t.Fatal(problem)
			}
			use(Limit{Name: "turns", Concurrent: 2})
			second, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
			if problem != nil {
				t.Fatal(problem)
			}
			go func() {
				third, problem := l.Admit(t.Context(), tool(ada, "a", "x"))
				if problem != nil {
					t.Errorf("who waited: %v", problem)
				}
				admitted <- third
			}()
			synctest.Wait()
			first(dragoman.Result{})
			synctest.Wait()
			if len(admitted) != 1 {
				t.Errorf("one of two has ended, which began under %+v, and one waits", before)
			}
			second(dragoman.Result{})
			(<-admitted)(dragoman.Result{})
		}

		use(Limit{Name: "turns", Concurrent: 2, Rate: "1/h", Burst: 3})
		if n, _ := uses(t, l, tool(ada, "a", "x"), 5); n != 3 {
			t.Errorf("%d calls at once under a rate that has just come, of 3", n)
		}

		day := Limit{Name: "day", Calls: 5}
		use(day)
		uses(t, l, tool(ada, "a", "x"), 4)
		day.Calls, day.Caller = 6, nil
		use(Limit{Name: "rate", Rate: "1/h"}, day)
		if n, _ := uses(t, l, tool(ada, "a", "x"), 5); n != 1 {
			t.Errorf("%d calls in an hour", n)
		}
		use(Limit{Name: "rate", Rate: "1/s", Burst: 9}, day)
		time.Sleep(9 * time.Second)
		if n, problem := uses(t, l, tool(ada, "a", "x"), 5); n != 1 || problem.Code != dragoman.CodeBudget {
			t.Errorf("%d calls more, %v: four were made before the limit was another, and one after", n, problem)
		}
		before := l.all()
		if err := l.Use(t.Context(), []Limit{{}}); err == nil || len(l.all()) != len(before) {
			t.Errorf("a limit that limits nothing: %v", err)
		}
	})
}
