package dragoman_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
)

// tools are a Toolset whose calls are answered by run.
type tools struct {
	list []dragoman.Tool
	err  error // of Tools
	run  func(context.Context, dragoman.Call) (dragoman.Result, error)
}

func (t *tools) List(context.Context) (*dragoman.List, error) {
	return &dragoman.List{Tools: dragoman.NewTools(t.list)}, t.err
}

func (t *tools) Call(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
	if t.run == nil {
		return text("done"), nil
	}
	return t.run(ctx, c)
}

// script is a Conversation whose model was told what to call in each round.
type script struct {
	rounds [][]dragoman.Call
	forced bool // the model calls tools even in its last message

	offerErr, nextErr, answerErr, closeErr error

	offered  []dragoman.Tool
	lasts    []bool
	answers  [][]dragoman.Result
	answered []error // how the context stood at each Answer
	closed   []error
}

func (s *script) Offer(list *dragoman.List) error {
	s.offered = list.Tools.All()
	return s.offerErr
}

func (s *script) Next(ctx context.Context, last bool) ([]dragoman.Call, error) {
	s.lasts = append(s.lasts, last)
	if s.nextErr != nil {
		return nil, s.nextErr
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	round := len(s.lasts) - 1
	if last && !s.forced || round >= len(s.rounds) {
		return nil, nil
	}
	return s.rounds[round], nil
}

func (s *script) Answer(ctx context.Context, results []dragoman.Result) error {
	s.answers = append(s.answers, results)
	s.answered = append(s.answered, ctx.Err())
	return s.answerErr
}

func (s *script) Close(err error) error {
	s.closed = append(s.closed, err)
	return s.closeErr
}

// outcomes is a word for each result: its problem's code, "failed" or "ok".
func (s *script) outcomes() [][]string {
	all := [][]string{}
	for _, results := range s.answers {
		words := []string{}
		for _, r := range results {
			word := "ok"
			switch {
			case r.Problem != nil:
				word = r.Problem.Code
			case r.Failed:
				word = "failed"
			}
			words = append(words, word)
		}
		all = append(all, words)
	}
	return all
}

var (
	read  = &dragoman.Tool{Name: "read", Original: "read", Declared: dragoman.ReadOnly}
	write = &dragoman.Tool{Name: "write", Original: "write"}
)

func call(t *dragoman.Tool, argument any) dragoman.Call {
	return dragoman.Call{Tool: t, Arguments: json.RawMessage(fmt.Sprintf(`{"n":%v}`, argument))}
}

// again is n rounds of one call each, every one with another argument.
func again(n int, t *dragoman.Tool) (rounds [][]dragoman.Call) {
	for i := range n {
		rounds = append(rounds, []dragoman.Call{call(t, i)})
	}
	return rounds
}

func text(s string) dragoman.Result {
	return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":"` + s + `"}]}`), Ran: dragoman.RanYes}
}

func TestRunOffersAllTools(t *testing.T) {
	list := []dragoman.Tool{{Name: "a"}, {Name: "b", Quarantined: &dragoman.Problem{Code: dragoman.CodeInvalidTool}}}
	conv := &script{}
	loop := dragoman.Loop{Tools: &tools{list: list}}
	if err := loop.Run(t.Context(), conv); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, conv.offered); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]error{nil}, conv.closed); diff != "" {
		t.Errorf("closed with (-want +got):\n%s", diff)
	}
}

