package dragoman_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
)

func TestReadsRunSideBySide(t *testing.T) {
	for _, tt := range []struct {
		parallel, most int
		took           time.Duration
	}{{0, 8, 3 * time.Second}, {3, 3, 7 * time.Second}, {1, 1, 20 * time.Second}, {99, 20, time.Second}} {
		t.Run(fmt.Sprint(tt.parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int32
				loop := dragoman.Loop{Parallel: tt.parallel, Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
					n := running.Add(1)
					defer running.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					if _, err := after(ctx, time.Second); err != nil {
						return dragoman.Result{}, err
					}
					return dragoman.Result{Content: c.Arguments}, nil
				}}}
				var round []dragoman.Call
				for i := range 20 {
					round = append(round, call(read, i))
				}
				conv := &script{rounds: [][]dragoman.Call{round}}
				start := time.Now()
				if err := loop.Run(t.Context(), conv); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tt.took || int(most.Load()) != tt.most {
					t.Errorf("%d at a time in %s, want %d in %s", most.Load(), took, tt.most, tt.took)
				}
				for i, r := range conv.answers[0] {
					if string(r.Content) != string(round[i].Arguments) {
						t.Errorf("result %d is that of %s", i, r.Content)
					}
				}
			})
		})
	}
}

// The times show what waits for what: each call takes a second.
func TestWritesKeepTheirOrder(t *testing.T) {
	yes, no := true, false
	hinted := &dragoman.Tool{Name: "hinted", Hints: dragoman.Hints{ReadOnly: &yes}}
	doubted := &dragoman.Tool{Name: "doubted", Declared: dragoman.ReadOnly, Hints: dragoman.Hints{ReadOnly: &no}}
	idempotent := &dragoman.Tool{Name: "idempotent", Declared: dragoman.Idempotent}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		loop := dragoman.Loop{Tools: &tools{run: func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
			began := time.Since(start)
			if _, err := after(ctx, time.Second); err != nil {
				return dragoman.Result{}, err
			}
			return text(began.String()), nil
		}}}
		round := []dragoman.Call{
			call(write, 1), call(read, 2), call(doubted, 3), call(hinted, 4), call(idempotent, 5), call(write, 6), call(read, 7),
		}
		conv := &script{rounds: [][]dragoman.Call{round}}
		if err := loop.Run(t.Context(), conv); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range conv.answers[0] {
			got = append(got, string(r.Content))
		}
		var want []string
		for _, began := range []string{"0s", "0s", "1s", "0s", "2s", "3s", "0s"} {
			want = append(want, string(text(began).Content))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls began at (-want +got):\n%s", diff)
		}
	})
}

