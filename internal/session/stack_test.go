package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// The tests of this file are about the whole stack, as a door gets it.

// A counting server runs what it is told, keeps nothing between legs, believes every
// state, and counts.
type counting struct {
	mu   sync.Mutex
	list *dragoman.List
	ran  map[string]int // by caller, tool and arguments
	fail func() bool    // whether a call does not run this time, and says so
}

func newCounting(names ...string) *counting {
	var tools []dragoman.Tool
	for _, name := range names {
		server, original, _ := strings.Cut(name, "__")
		definition := json.RawMessage(`{"name":"` + original + `","inputSchema":{"type":"object"}}`)
		tools = append(tools, dragoman.Tool{
			Name: name, Server: server, Original: original, Definition: definition, InputSchema: json.RawMessage(`{"type":"object"}`),
			Pin: dragoman.Pin(server, original, definition),
		})
	}
	return &counting{list: &dragoman.List{Tools: dragoman.NewTools(tools)}, ran: map[string]int{}, fail: func() bool { return false }}
}

// of is the server as a caller has it.
func (s *counting) of(o servers.Owner) dragoman.Toolset { return countingFor{s, o.Caller} }

type countingFor struct {
	*counting
	caller string
}

func (s countingFor) List(context.Context) (*dragoman.List, error) { return s.list, nil }

