package terminal

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// yes says yes to every approval, as a person would.
type yes struct{ dragoman.Toolset }

func (y yes) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Answers == nil {
		call.Can |= dragoman.AskApproval
	}
	res, err := y.Toolset.Call(ctx, call)
	if res.Asks == nil || len(res.Asks.Questions) != 1 || res.Asks.Questions[0].Kind != dragoman.AskApproval {
		return res, err
	}
	call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran, Replies: map[string]json.RawMessage{approvalKey: accepted}}
	return y.Toolset.Call(ctx, call)
}

func TestApprovingIsAToolset(t *testing.T) {
	for name, which := range map[string]Approve{"destructive": ApproveDestructive, "writes": ApproveWrites, "nothing": ApproveNothing} {
		t.Run(name, func(t *testing.T) {
			toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
				return yes{Approving(inner, which, nil)}
			})
		})
	}
}

func TestWhoIsAsked(t *testing.T) {
	tests := []struct {
		name string
		tool dragoman.Tool
		want map[Approve]bool
	}{
		{"says nothing", dragoman.Tool{}, map[Approve]bool{ApproveWrites: true}},
		{"destroys", dragoman.Tool{Hints: dragoman.Hints{Destructive: new(true)}}, map[Approve]bool{ApproveDestructive: true, ApproveWrites: true}},
		{"destroys nothing", dragoman.Tool{Hints: dragoman.Hints{Destructive: new(false)}}, map[Approve]bool{ApproveWrites: true}},
		{"reads", dragoman.Tool{Hints: dragoman.Hints{ReadOnly: new(true), Destructive: new(true)}}, nil},
		{"reads, says the operator", dragoman.Tool{Declared: dragoman.ReadOnly, Hints: dragoman.Hints{Destructive: new(true)}}, nil},
		{"reads, says the operator, and writes", dragoman.Tool{Declared: dragoman.ReadOnly, Hints: dragoman.Hints{ReadOnly: new(false), Destructive: new(true)}},
			map[Approve]bool{ApproveDestructive: true, ApproveWrites: true}},
	}
	for _, tt := range tests {
		for _, which := range []Approve{ApproveDestructive, ApproveWrites, ApproveNothing} {
			if got := which.asks(&tt.tool); got != tt.want[which] {
				t.Errorf("a tool that %s, %d: %v", tt.name, which, got)
			}
		}
	}
}

// What was not asked, was asked of another call, or was declined does not run.
func TestApproval(t *testing.T) {
	inner := toolsettest.NewInner()
	tools := Approving(inner, ApproveWrites, nil)
	list, err := tools.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := dragoman.Call{Tool: list.Tools.Find(toolsettest.Write), Arguments: []byte(`{"a":1}`), Can: dragoman.AskApproval}
	run := func(c dragoman.Call) dragoman.Result {
		t.Helper()
		res, err := tools.Call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	unattended := call
	unattended.Can = dragoman.AskForm
	if res := run(unattended); res.Problem == nil || res.Problem.Code != dragoman.CodeDenied || res.Ran != dragoman.RanNot {
		t.Errorf("with nobody there: %+v", res)
	}
	asked := run(call)
	if asked.Asks == nil || asked.Ran != dragoman.RanNot {
		t.Fatalf("nobody is asked: %+v", asked)
	}
	for name, tt := range map[string]struct {
		change func(*dragoman.Call)
		code   string
	}{
		"declined":     {func(c *dragoman.Call) { c.Answers.Replies[approvalKey] = declined }, dragoman.CodeDenied},
		"cancelled":    {func(c *dragoman.Call) { delete(c.Answers.Replies, approvalKey) }, dragoman.CodeDenied},
		"gone":         {func(c *dragoman.Call) { c.Answers.Gone = true }, dragoman.CodeUnanswered},
		"other call":   {func(c *dragoman.Call) { c.Arguments = []byte(`{"a":2}`) }, dragoman.CodeUnanswered},
		"made up":      {func(c *dragoman.Call) { c.Answers.State = []byte("yes") }, dragoman.CodeUnanswered},
		"no state":     {func(c *dragoman.Call) { c.Answers.State = nil }, dragoman.CodeUnanswered},
		"state beyond": {func(c *dragoman.Call) { c.Answers.State = append(c.Answers.State, 'x') }, dragoman.CodeUnanswered},
	} {
		c := call
		c.Answers = &dragoman.Answers{State: append([]byte(nil), asked.Asks.State...), Replies: map[string]json.RawMessage{approvalKey: accepted}}
		tt.change(&c)
		if res := run(c); res.Problem == nil || res.Problem.Code != tt.code || res.Ran == dragoman.RanYes {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if n := inner.Ran(toolsettest.Write); n != 0 {
		t.Errorf("it ran %d times", n)
	}
	c := call
	c.Answers = &dragoman.Answers{State: asked.Asks.State, Replies: map[string]json.RawMessage{approvalKey: accepted}}
	if res := run(c); res.Problem != nil || inner.Ran(toolsettest.Write) != 1 {
		t.Errorf("approved: %+v", res)
	}
}

// TestDeniedIsNotAsked: nobody is asked about a call that is denied in any case; the layer
// that denies it says so.
func TestDeniedIsNotAsked(t *testing.T) {
	inner := toolsettest.NewInner()
	for _, denied := range []bool{true, false} {
		tools := Approving(inner, ApproveWrites, func(context.Context, *dragoman.Call) bool { return denied })
		list, err := tools.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		res, err := tools.Call(t.Context(), dragoman.Call{Tool: list.Tools.Find(toolsettest.Write), Arguments: []byte(`{"a":1}`), Can: dragoman.AskApproval})
		if err != nil || (res.Asks == nil) != denied {
			t.Errorf("denied: %v: %+v, %v", denied, res, err)
		}
	}
}
