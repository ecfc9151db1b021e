package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
)

// Call judges a call, and lets it run.
func (t *gated) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	switch {
	case !t.who.Caller.Valid():
		return dragoman.Failure(dragoman.CodeDenied, "Nobody is asking."), nil
	case own(&call):
		// What is ours gives back what the caller was given before.
		return t.tools.Call(ctx, call)
	case aboutTask(&call):
		return t.task(ctx, call)
	case call.Answers == nil:
		return t.start(ctx, call, passage{})
	}
	p, ok := passed(call.Answers.State)
	switch {
	case !ok:
		return dragoman.Result{Problem: &dragoman.Problem{Code: dragoman.CodeDenied, Message: "The answers do not belong to this call, so it was not continued."}}, nil
	case p.began:
		return t.goOn(ctx, call, p)
	}
	gone := call.Answers.Gone
	call.Answers = nil
	if gone {
		// Whoever waited has left; what was asked stays, and is found again.
		return t.pending(p.approval), nil
	}
	return t.start(ctx, call, p)
}

// own reports whether a call is of a tool of ours, such as read_more.
func own(call *dragoman.Call) bool { return call.Tool != nil && call.Tool.Server == "" }

// start is the first leg of a call, or the one that comes back when somebody has
// been asked for it. This is the order in which everything is judged.
func (t *gated) start(ctx context.Context, call dragoman.Call, p passage) (dragoman.Result, error) {
	r := t.about(ctx, &call)

	v := t.judge(ctx, &call)
	r.Verdict, r.Rule = v.Effect.String(), v.Rule
	observe.Current(ctx).Event(observe.EventGate, observe.Text(observe.Verdict, r.Verdict), observe.Text(observe.Rule, r.Rule))
	if v.Effect == policy.Deny {
		return t.denied(r, v.Problem()), nil
	}

	leave, problem := t.enter(ctx, &call, func() bool {
		return v.Effect == policy.Ask && t.askedAbout(ctx, &call, r.Digest, v, p.approval)
	})
	if problem != nil {
		return t.denied(r, problem), nil
	}
	var res dragoman.Result
	defer func() { leave(res) }()

	var spend func(*store.Tx) error
	if v.Effect == policy.Ask {
		a, answer, err := t.approved(ctx, &call, r.Digest, v, p.approval)
		r.Approval = a.ID
		r.Answered = answeredIn(&a)
		if answer != nil {
			res = *answer
			t.asked(r, &res)
			return res, err
		}
		spend = t.o.Inbox.Spend(a.ID, t.key(&call, r.Digest), call.ID)
	}

	problem, err := t.intend(ctx, r, &call, spend)
	if problem != nil {
		res = t.denied(r, problem)
		return res, err
	}

	res, err = t.run(ctx, call, r)
	return res, err
}

// goOn is a later leg of a call that has begun. What is asked of it may be more than
// when it began, such as in a conversation that was tainted meanwhile: then the
// server is told that nobody will answer.
func (t *gated) goOn(ctx context.Context, call dragoman.Call, p passage) (dragoman.Result, error) {
	r := t.about(ctx, &call)
	r.Approval = p.approval
	answers := *call.Answers
	answers.State = p.inner
	call.Answers = &answers
	v := t.judge(ctx, &call)
	r.Verdict, r.Rule = v.Effect.String(), v.Rule
	ends := v.Effect == policy.Deny || v.Effect == policy.Ask && !t.satisfied(ctx, p.approval, v)
	if problem, err := t.nextLeg(ctx, r, &call, p.leg, ends); problem != nil {
		switch {
		case errors.Is(problem, errLegSpent):
			r.Verdict, r.Rule = audit.Deny, policy.RuleInvalid
		case errors.Is(problem, errUnwritten):
			t.giveUp(ctx, call)
		}
		res := t.denied(r, problem)
		res.Ran = answers.Ran
		return res, err
	}
	if ends {
		t.giveUp(ctx, call)
		problem := v.Problem()
		if problem == nil {
			problem = &dragoman.Problem{Code: dragoman.CodeDenied, Message: v.Reason + " The call had begun without, and was given up."}
		}
		res := t.denied(r, problem)
		res.Ran = answers.Ran
		return res, nil
	}
	return t.run(ctx, call, r)
}