func (s countingFor) Call(_ context.Context, call dragoman.Call) (dragoman.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case call.Answers != nil && call.Answers.Gone:
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeCanceled}}, nil
	case s.fail():
		return dragoman.Result{Ran: dragoman.RanNot.After(call.Answers), Problem: &dragoman.Problem{Code: dragoman.CodeServerUnavailable}}, nil
	case strings.HasPrefix(call.Tool.Original, "ask") && call.Answers == nil:
		return dragoman.Result{Asks: &dragoman.Asks{State: []byte("state of the server"), Questions: []dragoman.Question{{Key: "q", Kind: dragoman.AskForm, Server: call.Tool.Server}}}}, nil
	}
	s.ran[s.caller+" "+call.Tool.Name+" "+string(call.Arguments)]++
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[]}`)}, nil
}

// kept is a ledger in memory.
func kept(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Config{Store: store.Config{Path: store.Memory}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// stacked is an opener over a server, with rules, and with a ledger where there is one.
func stacked(t *testing.T, s *counting, sets map[string]catalog.Selection, l *ledger.Ledger, rules ...policy.Rule) *Opener {
	t.Helper()
	p, err := policy.New(policy.Config{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	parts := gate.Options{Policy: p}
	if l != nil {
		parts.Inbox, parts.Audit = l.Inbox, l.Audit
	}
	return New(Options{
		Tools: s.of, Owner: func(o servers.Owner) servers.Owner { return o }, Servers: map[string]bool{"a": true, "b": true}, Sets: sets,
		Dialects: dialect.Builtin(), Gate: gate.New(parts),
	})
}

// TestNothingRunsUnasked: whatever callers send, in whatever order, with states of
// their own, of others and of nobody, answers that nobody gave and legs that they
// repeat, a call that has to be approved runs only if exactly one approval was spent
// for it, and one that is denied never.
func TestNothingRunsUnasked(t *testing.T) {
	runs, steps := 15, 80
	if testing.Short() {
		runs = 3
	}
	total, l := map[string]int{}, kept(t)
	little := func() bool {
		return total["ran"] == 0 || total["asked"] == 0 || total[dragoman.CodeUnknownOutcome] == 0 || total[dragoman.CodeDenied] == 0
	}
	seed := 0
	for ; seed < runs || little() && seed < 4*runs; seed++ { // what goes on at once falls out as it likes
		s := newCounting("a__write", "a__ask_first", "b__never")
		o := stacked(t, s, nil, l,
			policy.Rule{Allow: []string{"*"}}, policy.Rule{Name: "writes", Ask: []string{"a__*"}}, policy.Rule{Deny: []string{"b__never"}},
			policy.Rule{Name: "tainted", Ask: []string{"a__write"}, Approvers: []string{"olga"}, When: policy.When{Tainted: true}})
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		s.fail = func() bool { return random.IntN(8) == 0 } // under the server's lock, and so is every other use by its callers
		chance := rand.New(rand.NewPCG(uint64(seed), 8))
		callers := []string{fmt.Sprint("ann ", seed), fmt.Sprint("bob ", seed)}
		stacks := map[string]dragoman.Toolset{}
		for _, id := range callers {
			opened, err := o.Open(t.Context(), caller.Caller{ID: id, Grants: []string{"*"}}, Want{Client: true, NoTools: true})
			if err != nil {
				t.Fatal(err)
			}
			stacks[id] = opened.Tools
		}
		var mu sync.Mutex
		states := [][]byte{nil, []byte("b\x00\x00state of the server"), []byte("forged")}
		type leg struct {
			id   string
			call dragoman.Call
		}
		var legs []leg // with states that are good for them
		pick := func(n int) int { return chance.IntN(n) }
		next := func() (id string, call dragoman.Call) {
			if len(legs) > 0 && pick(2) == 0 {
				l := legs[max(0, len(legs)-1-pick(10))]
				return l.id, l.call
			}
			if len(legs) > 0 && pick(2) == 0 { // the same call, begun anew: it may be approved by now
				l := legs[len(legs)-1]
				l.call.Answers = nil
				return l.id, l.call
			}
			id = callers[pick(2)]
			tool := &s.list.Tools.All()[min(pick(6)/2, 2)]
			call = dragoman.Call{ID: fmt.Sprint("call ", pick(3)), Tool: tool, Can: dragoman.AskForm, Arguments: json.RawMessage([]string{`{"n":1}`, `{"n":2}`}[pick(2)])}
			if pick(3) == 0 {
				return id, call
			}
			state := bytes.Clone(states[pick(len(states))])
			if len(state) > 0 && pick(6) == 0 {
				state[pick(len(state))] ^= 1 << pick(8)
			}
			call.Answers = &dragoman.Answers{State: state, Ran: dragoman.Ran(pick(3)), Gone: pick(12) == 0, Replies: map[string]json.RawMessage{
				"q": json.RawMessage(`{"action":"accept"}`), gate.QuestionKey: json.RawMessage(`{"action":"accept","content":{"decision":"approve"}}`),
			}}
			return id, call
		}
		send := func(id string, call dragoman.Call) {
			res, err := stacks[id].Call(t.Context(), call)
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case res.Asks != nil:
				states = append(states, res.Asks.State)
				call.Answers = &dragoman.Answers{State: res.Asks.State}
				legs = append(legs, leg{id, call})
				total["asked"]++
			case res.Problem != nil:
				total[res.Problem.Code]++
			default:
				total["ran"]++
			}
		}
		for range steps {
			switch pick(4) {
			case 0: // somebody answers, or tries to
				pending, err := l.Inbox.List(t.Context(), approval.Filter{State: approval.Pending, Caller: callers[pick(2)]})
				if err != nil {
					t.Fatal(err)
				}
				if len(pending) == 0 {
					continue
				}
				x := pending[pick(len(pending))]
				by := approval.Person{ID: []string{"terminal:olga", "terminal:olga", "terminal:otto", x.Caller}[pick(4)]}
				by.Name = strings.TrimPrefix(by.ID, "terminal:")
				if pick(5) == 0 {
					_, _ = l.Inbox.Deny(t.Context(), x.ID, by, "")
				} else if _, err := l.Inbox.Approve(t.Context(), x.ID, by); err == nil && by.ID == x.Caller {
					t.Fatalf("seed %d: %s approved their own call", seed, by.ID)
				}
			case 1: // many at once, all the same
				id, call := next()
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() { send(id, call) })
				}
				wg.Wait()
			default:
				send(next())
			}
		}
		spent, err := l.Inbox.List(t.Context(), approval.Filter{State: approval.Used, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]int{}
		for _, x := range spent {
			used[x.Caller+" "+x.Server+"__"+x.Tool+" "+string(x.Arguments)]++
		}
		for call, n := range s.ran {
			if strings.Contains(call, "never") || n > used[call] || n != used[call] && strings.Contains(call, "write") {
				t.Errorf("seed %d: %s ran %d times, and %d approvals were spent for it", seed, call, n, used[call])
			}
		}
	}
	t.Logf("%d runs of %d steps: %v", seed, steps, total)
	if little() {
		t.Errorf("%v: this tests little", total)
	}
}

// TestSeenInSets: of random callers, sets and rules, what a caller sees in a set is of
// the set and can be called, what rules deny never runs, and names that are not known
// open nothing.
func TestSeenInSets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	patterns := []string{"a__*", "b__*", "*__read", "*__write", "a__read", "tool:*", "b__?rite"}
	some := func() []string { return []string{patterns[random.IntN(len(patterns))]} }
	checked, hidden := 0, 0
	for n := range 60 {
		s := newCounting("a__read", "a__write", "b__read", "b__write")
		sets := map[string]catalog.Selection{
			"one": {{Server: "a", Match: some()}}, "two": {{Server: "a"}, {Server: "b", Match: some()}}, "none": {{Server: "b", Match: []string{"!*"}}},
		}
		var rules []policy.Rule
		for range random.IntN(3) {
			rules = append(rules, policy.Rule{Allow: some()})
		}
		if len(rules) > 0 && random.IntN(2) == 0 {
			rules = append(rules, policy.Rule{Deny: some()})
		}
		o := stacked(t, s, sets, nil, rules...)
		judge, err := policy.New(policy.Config{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		who := caller.Caller{ID: fmt.Sprint("key-", n), Grants: []string{[]string{"*", "tool:*", "tool:a__*", "model:*"}[random.IntN(4)]}}
		for _, server := range []string{"", "a", "b", "set:one", "set:two", "set:none"} {
			want := Want{Client: true}
			if server != "" {
				want.Servers = catalog.Selection{{Server: server}}
			}
			opened, err := o.Open(t.Context(), who, want)
			if one := server != "" && !strings.HasPrefix(server, SetPrefix); one && !policy.Reaches(who, server) {
				if !errors.Is(err, ErrUnknownServer) {
					t.Fatalf("%v opens %q: %v", who.Grants, server, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			list, err := opened.Tools.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.list.Tools.All() {
				tool := &s.list.Tools.All()[i]
				seen := list.Tools.Exact(tool.Name) != nil
				may := judge.DecideCall(who, dragoman.Call{Tool: tool}, false).Effect != policy.Deny
				in := server == "" || slices.ContainsFunc(opened.Chosen, func(c catalog.Choice) bool { return c.Server == tool.Server })
				if seen && (!may || !in) {
					t.Fatalf("%v sees %s at %q; rules allow it: %t; it is there: %t", who.Grants, tool.Name, server, may, in)
				}
				before := s.ran[who.ID+" "+tool.Name+" {}"]
				res, err := opened.Tools.Call(t.Context(), dragoman.Call{Tool: tool, Arguments: json.RawMessage(`{}`)})
				if ran := s.ran[who.ID+" "+tool.Name+" {}"] > before; err != nil || ran && !may || seen && !ran {
					t.Fatalf("%v calls %s at %q: %+v, %v; rules allow it: %t; it is seen: %t", who.Grants, tool.Name, server, res, err, may, seen)
				}
				if checked++; !seen {
					hidden++
				}
			}
		}
		for _, unknown := range []string{"c", "A", "a ", "a*", "*", "set:", "set:One", "set:three", "set:set:one", "", "..", "a/b"} {
			if _, err := o.Open(t.Context(), who, Want{Servers: catalog.Selection{{Server: unknown}}}); !errors.Is(err, ErrUnknownServer) {
				t.Errorf("%q opens something: %v", unknown, err)
			}
		}
	}
	t.Logf("%d tools of %d were hidden", hidden, checked)
	if hidden == 0 || hidden == checked {
		t.Error("this tests little")
	}
}