func TestBudgets(t *testing.T) {
	tests := []struct {
		name string
		loop dragoman.Loop
		run  func(context.Context, dragoman.Call) (dragoman.Result, error)
		// The model would go on for as long as it is let.
		rounds [][]dragoman.Call
		want   [][]string
		lasts  []bool
	}{
		{
			name: "rounds", loop: dragoman.Loop{Rounds: 2},
			rounds: again(9, read), want: [][]string{{"ok"}, {"ok"}}, lasts: []bool{false, false, true},
		},
		{
			name:   "rounds by default",
			rounds: again(99, read), want: slices.Repeat([][]string{{"ok"}}, 16), lasts: append(make([]bool, 16), true),
		},
		{
			name: "calls", loop: dragoman.Loop{Calls: 3},
			rounds: [][]dragoman.Call{{call(read, 1), call(write, 2)}, {call(read, 3), call(write, 4), call(read, 5)}, {call(read, 6)}},
			want:   [][]string{{"ok", "ok"}, {"ok", dragoman.CodeBudget, dragoman.CodeBudget}}, lasts: []bool{false, false, true},
		},
		{
			name: "calls that do not run count nothing", loop: dragoman.Loop{Calls: 1},
			rounds: [][]dragoman.Call{{{Problem: &dragoman.Problem{Code: dragoman.CodeUnknownTool}}}, {call(read, 1)}, {call(read, 2)}},
			want:   [][]string{{dragoman.CodeUnknownTool}, {"ok"}}, lasts: []bool{false, false, true},
		},
		{
			name: "bytes", loop: dragoman.Loop{Bytes: 100},
			run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
				return text(strings.Repeat("x", 60)), nil
			},
			rounds: again(9, read), want: [][]string{{"ok"}, {"ok"}}, lasts: []bool{false, false, true},
		},
		{
			name: "bytes within a round", loop: dragoman.Loop{Bytes: 100},
			run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
				return text(strings.Repeat("x", 100)), nil
			},
			rounds: [][]dragoman.Call{{call(write, 1), call(write, 2), call(write, 3)}, {call(write, 4)}},
			want:   [][]string{{"ok", dragoman.CodeBudget, dragoman.CodeBudget}}, lasts: []bool{false, true},
		},
		{
			name: "time", loop: dragoman.Loop{Timeout: 25 * time.Second},
			run: func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
				return after(ctx, 10*time.Second)
			},
			// The third call of the first is cut off in the middle, the last never starts.
			rounds: [][]dragoman.Call{{call(write, 1), call(write, 2), call(write, 3), call(write, 4)}, {call(write, 5)}},
			want:   [][]string{{"ok", "ok", dragoman.CodeUnknownOutcome, dragoman.CodeBudget}}, lasts: []bool{false, true},
		},
		{
			name: "time by default",
			run: func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
				return after(ctx, 110*time.Second)
			},
			rounds: again(9, read), want: [][]string{{"ok"}, {"ok"}, {"ok"}, {"ok"}, {"ok"}, {dragoman.CodeTimeout}},
			lasts: []bool{false, false, false, false, false, false, true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv := &script{rounds: tt.rounds}
				loop := tt.loop
				loop.Tools = &tools{run: tt.run}
				if err := loop.Run(t.Context(), conv); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, conv.outcomes()); diff != "" {
					t.Errorf("results (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.lasts, conv.lasts); diff != "" {
					t.Errorf("last (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// after is a tool that takes d, or less when it is not waited for.
func after(ctx context.Context, d time.Duration) (dragoman.Result, error) {
	select {
	case <-time.After(d):
		return text("done"), nil
	case <-ctx.Done():
		return dragoman.Result{}, fmt.Errorf("waiting for the tool: %w", context.Cause(ctx))
	}
}

func TestCallsInTheLastRoundAreAnError(t *testing.T) {
	ran := 0
	conv := &script{rounds: again(3, read), forced: true}
	loop := dragoman.Loop{Rounds: 1, Tools: &tools{run: func(context.Context, dragoman.Call) (dragoman.Result, error) {
		ran++
		return text("done"), nil
	}}}
	err := loop.Run(t.Context(), conv)
	if err == nil || !strings.Contains(err.Error(), "last round") || conv.closed[0] != err {
		t.Errorf("Run = %v, closed with %v", err, conv.closed)
	}
	if ran != 1 {
		t.Errorf("%d calls ran, want 1", ran)
	}
}

func TestErrorsOfOthersEndTheConversation(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name  string
		tools tools
		conv  script
		// How far it came: Next, Answer, and what Close was told.
		nexts, answers int
		closed         bool // with the error
	}{
		{"Tools", tools{err: boom}, script{}, 0, 0, true},
		{"Offer", tools{}, script{offerErr: boom}, 0, 0, true},
		{"Next", tools{}, script{nextErr: boom}, 1, 0, true},
		{"Call", tools{run: func(context.Context, dragoman.Call) (dragoman.Result, error) { return dragoman.Result{}, boom }}, script{}, 1, 1, true},
		{"Answer", tools{}, script{answerErr: boom}, 1, 1, true},
		{"Close", tools{}, script{closeErr: boom}, 3, 2, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.conv.rounds = again(2, write)
			loop := dragoman.Loop{Tools: &tt.tools}
			err := loop.Run(t.Context(), &tt.conv)
			if !errors.Is(err, boom) {
				t.Errorf("Run = %v, want %v", err, boom)
			}
			if len(tt.conv.lasts) != tt.nexts || len(tt.conv.answers) != tt.answers {
				t.Errorf("%d × Next, %d × Answer; want %d and %d", len(tt.conv.lasts), len(tt.conv.answers), tt.nexts, tt.answers)
			}
			if len(tt.conv.closed) != 1 || errors.Is(tt.conv.closed[0], boom) != tt.closed {
				t.Errorf("closed with %v", tt.conv.closed)
			}
		})
	}
}

// A person who goes away while calls run: what is known of them is told all the
// same, and nothing more starts.
func TestEndOfContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var started []string
		conv := &script{rounds: [][]dragoman.Call{{call(read, 1), call(write, 2), call(write, 3)}, {call(read, 4)}}}
		loop := dragoman.Loop{Tools: &tools{run: func(ctx context.Context, c dragoman.Call) (dragoman.Result, error) {
			if c.Tool == read {
				return text("done"), nil
			}
			started = append(started, string(c.Arguments))
			return after(ctx, time.Hour)
		}}}
		time.AfterFunc(time.Second, func() { cancel(gone) })
		start := time.Now()
		err := loop.Run(ctx, conv)
		if !errors.Is(err, gone) || !errors.Is(conv.closed[0], gone) {
			t.Errorf("Run = %v, closed with %v", err, conv.closed)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %s after the end", took-time.Second)
		}
		if diff := cmp.Diff([][]string{{"ok", dragoman.CodeUnknownOutcome, dragoman.CodeCanceled}}, conv.outcomes()); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{`{"n":2}`}, started); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		if conv.answered[0] == nil {
			t.Error("Answer was not called after the end of the context")
		}
	})
}
