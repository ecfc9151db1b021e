package dragoman_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
)

// asking is a toolset whose calls ask n times, a question each, and keep count in
// their state.
type asking struct {
	times int
	after time.Duration // asks nothing but for time

	mu   sync.Mutex
	legs []string // what each leg was: "1", "2 yes", "2 gone"
}

func (a *asking) List(context.Context) (*dragoman.List, error) { return &dragoman.List{}, nil }

func (a *asking) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	leg := 1
	word := ""
	if c.Answers != nil {
		if _, err := fmt.Sscan(string(c.Answers.State), &leg); err != nil {
			return dragoman.Result{}, err
		}
		word = " " + string(c.Answers.Replies["q"])
		if c.Answers.Gone {
			word = " gone"
		}
	}
	a.mu.Lock()
	a.legs = append(a.legs, strings.TrimSpace(fmt.Sprint(leg, word)))
	a.mu.Unlock()
	if leg > a.times || word == " gone" {
		return text("done"), nil
	}
	asks := &dragoman.Asks{State: fmt.Append(nil, leg+1), After: a.after}
	if a.after == 0 {
		asks.Questions = []dragoman.Question{{Key: "q", Kind: dragoman.AskForm}}
	}
	return dragoman.Result{Asks: asks}, nil
}

func yes(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
	return &dragoman.Answers{Replies: map[string]json.RawMessage{asks.Questions[0].Key: json.RawMessage(`yes`)}}, nil
}

func TestAskingGoesOnWithAnswers(t *testing.T) {
	tools := &asking{times: 3}
	loop := dragoman.Loop{Tools: tools, Calls: 1, Ask: yes}
	conv := &script{rounds: [][]dragoman.Call{{call(write, 1)}}}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", "2 yes", "3 yes", "4 yes"}, tools.legs); diff != "" {
		t.Errorf("legs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"ok"}}, conv.outcomes()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestAskingTooOften(t *testing.T) {
	tools := &asking{times: 99}
	res, err := (&dragoman.Loop{Tools: tools, Ask: yes}).Call(t.Context(), call(write, 1))
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnanswered || res.Ran != dragoman.RanMaybe {
		t.Errorf("Call = %+v, %v", res, err)
	}
	if n := len(tools.legs); n != 18 || tools.legs[n-1] != "18 gone" {
		t.Errorf("%d legs, the last %q; want 17 and a farewell", n, tools.legs[n-1])
	}
}

// While a person thinks, other calls have the slot and the clock stands still.
func TestAskingHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var read2 time.Duration
		inner := &asking{times: 1}
		loop := dragoman.Loop{
			Parallel: 1, Timeout: time.Minute,
			Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
				if string(c.Arguments) == `{"n":1}` {
					return inner.Call(ctx, c)
				}
				if string(c.Arguments) == `{"n":2}` {
					read2 = time.Since(start)
				}
				return text("done"), nil
			}},
			Ask: func(ctx context.Context, c dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
				time.Sleep(time.Hour)
				return yes(ctx, c, asks)
			},
		}
		conv := &script{rounds: [][]dragoman.Call{{call(read, 1), call(read, 2)}, {call(read, 3)}}}
		if err := loop.Run(t.Context(), conv); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{{"ok", "ok"}, {"ok"}}, conv.outcomes()); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if d := conv.answers[0][0].Info.Duration; d >= time.Hour {
			t.Errorf("the wait for the person counts as the tool's: %s", d)
		}
		if read2 >= time.Hour {
			t.Errorf("the second call waited %s for the person", read2)
		}
	})
}

func TestNobodyAnswers(t *testing.T) {
	for name, ask := range map[string]func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error){
		"an error": func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error) {
			return nil, errors.New("the door is closed")
		},
		"a panic": func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error) { panic("oh") },
	} {
		t.Run(name, func(t *testing.T) {
			tools := &asking{times: 1}
			res, err := (&dragoman.Loop{Tools: tools, Ask: ask}).Call(t.Context(), call(write, 1))
			if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnanswered || res.Problem.Err == nil {
				t.Errorf("Call = %+v, %v", res.Problem, err)
			}
			if diff := cmp.Diff([]string{"1", "2 gone"}, tools.legs); diff != "" {
				t.Errorf("legs (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the client goes", func(t *testing.T) {
		tools := &asking{times: 1}
		ctx, cancel := context.WithCancel(t.Context())
		res, err := (&dragoman.Loop{Tools: tools, Ask: func(ctx context.Context, _ dragoman.Call, _ *dragoman.Asks) (*dragoman.Answers, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}}).Call(ctx, call(write, 1))
		if !errors.Is(err, context.Canceled) || res.Problem == nil || res.Problem.Code != dragoman.CodeUnknownOutcome {
			t.Errorf("Call = %+v, %v", res.Problem, err)
		}
		if diff := cmp.Diff([]string{"1", "2 gone"}, tools.legs); diff != "" {
			t.Errorf("legs (-want +got):\n%s", diff)
		}
	})
	t.Run("until the questions expire", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			expires := time.Now().Add(time.Minute)
			loop := dragoman.Loop{
				Tools: &tools{run: func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
					if c.Answers != nil {
						return text("done"), nil
					}
					return dragoman.Result{Asks: &dragoman.Asks{Questions: []dragoman.Question{{Key: "q"}}, State: []byte("s"), Expires: expires}}, nil
				}},
				Ask: func(ctx context.Context, _ dragoman.Call, _ *dragoman.Asks) (*dragoman.Answers, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}
			res, err := loop.Call(t.Context(), call(write, 1))
			if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeUnanswered || !time.Now().Equal(expires) {
				t.Errorf("Call = %+v, %v", res.Problem, err)
			}
		})
	})
}

