package servers

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

var echo = []fakemcp.Tool{{Name: "echo"}}

func TestServersDoNotWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transports := map[string]func(context.Context) mcp.Transport{}
		for i := range 20 {
			fake := fakemcp.Config{Tools: echo}
			if i%4 == 0 {
				fake.Faults = []fakemcp.Fault{{Kind: fakemcp.Hang}}
			}
			transports[fmt.Sprintf("s%02d", i)] = piped(fakemcp.New(fake))
		}
		start := time.Now()
		s := open(t, nil, Options{Builtin: transports})
		if s.Ready() {
			t.Error("ready before anything happened")
		}
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := s.Settle(soon); err != context.DeadlineExceeded {
			t.Errorf("Settle = %v while some servers hang", err)
		}
		if err := s.Settle(soon, "nobody"); err != nil {
			t.Errorf("waited for a server that nobody configured: %v", err)
		}
		first := listed(t, s).Tools
		tools := first.All()
		if len(tools) != 15 {
			t.Fatalf("%d tools; want 15", len(tools))
		}
		if took := time.Since(start); took != 500*time.Millisecond {
			t.Errorf("the first list took %s", took)
		}
		if !s.Ready() {
			t.Error("not ready after the grace period")
		}
		if tools[0].Server != "s01" || tools[14].Server != "s19" {
			t.Errorf("from %s to %s: not sorted", tools[0].Server, tools[14].Server)
		}
		before := time.Now()
		if err := s.Settle(t.Context(), "s01", "s19"); err != nil || listed(t, s).Tools != first || time.Since(before) != 0 {
			t.Errorf("the second list is another one, or took %s", time.Since(before))
		}
		settle(t, s)
		if took := time.Since(start); took != DefaultStartupTimeout {
			t.Errorf("the servers settled after %s", took)
		}
		for _, state := range servers(t, s) {
			want := dragoman.Connected
			if state.Label == "s00" || state.Label == "s04" || state.Label == "s08" || state.Label == "s12" || state.Label == "s16" {
				want = dragoman.Failed
			}
			if state.State != want || want == dragoman.Failed && !strings.Contains(state.Problem.Message, "did not finish starting in time (30s)") {
				t.Errorf("%s is %s: %v", state.Label, state.State, state.Problem)
			}
		}
		if listed(t, s).Tools != first {
			t.Error("servers without tools that fail make a new list")
		}
	})
}

func TestReadyBeforeTheGraceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil, builtin(piped(fakemcp.New(fakemcp.Config{Tools: echo}))))
		synctest.Wait()
		if !s.Ready() {
			t.Error("not ready though every server has listed its tools")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil, Options{})
		if n := listed(t, s).Tools.Len(); !s.Ready() || n != 0 {
			t.Errorf("a set without servers: ready %v, %d tools", s.Ready(), n)
		}
	})
}

func TestSettleEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, nil, builtin(piped(fakemcp.New(fakemcp.Config{Faults: []fakemcp.Fault{{Kind: fakemcp.Hang}}}))))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := s.Settle(ctx); err != context.DeadlineExceeded || time.Since(start) != time.Millisecond {
			t.Errorf("Settle = %v after %s", err, time.Since(start))
		}
	})
}

// died is a transport to a server that is gone before it is reached. It keeps the
// times of the attempts.
type died struct {
	mu    sync.Mutex
	times []time.Time
	good  map[int]*fakemcp.Server // attempts that reach a server after all
}

func (d *died) connect(ctx context.Context) mcp.Transport {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times = append(d.times, time.Now())
	if fake := d.good[len(d.times)]; fake != nil {
		r, w := fake.Pipe(ctx)
		return &mcp.Pipe{Reader: r, Writer: w}
	}
	r, _ := io.Pipe()
	_, w := io.Pipe()
	r.Close()
	w.Close()
	return &mcp.Pipe{Reader: r, Writer: w}
}