// giveUp tells the server that nobody will answer what it asks in a call.
func (t *gated) giveUp(ctx context.Context, call dragoman.Call) {
	call.Answers.Gone = true
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ended, _ := t.tools.Call(ctx, call)
	t.read(ctx, &call, &ended)
}

// nextLeg uses the leg that a call goes on with, or ends with; empty for one that may go
// on often. In the store it does so in the transaction that writes the intent.
func (t *gated) nextLeg(ctx context.Context, r audit.Record, call *dragoman.Call, leg string, ends bool) (*dragoman.Problem, error) {
	if leg == "" {
		return nil, nil
	}
	spend, err := t.remembered.spend(t.who.Caller.ID, leg)
	switch {
	case err != nil:
		return legSpent(), nil
	case spend == nil:
		return nil, nil
	case ends, call.Answers.Gone:
		err = t.o.Store.Write(ctx, spend)
	default:
		return t.intend(ctx, r, call, spend)
	}
	if errors.Is(err, errLegSpent) {
		return legSpent(), nil
	}
	if err != nil {
		return t.unwritten(ctx, r, dragoman.RanNot.After(call.Answers), err), nil
	}
	return nil, nil
}

func legSpent() *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeUnknownOutcome,
		Message: "The call that the answers are for has gone on with others already, or was forgotten. It may or may not have taken effect: check before you repeat it.",
		Err:     errLegSpent,
	}
}

// run lets a call run, and writes down what came of it. An approval is given back
// for a call that provably did not run.
func (t *gated) run(ctx context.Context, call dragoman.Call, r audit.Record) (dragoman.Result, error) {
	if r.Approval != "" {
		call.Meta = nil // nobody was shown it, so nobody approved it
	}
	began := time.Now()
	res, err := t.tools.Call(ctx, call)
	t.read(ctx, &call, &res)
	took := res.Info.Duration
	if took == 0 {
		took = time.Since(began)
	}
	t.usedTool(&call, &res, took)
	if r.Approval != "" && res.Ran.After(call.Answers) == dragoman.RanNot && res.Asks == nil {
		if err := t.o.Inbox.GiveBack(context.WithoutCancel(ctx), r.Approval, call.ID); err != nil {
			t.o.Log.Warn("an approval could not be given back", "approval", r.Approval, "error", err)
		}
	}
	if !listens(&call) || res.Problem != nil {
		r.Came(res)
		r.Microseconds = took.Microseconds()
		if err != nil && r.Code == "" {
			r.Code = dragoman.CodeCanceled
		}
		t.record(r)
	}
	return t.wrapped(&call, res, r.Approval), err
}

// changes reports whether a call may change something, as far as the operator says.
func changes(call *dragoman.Call) bool {
	return call.Tool != nil && call.Tool.Effect() != dragoman.ReadOnly
}

// listens reports whether a call lasts as long as somebody listens: it brings
// nothing, and its end says nothing.
func listens(call *dragoman.Call) bool { return call.Method == "subscriptions/listen" }

// judge asks the policy about all that a call wants. The strictest verdict counts.
func (t *gated) judge(ctx context.Context, call *dragoman.Call) policy.Verdict {
	tainted := t.isTainted(ctx)
	v := t.strictest(func(p *policy.Policy) policy.Verdict { return p.DecideCall(t.who.Caller, *call, tainted) })
	if v.Err != nil {
		t.o.Log.Error("a rule could not be evaluated, so it denied", "rule", v.Rule, "error", v.Err)
	}
	return v
}