func TestRepeatedCalls(t *testing.T) {
	const repeated = dragoman.CodeRepeated
	failed := func() dragoman.Result { r := text("no"); r.Failed = true; return r }
	known := func(code string, ran dragoman.Ran) func() dragoman.Result {
		return func() dragoman.Result {
			return dragoman.Result{Problem: &dragoman.Problem{Code: code}, Ran: ran}
		}
	}
	results := map[string]func() dragoman.Result{
		"ok":      func() dragoman.Result { return text("done") },
		"failed":  failed,
		"unsent":  known(dragoman.CodeServerUnavailable, dragoman.RanNot),
		"denied":  known(dragoman.CodeDenied, dragoman.RanNot),
		"unknown": known(dragoman.CodeUnknownOutcome, dragoman.RanMaybe),
		"large":   known(dragoman.CodeTooLarge, dragoman.RanYes),
	}
	w, r := call(write, 1), call(read, 1)
	spaced := w
	spaced.Arguments = []byte(`{ "n" : 1 }`)
	prompt := dragoman.Call{Method: "prompts/get", Arguments: w.Arguments}
	invalid := dragoman.Call{Tool: write, Problem: &dragoman.Problem{Code: dragoman.CodeInvalidArguments}}
	one := func(calls ...dragoman.Call) (rounds [][]dragoman.Call) {
		for _, c := range calls {
			rounds = append(rounds, []dragoman.Call{c})
		}
		return rounds
	}
	tests := []struct {
		name   string
		rounds [][]dragoman.Call
		runs   []string // what the calls that run come to, in order; "ok" after the last
		want   [][]string
	}{
		{"a write again and again", one(w, w, w), nil, [][]string{{"ok"}, {repeated}, {repeated}}},
		{"in one round", [][]dragoman.Call{{w, w}}, nil, [][]string{{"ok", repeated}}},
		{"with other spaces", one(w, spaced), nil, [][]string{{"ok"}, {repeated}}},
		{"with other arguments", one(w, call(write, 2)), nil, [][]string{{"ok"}, {"ok"}}},
		{"of another method", one(w, prompt), nil, [][]string{{"ok"}, {"ok"}}},
		{"after a read", one(w, r, w), nil, [][]string{{"ok"}, {"ok"}, {"ok"}}},
		{"after a read in the same round", [][]dragoman.Call{{w, r, w}}, nil, [][]string{{"ok", "ok", "ok"}}},
		{"after a call that did not run", one(w, invalid, w), nil, [][]string{{"ok"}, {dragoman.CodeInvalidArguments}, {repeated}}},
		{"after it failed", one(w, w, w), []string{"failed"}, [][]string{{"failed"}, {"ok"}, {repeated}}},
		{"after it was not sent", one(w, w), []string{"unsent"}, [][]string{{dragoman.CodeServerUnavailable}, {"ok"}}},
		{"after a denial", one(w, w), []string{"denied"}, [][]string{{dragoman.CodeDenied}, {"ok"}}},
		{"after nobody knows", one(w, w), []string{"unknown"}, [][]string{{dragoman.CodeUnknownOutcome}, {repeated}}},
		{"after a result that was too large", one(w, w), []string{"large"}, [][]string{{dragoman.CodeTooLarge}, {repeated}}},
		{"after it failed beside its repetition", [][]dragoman.Call{{w, w}, {w}}, []string{"failed"}, [][]string{{"failed", repeated}, {"ok"}}},
		{"after it went well beside its repetition", [][]dragoman.Call{{w, w}, {w}}, nil, [][]string{{"ok", repeated}, {repeated}}},
		{"reads, as often as one likes", one(r, r, r, r, r), nil, [][]string{{"ok"}, {"ok"}, {"ok"}, {"ok"}, {"ok"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runs := tt.runs
			loop := dragoman.Loop{Parallel: 1, Tools: &tools{run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
				word := "ok"
				if len(runs) > 0 {
					word, runs = runs[0], runs[1:]
				}
				return results[word](), nil
			}}}
			conv := &script{rounds: tt.rounds}
			if err := loop.Run(t.Context(), conv); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, conv.outcomes()); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRepeatedReadsAreNoted(t *testing.T) {
	own := false
	loop := dragoman.Loop{Tools: &tools{run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
		r := text("done")
		if own {
			r.Info.Note = "from the cache"
		}
		return r, nil
	}}}
	same := []dragoman.Call{call(read, 1), call(read, 2)}
	conv := &script{rounds: [][]dragoman.Call{same, same[:1], {call(write, 9)}, same[:1], same}}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	for i, results := range conv.answers {
		for j, r := range results {
			if noted := r.Info.Note != ""; noted != (i == 4 && j == 0) {
				t.Errorf("round %d, call %d: note %q", i+1, j+1, r.Info.Note)
			}
		}
	}
	own = true
	conv = &script{rounds: again(5, read)}
	for i := range conv.rounds {
		conv.rounds[i][0] = call(read, 1)
	}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if got := conv.answers[4][0].Info.Note; got != "from the cache" {
		t.Errorf("the toolset's own note became %q", got)
	}
}

func TestUnanswered(t *testing.T) {
	yes := true
	tests := []struct {
		name   string
		effect dragoman.Effect
		hint   *bool
		want   string
	}{
		{"may change", dragoman.MayChange, nil, dragoman.CodeUnknownOutcome},
		{"idempotent", dragoman.Idempotent, nil, dragoman.CodeUnknownOutcome},
		{"read only", dragoman.ReadOnly, nil, dragoman.CodeTimeout},
		{"read only by its own word", dragoman.MayChange, &yes, dragoman.CodeTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := &dragoman.Tool{Name: "slow", Declared: tt.effect, Hints: dragoman.Hints{ReadOnly: tt.hint}}
			p := dragoman.Unanswered(tool, "No answer within 3s.")
			if p.Code != tt.want || !strings.HasPrefix(p.Message, "No answer within 3s. ") {
				t.Fatalf("Unanswered = %+v; want %s", p, tt.want)
			}
			if retry := p.RetryAfter > 0; retry != (tt.want == dragoman.CodeTimeout) {
				t.Errorf("RetryAfter = %s", p.RetryAfter)
			}
		})
	}
}

// A timeout is no end: the model hears of it and goes on.
func TestTimeoutsDoNotEndTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := dragoman.Loop{Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
			if string(c.Arguments) == `{"n":0}` {
				return dragoman.Result{Problem: dragoman.Unanswered(c.Tool, "No answer.")}, nil
			}
			return text("done"), nil
		}}}
		conv := &script{rounds: again(2, read)}
		if err := loop.Run(t.Context(), conv); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{{dragoman.CodeTimeout}, {"ok"}}, conv.outcomes()); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