// cutBy connects like connect, and ends each session with ctx.
func (d *died) cutBy(ctx context.Context) func(context.Context) mcp.Transport {
	var once sync.Once
	return func(session context.Context) mcp.Transport {
		once.Do(func() { // later sessions last
			var end context.CancelFunc
			session, end = context.WithCancel(session)
			context.AfterFunc(ctx, end)
		})
		return d.connect(session)
	}
}

// pauses returns the time between the attempts.
func (d *died) pauses() (pauses []time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := 1; i < len(d.times); i++ {
		pauses = append(pauses, d.times[i].Sub(d.times[i-1]))
	}
	return pauses
}

func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &died{}
		s := open(t, nil, builtin(d.connect))
		settle(t, s)
		time.Sleep(10 * time.Minute)
		since := state(s).Since
		for i, pause := range d.pauses() {
			least := min(250*time.Millisecond<<min(i, 8), maxPause)
			if pause < least || pause > least*5/4 {
				t.Errorf("pause %d was %s, want %s and up to a quarter more", i+1, pause, least)
			}
		}
		if n := len(d.pauses()); n < 45 || n > 55 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		if !since.Equal(d.times[0]) {
			t.Errorf("failed since %s, want since the first failure at %s", since, d.times[0])
		}
		if st := state(s); st.State != dragoman.Failed || st.Problem == nil || !st.Retry.After(time.Now()) {
			t.Errorf("state %+v", st)
		}
	})
}

// A server that stayed up is started at once when it ends; one that comes and
// goes is not, though it connects each time.
func TestBackOffAfterConnections(t *testing.T) {
	for _, tt := range []struct {
		name  string
		up    time.Duration
		least time.Duration // of the pause after the sixth failure
	}{{"comes and goes", time.Second, 8 * time.Second}, {"stayed up", 2 * time.Minute, 250 * time.Millisecond}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakemcp.New(fakemcp.Config{Tools: echo})
				d := &died{good: map[int]*fakemcp.Server{6: fake}}
				ctx, cut := context.WithCancel(t.Context())
				s := open(t, nil, builtin(func(session context.Context) mcp.Transport {
					session, end := context.WithCancel(session)
					context.AfterFunc(ctx, end)
					return d.connect(session)
				}))
				for state(s).State != dragoman.Connected {
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(tt.up)
				cut()
				synctest.Wait()
				if st := state(s); st.State != dragoman.Failed {
					t.Fatalf("state %+v", st)
				}
				if pause := time.Until(state(s).Retry); pause < tt.least || pause > tt.least*5/4 {
					t.Errorf("tried again in %s, want %s and up to a quarter more", pause, tt.least)
				}
			})
		})
	}
}

func TestStatesOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dies := fakemcp.New(fakemcp.Config{Tools: echo, Era: fakemcp.LegacyOnly, Faults: []fakemcp.Fault{{Kind: fakemcp.DieOnCall}}})
		stays := fakemcp.New(fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.InvalidEntries}}})
		looked, pipe := make(chan struct{}), piped(dies, stays)
		s := New(nil, builtin(func(ctx context.Context) mcp.Transport {
			<-looked // it may be there at once
			return pipe(ctx)
		}))
		if st := state(s); st.State != dragoman.Starting || st.Label != "it" {
			t.Errorf("at first: %+v", st)
		}
		close(looked)
		settle(t, s)
		st := state(s)
		if st.State != dragoman.Connected || st.Era != "legacy" || st.Version != fakemcp.Legacy || st.Tools != 1 || st.Quarantined != 0 {
			t.Errorf("then: %+v", st)
		}
		if outcome, _ := try(t, s, "echo"); outcome != dragoman.CodeUnknownOutcome {
			t.Errorf("the call came to %s", outcome)
		}
		synctest.Wait()
		if st = state(s); st.State != dragoman.Failed || st.Problem == nil || st.Retry.IsZero() || st.Tools != 1 {
			t.Errorf("after its death: %+v", st)
		}
		if n := len(list(t, s)); n != 1 {
			t.Errorf("%d tools of a server that is coming back", n)
		}
		time.Sleep(time.Second)
		if st = state(s); st.State != dragoman.Connected || st.Era != "legacy" || st.Problem != nil || !st.Retry.IsZero() || st.Quarantined == 0 {
			t.Errorf("after its return: %+v", st)
		}
		since := st.Since
		time.Sleep(time.Second)
		stays.SetTools(echo)
		time.Sleep(time.Second)
		if st = state(s); !st.Since.Equal(since) {
			t.Errorf("a new list changed the beginning of the phase from %s to %s", since, st.Since)
		}
		tool := list(t, s)["echo"]
		s.Close()
		if st = state(s); st.State != dragoman.Stopped || len(list(t, s)) != 0 {
			t.Errorf("at last: %+v", st)
		}
		before := time.Now()
		res, err := s.Call(t.Context(), dragoman.Call{Tool: tool})
		if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable || time.Since(before) != 0 {
			t.Errorf("a call of a stopped server: %+v, %v after %s", res.Problem, err, time.Since(before))
		}
	})
}