func (t *gated) enter(ctx context.Context, call *dragoman.Call, again func() bool) (leave func(dragoman.Result), problem *dragoman.Problem) {
	if listens(call) {
		return func(dragoman.Result) {}, nil
	}
	if problem := t.spent(ctx, call); problem != nil {
		return func(dragoman.Result) {}, problem
	}
	leave, problem = t.o.Limit.Enter(ctx, t.who.Caller, call, again)
	if problem != nil {
		return leave, problem
	}
	if problem := t.spent(ctx, call); problem != nil { // others spent while it waited for its turn
		leave(dragoman.Result{Ran: dragoman.RanNot})
		return func(dragoman.Result) {}, problem
	}
	return leave, nil
}

// spent says why there is no money left for a call; nil where there is.
func (t *gated) spent(ctx context.Context, call *dragoman.Call) *dragoman.Problem {
	if call.Tool == nil {
		return nil
	}
	return t.o.Budget.Admit(ctx, t.who.Caller, true)
}

// orEmpty returns the arguments of a call, which are an object also where it has
// none.
func orEmpty(arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		return json.RawMessage(`{}`)
	}
	return arguments
}

func failure(code, message string) dragoman.Result {
	return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: code, Message: message}}
}

// intend writes down that a call is about to run which may change something, and
// spends what lets it run once. Nothing else has to wait for the disk. An error beside the
// problem ends the whole request.
func (t *gated) intend(ctx context.Context, r audit.Record, call *dragoman.Call, spend func(*store.Tx) error) (*dragoman.Problem, error) {
	if t.o.Audit == nil || !changes(call) && spend == nil {
		return nil, nil
	}
	r.Kind = audit.Intent
	var also []func(*store.Tx) error
	for _, each := range []func(*store.Tx) error{t.who.Claim, spend} {
		if each != nil {
			also = append(also, each)
		}
	}
	err := ctx.Err() // a call that nobody waits for is not made, nor by chance written down
	if err == nil {
		err = t.o.Audit.Behind()
	}
	if err == nil {
		err = t.o.Audit.Intent(ctx, r, also...)
	}
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, idempotency.ErrRunning):
		return madeElsewhere(err), err
	case errors.Is(err, approval.ErrNotSpendable):
		return &dragoman.Problem{Code: CodeApprovalPending, Message: "The approval of this call has just been used by an equal call, or has expired. It did not run. Make it again if it is meant twice."}, nil
	case errors.Is(err, errLegSpent):
		return legSpent(), nil
	}
	return t.unwritten(ctx, r, dragoman.RanNot.After(call.Answers), err), nil
}

// about is the record of a call, without a verdict.
func (t *gated) about(ctx context.Context, call *dragoman.Call) audit.Record {
	r := audit.Record{
		Call: call.ID, Parent: cmp.Or(call.Parent, observe.RequestOf(ctx)), Caller: t.who.Caller.ID, CallerName: t.who.Caller.Name, Door: t.who.Door, Method: call.Method, Server: call.Server,
		Arguments: call.Arguments, In: int64(len(call.Arguments)),
	}
	switch {
	case call.Tool != nil:
		r.Server, r.Target, r.Pin = call.Tool.Server, call.Tool.Original, call.Tool.Pin
		if t.o.Audit != nil || t.o.Inbox != nil {
			r.Digest, _ = canonical.Digest(orEmpty(call.Arguments)) // what is no JSON has no digest, and no approval
		}
	case call.Entry != nil:
		r.Server, r.Target = call.Entry.Server, call.Entry.Original
	}
	return r
}

// denied writes down that a call did not run, and returns its result.
func (t *gated) denied(r audit.Record, problem *dragoman.Problem) dragoman.Result {
	r.Kind, r.Code, r.Ran = audit.Decision, problem.Code, dragoman.RanNot.String()
	t.record(r)
	return dragoman.Result{Ran: dragoman.RanNot, Problem: problem}
}

// asked writes down that somebody is asked, or what came of it.
func (t *gated) asked(r audit.Record, res *dragoman.Result) {
	r.Kind, r.Ran = audit.Decision, dragoman.RanNot.String()
	if res.Problem != nil {
		r.Code = res.Problem.Code
	}
	t.record(r)
}