// TestTimeEndsWhileACallWaits: of a call that was not made when the conversation's time ended
// nobody is told that it may have been.
func TestTimeEndsWhileACallWaits(t *testing.T) {
	for ran, want := range map[dragoman.Ran]string{dragoman.RanNot: dragoman.CodeBudget, dragoman.RanMaybe: dragoman.CodeUnknownOutcome} {
		synctest.Test(t, func(t *testing.T) {
			loop := dragoman.Loop{Timeout: time.Second, Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
				<-ctx.Done()
				return dragoman.Result{Ran: ran}, context.Cause(ctx)
			}}}
			conv := &script{rounds: [][]dragoman.Call{{call(write, 1)}}}
			if err := loop.Run(t.Context(), conv); err != nil {
				t.Fatal(err)
			}
			if got := conv.answers[0][0]; got.Ran != ran || got.Problem == nil || got.Problem.Code != want {
				t.Errorf("%s: %s, %v; want %s", ran, got.Ran, got.Problem, want)
			}
		})
	}
}

func TestNothingStartsAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("the audit log is full")
		var written atomic.Int32
		loop := dragoman.Loop{Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
			if c.Tool == read {
				return after(ctx, time.Second) // already running, it may end in peace
			}
			written.Add(1)
			_, _ = after(ctx, time.Millisecond)
			return dragoman.Result{}, boom
		}}}
		conv := &script{rounds: [][]dragoman.Call{{call(write, 1), call(read, 2), call(write, 3)}}}
		if err := loop.Run(t.Context(), conv); !errors.Is(err, boom) {
			t.Errorf("Run = %v, want %v", err, boom)
		}
		if written.Load() != 1 {
			t.Errorf("%d writes started, want 1", written.Load())
		}
		want := [][]string{{dragoman.CodeUnknownOutcome, "ok", dragoman.CodeCanceled}}
		if diff := cmp.Diff(want, conv.outcomes()); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestWhatCannotRunNeverRuns(t *testing.T) {
	loop := dragoman.Loop{Tools: &tools{run: func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
		t.Errorf("%s ran", c.Tool.Name)
		return dragoman.Result{}, nil
	}}}
	calls := []dragoman.Call{
		{Tool: &dragoman.Tool{Name: "bad", Quarantined: &dragoman.Problem{Code: dragoman.CodeInvalidTool}}},
		{Tool: read, Problem: &dragoman.Problem{Code: dragoman.CodeInvalidArguments}},
		{Problem: &dragoman.Problem{Code: dragoman.CodeUnknownTool}},
	}
	want := []string{dragoman.CodeInvalidTool, dragoman.CodeInvalidArguments, dragoman.CodeUnknownTool}
	conv := &script{rounds: [][]dragoman.Call{calls}}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{want}, conv.outcomes()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for i, c := range calls {
		res, err := loop.Call(t.Context(), c)
		if err != nil || res.Problem == nil || res.Problem.Code != want[i] {
			t.Errorf("Call %d = %+v, %v; want %s", i, res.Problem, err, want[i])
		}
	}
}