func TestListChanges(t *testing.T) {
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakemcp.New(fakemcp.Config{Era: era, Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.ListChanged, Times: 1}}})
				s := open(t, nil, builtin(piped(fake)))
				settle(t, s)
				synctest.Wait()
				old := list(t, s)
				if outcome, _ := try(t, s, "echo"); outcome != "ok" || old["added"] != nil {
					t.Fatalf("the call came to %s, tools %v", outcome, old)
				}
				synctest.Wait()
				changed := list(t, s)
				if changed["added"] == nil || changed["echo"].Description == old["echo"].Description {
					t.Errorf("the list is still %v", changed)
				}
				// A server that never stops saying so is not listed all the time, and
				// the last word counts.
				before := fake.Count("tools/list")
				for i := range 1000 {
					fake.SetTools([]fakemcp.Tool{{Name: fmt.Sprintf("tool_%d", i)}})
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(2 * time.Second)
				if n := fake.Count("tools/list") - before; n > 12 {
					t.Errorf("listed %d times in 10 s", n)
				}
				if tools := list(t, s); len(tools) != 1 || tools["tool_999"] == nil {
					t.Errorf("the last list is %v", tools)
				}
			})
		})
	}
}

// The old list stays when listing again fails.
func TestListingAgainFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakemcp.New(fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.RepeatCursor, After: 1}}})
		s := open(t, nil, builtin(piped(fake)))
		settle(t, s)
		synctest.Wait()
		fake.SetTools([]fakemcp.Tool{{Name: "other"}})
		time.Sleep(time.Second)
		if fake.Count("tools/list") < 2 {
			t.Fatal("not listed again")
		}
		if tools := list(t, s); tools["echo"] == nil || tools["other"] != nil || state(s).State != dragoman.Connected {
			t.Errorf("tools %v, state %+v", tools, state(s))
		}
	})
}