// A server that wants nothing but time gets it, and nobody is asked.
func TestAskingForTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tools := &asking{times: 20, after: time.Second}
		res, err := (&dragoman.Loop{Tools: tools}).Call(t.Context(), call(read, 1))
		if err != nil || res.Asks != nil || time.Since(start) != 20*time.Second {
			t.Errorf("Call = %+v, %v after %s", res, err, time.Since(start))
		}
	})
}

// Where nobody can be asked at once, the turn ends; calls whose order would be
// lost wait with the one that asks.
func TestAskingEndsTheTurn(t *testing.T) {
	inner := &asking{times: 1}
	var ran atomic.Int32
	loop := dragoman.Loop{Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
		ran.Add(1)
		if string(c.Arguments) == `{"n":2}` {
			return inner.Call(ctx, c)
		}
		return text("done"), nil
	}}}
	conv := &script{rounds: [][]dragoman.Call{{call(write, 1), call(write, 2), call(write, 3), call(read, 4)}, {call(write, 5)}}}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if len(conv.answers) != 1 || ran.Load() != 3 {
		t.Fatalf("%d rounds, %d calls ran", len(conv.answers), ran.Load())
	}
	got := conv.answers[0]
	if got[0].Asks != nil || got[1].Asks == nil || got[1].Asks.Deferred() || got[2].Asks == nil || !got[2].Asks.Deferred() || got[2].Ran != dragoman.RanNot || got[3].Asks != nil {
		t.Errorf("results: %+v", got)
	}
	if len(conv.closed) != 1 || conv.closed[0] != nil {
		t.Errorf("closed with %v", conv.closed)
	}

	// The next request brings the answers: what goes on is neither charged nor
	// taken for a repetition, even where nothing is left.
	goesOn, deferred := call(write, 2), call(write, 3)
	goesOn.Answers = &dragoman.Answers{State: got[1].Asks.State, Replies: map[string]json.RawMessage{"q": []byte("yes")}}
	conv = &script{rounds: [][]dragoman.Call{{goesOn, deferred}}}
	loop.Calls = 1
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"ok", "ok"}}, conv.outcomes()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2 yes"}, inner.legs); diff != "" {
		t.Errorf("legs (-want +got):\n%s", diff)
	}
}

// TestRepeatedAfterAnswers: a call that went on with the answers of a later request is not
// made again right after it.
func TestRepeatedAfterAnswers(t *testing.T) {
	goesOn := call(write, 1)
	goesOn.Answers = &dragoman.Answers{State: []byte("2"), Ran: dragoman.RanNot}
	for _, tt := range []struct {
		result dragoman.Result
		want   string
		ran    int
	}{
		{text("done"), dragoman.CodeRepeated, 1},
		{dragoman.Failure(dragoman.CodeDenied, "no"), dragoman.CodeDenied, 2},
	} {
		ran := 0
		loop := dragoman.Loop{Tools: &tools{run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
			ran++
			return tt.result, nil
		}}}
		conv := &script{rounds: [][]dragoman.Call{{goesOn}, {call(write, 1)}}}
		if err := loop.Run(t.Context(), conv); err != nil {
			t.Fatal(err)
		}
		if got := conv.outcomes()[1][0]; got != tt.want || ran != tt.ran {
			t.Errorf("the repetition: %s, and %d calls ran; want %s and %d", got, ran, tt.want, tt.ran)
		}
	}
}

// A continuation is never safer than what ran before it.
func TestRanOfALaterLeg(t *testing.T) {
	for _, tt := range []struct{ first, second, want dragoman.Ran }{
		{dragoman.RanMaybe, dragoman.RanNot, dragoman.RanMaybe},
		{dragoman.RanMaybe, dragoman.RanYes, dragoman.RanYes},
		{dragoman.RanNot, dragoman.RanNot, dragoman.RanNot},
		{dragoman.RanNot, dragoman.RanMaybe, dragoman.RanMaybe},
		{dragoman.RanYes, dragoman.RanNot, dragoman.RanYes},
	} {
		loop := dragoman.Loop{Ask: yes, Tools: &tools{run: func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
			if c.Answers == nil {
				return dragoman.Result{Ran: tt.first, Asks: &dragoman.Asks{State: []byte("s"), Questions: []dragoman.Question{{Key: "q"}}}}, nil
			}
			return dragoman.Result{Ran: tt.second, Problem: &dragoman.Problem{Code: dragoman.CodeServerUnavailable}}, nil
		}}}
		res, err := loop.Call(t.Context(), call(write, 1))
		if err != nil || res.Ran != tt.want {
			t.Errorf("first %s, second %s: %s, want %s", tt.first, tt.second, res.Ran, tt.want)
		}
	}
}