func TestCallTellsWhatIsKnownBesideAnError(t *testing.T) {
	boom := errors.New("boom")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		tool *dragoman.Tool
		err  error
		want string
	}{
		{"trouble of a write", t.Context(), write, boom, dragoman.CodeUnknownOutcome},
		{"trouble of a read", t.Context(), read, boom, dragoman.CodeCanceled},
		{"the end in a write", ended, write, context.Canceled, dragoman.CodeUnknownOutcome},
		{"the end in a read", ended, read, context.Canceled, dragoman.CodeCanceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			loop := dragoman.Loop{Tools: &tools{run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
				return dragoman.Result{}, fmt.Errorf("calling: %w", tt.err)
			}}}
			res, err := loop.Call(tt.ctx, dragoman.Call{Tool: tt.tool})
			if !errors.Is(err, tt.err) || res.Problem == nil || res.Problem.Code != tt.want {
				t.Errorf("Call = %+v, %v; want %s and %v", res.Problem, err, tt.want, tt.err)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var inside atomic.Int32
		loop := dragoman.Loop{
			Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
				if c.Tool == write {
					return after(ctx, 2*time.Second)
				}
				return after(ctx, time.Second)
			}},
			Observe: func(e dragoman.Event) {
				if inside.Add(1) != 1 {
					t.Error("two events at a time")
				}
				defer inside.Add(-1)
				line := fmt.Sprintf("%d %s", e.Round, e.Phase)
				switch {
				case e.Phase != dragoman.Execute:
					line += fmt.Sprintf(" %d", len(e.Calls))
				case e.Result == nil:
					line += " " + e.Call.Tool.Name
				case e.Result.Problem != nil:
					line += " " + e.Call.Tool.Name + " " + e.Result.Problem.Code
				default:
					line += fmt.Sprintf(" %s %s", e.Call.Tool.Name, e.Duration)
				}
				got = append(got, line)
			},
		}
		conv := &script{rounds: [][]dragoman.Call{{call(read, 1)}, {call(write, 1), call(write, 1)}}}
		if err := loop.Run(t.Context(), conv); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"1 decide 1", "1 execute read", "1 execute read 1s",
			"2 decide 2", "2 execute write repeated_call", "2 execute write", "2 execute write 2s",
			"3 summarise 0",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}

		many := make([]dragoman.Call, 40)
		for i := range many {
			many[i] = call(read, i)
		}
		got = nil
		if err := loop.Run(t.Context(), &script{rounds: [][]dragoman.Call{many}}); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2+2*len(many) {
			t.Errorf("%d events of %d calls", len(got), len(many))
		}
	})
}