func TestOddLists(t *testing.T) {
	tests := []struct {
		name        string
		fake        fakemcp.Config
		tools       int
		quarantined int
		problem     string
	}{
		{"none", fakemcp.Config{}, 0, 0, ""},
		{"10,000 tools", fakemcp.Config{Count: 10_000, PageSize: 100}, 10_000, 0, ""},
		{"a cursor again and again", fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.RepeatCursor}}}, 0, 0, "cursor"},
		{"endless cursors", fakemcp.Config{Faults: []fakemcp.Fault{{Kind: fakemcp.EndlessCursors}}}, 0, 0, "pages"},
		{"equal names", fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.EqualNames}}}, 1, 1, ""},
		{"things that are no tools", fakemcp.Config{Tools: echo, Faults: []fakemcp.Fault{{Kind: fakemcp.InvalidEntries}}}, 3, 6, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := piped(fakemcp.New(fakemcp.Config{Tools: echo}))
				s := open(t, nil, Options{Builtin: map[string]func(context.Context) mcp.Transport{
					"it": piped(fakemcp.New(tt.fake)), "good": good,
				}})
				settle(t, s)
				st := state(s)
				if tt.problem != "" {
					if st.State != dragoman.Failed || !strings.Contains(st.Problem.Message, tt.problem) {
						t.Errorf("state %+v, problem %v", st, st.Problem)
					}
				} else if st.State != dragoman.Connected || st.Tools != tt.tools || st.Quarantined != tt.quarantined {
					t.Errorf("state %+v, want %d tools and %d in quarantine", st, tt.tools, tt.quarantined)
				}
				named, err := catalog.New(s, catalog.Config{}).List(t.Context())
				if err != nil || named.Tools.Len() != 1+tt.tools+tt.quarantined {
					t.Fatalf("%d named tools, %v", named.Tools.Len(), err)
				}
				seen := map[string]bool{}
				for _, tool := range named.Tools.All() {
					if seen[tool.Name] {
						t.Errorf("two tools are named %s", tool.Name)
					}
					seen[tool.Name] = true
				}
				if !seen["good__echo"] {
					t.Error("the good server's tool is missing")
				}
			})
		})
	}
}

func TestFiltersAndEffects(t *testing.T) {
	fake := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "get_a"}, {Name: "get_b"}, {Name: "set_a"}, {Name: "drop"}}})
	s := openOne(t, Config{
		URL:     web(t, fake),
		Tools:   Filter{Include: []string{"?et_*"}, Exclude: []string{"*_b"}},
		Effects: Effects{ReadOnly: []string{"get_*"}, Idempotent: []string{"set_*"}},
	}, Options{})
	got := map[string]string{}
	for name, tool := range list(t, s) {
		got[name] = tool.Server + " " + tool.Effect().String()
	}
	if diff := cmp.Diff(map[string]string{"get_a": "it read_only", "set_a": "it idempotent"}, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestDisabledServersAreNotThere(t *testing.T) {
	s := open(t, map[string]Config{"off": {Command: "/nowhere", Disabled: true}}, Options{})
	settle(t, s)
	if states := servers(t, s); len(states) != 0 {
		t.Errorf("states %v", states)
	}
	res, err := s.Call(t.Context(), dragoman.Call{Tool: &dragoman.Tool{Server: "off", Original: "a"}})
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeServerUnavailable {
		t.Errorf("calling it: %+v, %v", res.Problem, err)
	}
	if res, err := s.Call(t.Context(), dragoman.Call{}); err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownTool {
		t.Errorf("calling nothing: %+v, %v", res.Problem, err)
	}
}

// A server of both eras is spoken to in the one that the configuration says; one that has no
// other in the one that it has.
func TestEras(t *testing.T) {
	for _, tt := range []struct {
		name               string
		fake               fakemcp.Era
		config             Era
		probed, initialize int
	}{
		{"both", "", "", 1, 0},
		{"both, auto", "", AutoEra, 1, 0},
		{"both, legacy", "", LegacyEra, 0, 1},
		{"modern alone, legacy", fakemcp.ModernOnly, LegacyEra, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake := fakemcp.New(fakemcp.Config{Era: tt.fake, Tools: echo})
			s := openOne(t, Config{URL: web(t, fake), Transport: StreamableHTTP, Era: tt.config}, Options{})
			if outcome, res := try(t, s, "echo"); outcome != "ok" {
				t.Errorf("the call came to %s (%v)", outcome, res.Problem)
			}
			if probed, greeted := fake.Count("server/discover"), fake.Count("initialize"); probed != tt.probed || greeted != tt.initialize {
				t.Errorf("probed %d times and greeted %d times, want %d and %d", probed, greeted, tt.probed, tt.initialize)
			}
		})
	}
}