// TestRanOfALegThatIsNotMade: a call that was to go on and did not is no safer than what ran
// before, and the model is told so.
func TestRanOfALegThatIsNotMade(t *testing.T) {
	quarantined := *write
	quarantined.Quarantined = &dragoman.Problem{Code: dragoman.CodeNotApproved}
	for _, tt := range []struct {
		tool  *dragoman.Tool
		first dragoman.Ran
		ends  bool // before the leg
		want  string
	}{
		{write, dragoman.RanNot, true, dragoman.CodeCanceled},
		{write, dragoman.RanMaybe, true, dragoman.CodeUnknownOutcome},
		{write, dragoman.RanYes, true, dragoman.CodeUnknownOutcome},
		{read, dragoman.RanYes, true, dragoman.CodeCanceled},
		{&quarantined, dragoman.RanMaybe, false, dragoman.CodeNotApproved},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		goesOn := call(tt.tool, 1)
		goesOn.Answers = &dragoman.Answers{State: []byte("2"), Ran: tt.first}
		conv := &script{rounds: [][]dragoman.Call{{goesOn}}}
		loop := dragoman.Loop{Tools: &tools{}, Observe: func(e dragoman.Event) {
			if tt.ends && e.Phase == dragoman.Decide {
				cancel()
			}
		}}
		_ = loop.Run(ctx, conv)
		cancel()
		if got := conv.answers[0][0]; got.Ran != tt.first || got.Problem == nil || got.Problem.Code != tt.want {
			t.Errorf("after %s: %s, %v; want %s", tt.first, got.Ran, got.Problem, tt.want)
		}
	}
}

func TestPanicsEndTheCallAlone(t *testing.T) {
	loop := dragoman.Loop{Tools: &tools{run: func(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
		if c.Tool == write {
			panic("a bug")
		}
		return text("done"), nil
	}}}
	conv := &script{rounds: [][]dragoman.Call{{call(write, 1), call(read, 2)}, {call(read, 3)}}}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{dragoman.CodeInternal, "ok"}, {"ok"}}, conv.outcomes()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if p, ok := errors.AsType[*dragoman.PanicError](conv.answers[0][0].Problem); !ok || p.Value != "a bug" || len(p.Stack) == 0 {
		t.Errorf("the problem wraps %v", conv.answers[0][0].Problem.Err)
	}
}

// TestAsksAreJSON: whoever keeps results as JSON may keep those that ask, without what only
// this process can tell.
func TestAsksAreJSON(t *testing.T) {
	b, err := json.Marshal(dragoman.Result{Asks: &dragoman.Asks{State: []byte("s"), Withdrawn: make(chan struct{})}})
	var back dragoman.Result
	if err != nil || json.Unmarshal(b, &back) != nil || string(back.Asks.State) != "s" {
		t.Errorf("%s, %v", b, err)
	}
}

// statesOf is a toolset whose calls ask, with their id as the state, and answer the state that
// came back once all of them have been answered.
type statesOf struct {
	dragoman.Toolset
	answered *sync.WaitGroup
}

func (s statesOf) Call(_ context.Context, c dragoman.Call) (dragoman.Result, error) {
	if c.Answers == nil {
		return dragoman.Result{Asks: &dragoman.Asks{State: []byte(c.ID), Questions: []dragoman.Question{{Key: "q", Kind: dragoman.AskForm}}}}, nil
	}
	s.answered.Done()
	s.answered.Wait()
	return text(string(c.Answers.State)), nil
}

// A program may have one answer for all: each call gets its own state back with it.
func TestAnswersAreShared(t *testing.T) {
	no := &dragoman.Answers{Replies: map[string]json.RawMessage{"q": json.RawMessage(`{"action":"decline"}`)}}
	var answered, ended sync.WaitGroup
	loop := dragoman.Loop{
		Tools: statesOf{answered: &answered},
		Ask:   func(context.Context, dragoman.Call, *dragoman.Asks) (*dragoman.Answers, error) { return no, nil },
	}
	answered.Add(2)
	for _, id := range []string{"one", "two"} {
		ended.Go(func() {
			res, err := loop.Call(t.Context(), dragoman.Call{ID: id, Tool: &dragoman.Tool{Name: "x"}, Can: dragoman.AskForm})
			if want := string(text(id).Content); err != nil || string(res.Content) != want {
				t.Errorf("call %s went on with %s, %v", id, res.Content, err)
			}
		})
	}
	ended.Wait()
	if no.State != nil {
		t.Errorf("the answer was changed: %+v", no)
	}
}