// TestObserverPanics: a panic in Observe ends the conversation, whichever goroutine it
// happens in, and nothing else. Calls that run end in peace, and no further one starts.
func TestObserverPanics(t *testing.T) {
	calls := []dragoman.Call{call(write, 1), call(read, 2), call(write, 3)}
	for name, tt := range map[string]struct {
		calls []dragoman.Call
		at    func(dragoman.Event) bool
		want  [][]string
	}{
		"decided":  {calls, func(e dragoman.Event) bool { return e.Phase == dragoman.Decide }, [][]string{{dragoman.CodeCanceled, dragoman.CodeCanceled, dragoman.CodeCanceled}}},
		"started":  {[]dragoman.Call{call(write, 1), call(write, 2)}, func(e dragoman.Event) bool { return e.Phase == dragoman.Execute && e.Result == nil }, [][]string{{"ok", dragoman.CodeCanceled}}},
		"ended":    {calls, func(e dragoman.Event) bool { return e.Result != nil && e.Call.Tool == read }, [][]string{{"ok", "ok", dragoman.CodeCanceled}}},
		"answered": {calls, func(e dragoman.Event) bool { return e.Phase == dragoman.Summarise }, [][]string{{"ok", "ok", "ok"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				panics := 0
				loop := dragoman.Loop{
					Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
						if c.Tool == read {
							return after(ctx, time.Second)
						}
						return after(ctx, 2*time.Second)
					}},
					Observe: func(e dragoman.Event) {
						if tt.at(e) {
							panics++
							panic("the disk is full")
						}
					},
				}
				conv := &script{rounds: [][]dragoman.Call{tt.calls}}
				err := loop.Run(t.Context(), conv)
				p, ok := errors.AsType[*dragoman.PanicError](err)
				if !ok || p.Value != "the disk is full" || panics != 1 {
					t.Errorf("Run = %v after %d panics", err, panics)
				}
				if len(conv.closed) != 1 || !errors.Is(conv.closed[0], p) {
					t.Errorf("the conversation was closed with %v", conv.closed)
				}
				if diff := cmp.Diff(tt.want, conv.outcomes()); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestListPanics: a panic of a toolset that is asked for its list ends the conversation, which
// is told, so that its client is.
func TestListPanics(t *testing.T) {
	conv := &script{}
	err := (&dragoman.Loop{Tools: unlisted{}}).Run(t.Context(), conv)
	if p, ok := errors.AsType[*dragoman.PanicError](err); !ok || p.Value != "no list" {
		t.Errorf("Run = %v", err)
	}
	if len(conv.closed) != 1 || !errors.Is(conv.closed[0], err) {
		t.Errorf("the conversation was closed with %v", conv.closed)
	}
}

type unlisted struct{ *tools }

func (unlisted) List(context.Context) (*dragoman.List, error) { panic("no list") }

// TestNoTools: a Loop without Tools says so, and its conversation is told.
func TestNoTools(t *testing.T) {
	conv := &script{}
	if err := (&dragoman.Loop{}).Run(t.Context(), conv); err == nil || err.Error() != "a loop needs Tools" || len(conv.closed) != 1 {
		t.Errorf("Run = %v, closed %v", err, conv.closed)
	}
	res, err := (&dragoman.Loop{}).Call(t.Context(), call(read, 1))
	if err == nil || err.Error() != "a loop needs Tools" || res.Ran != dragoman.RanNot {
		t.Errorf("Call = %+v, %v", res, err)
	}
}

// One Loop serves many conversations, which know nothing of one another.
func TestLoopHoldsNoState(t *testing.T) {
	loop := dragoman.Loop{Calls: 2, Tools: &tools{}}
	done := make(chan [][]string)
	for range 8 {
		go func() {
			conv := &script{rounds: [][]dragoman.Call{{call(write, 1)}, {call(read, 1)}, {call(write, 1)}}}
			if err := loop.Run(t.Context(), conv); err != nil {
				t.Error(err)
			}
			done <- conv.outcomes()
		}()
	}
	for range 8 {
		if diff := cmp.Diff([][]string{{"ok"}, {"ok"}}, <-done); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	}
}

// noList is a toolset that is broken: it has neither a list nor an error.
type noList struct{ dragoman.Toolset }

func (noList) List(context.Context) (*dragoman.List, error) { return nil, nil }

// What a program has left out is an error, which says so, and never ends the program.
func TestRunWithoutConversationOrList(t *testing.T) {
	if err := (&dragoman.Loop{Tools: &asking{}}).Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "needs a conversation") {
		t.Errorf("without a conversation: %v", err)
	}
	conv := &script{}
	if err := (&dragoman.Loop{Tools: noList{}}).Run(t.Context(), conv); err == nil || !strings.Contains(err.Error(), "listing tools: the toolset returned neither a list nor an error") || len(conv.closed) != 1 {
		t.Errorf("without a list: %v, closed with %v", err, conv.closed)
	}
}
