package gate

import (
	"context"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
)

// aboutTask reports whether a call is about a task that a server made of another one.
func aboutTask(call *dragoman.Call) bool { return strings.HasPrefix(call.Method, "tasks/") }

// task judges what is wanted of a task, and lets it be done. The task is its caller's,
// and the call that it stands for was judged when it was made. Its tool, where the layer
// above knows it, is judged once more: who may not call it any more neither gets what
// came of it nor goes on with it, and may cancel it.
//
// What goes on with a task, or cancels it, is written down before, as calls are that may
// change something. Asking how far it is, which clients do each second, is not.
func (t *gated) task(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	r := t.about(ctx, &call)
	if v := t.judgeTask(ctx, &call); v.Effect == policy.Deny {
		r.Verdict, r.Rule = audit.Deny, v.Rule
		return t.denied(r, v.Problem()), nil
	}
	changes := call.Method == "tasks/update" || call.Method == "tasks/cancel"
	r.Verdict = audit.Allow
	if changes && t.o.Audit != nil {
		r.Kind = audit.Intent
		if err := t.o.Audit.Intent(ctx, r); err != nil {
			return dragoman.Result{Ran: dragoman.RanNot, Problem: t.unwritten(ctx, r, dragoman.RanNot, err)}, nil
		}
	}
	below := call
	below.Tool = nil // it is not called
	res, err := t.tools.Call(ctx, below)
	t.read(ctx, &call, &res)
	if changes {
		r.Came(res)
		t.record(r)
	}
	return res, err
}

func (t *gated) judgeTask(ctx context.Context, call *dragoman.Call) policy.Verdict {
	if call.Tool == nil || call.Method == "tasks/cancel" {
		return policy.Verdict{Effect: policy.Allow, Rule: policy.RuleNone}
	}
	tool := *call.Tool
	if call.Method != "tasks/update" {
		tool.Quarantined = nil // what it did, it did when it was trusted
	}
	tainted := t.isTainted(ctx)
	return t.strictest(func(p *policy.Policy) policy.Verdict { return p.DecideUse(t.who.Caller, &tool, tainted) })
}
