package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/state/idempotency"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// CodeApprovalPending: somebody has to approve the call, and has not yet. The same
// call finds the answer when it is made again.
const CodeApprovalPending = "approval_pending"

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

	leave, problem := t.enter(ctx, &call, v.Effect == policy.Ask && t.askedAbout(ctx, &call, r.Digest, v, p.approval))
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
		if problem.Code == dragoman.CodeUnknownOutcome {
			r.Verdict, r.Rule = audit.Deny, policy.RuleInvalid
		}
		res := t.denied(r, problem)
		res.Ran = answers.Ran
		return res, err
	}
	if ends {
		call.Answers.Gone = true
		ended, _ := t.tools.Call(ctx, call)
		t.read(ctx, &call, &ended)
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
		return t.unwritten(ctx, r, err), nil
	}
	return nil, nil
}

func legSpent() *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeUnknownOutcome,
		Message: "The call that the answers are for has gone on with others already, or was forgotten. It may or may not have taken effect: check before you repeat it.",
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

// satisfied reports whether a call was begun with an approval of what is asked of it
// now.
func (t *gated) satisfied(ctx context.Context, id string, v policy.Verdict) bool {
	if id == "" || t.o.Inbox == nil {
		return false
	}
	a, err := t.o.Inbox.Get(ctx, id)
	return err == nil && a.Satisfies(v.Rule, v.Approvers)
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

func (t *gated) enter(ctx context.Context, call *dragoman.Call, again bool) (leave func(dragoman.Result), problem *dragoman.Problem) {
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

// approved returns the approval of a call where somebody has given it, or else what
// the caller is answered: that it is asked for, or was denied. An error beside that ends the
// whole request.
func (t *gated) approved(ctx context.Context, call *dragoman.Call, digest audit.Hash, v policy.Verdict, waited string) (approval.Approval, *dragoman.Result, error) {
	if t.o.Inbox == nil || t.o.Audit == nil || call.Tool == nil {
		// Without a log no approval could be spent. What is no call of a tool cannot
		// wait: it is asked for by programs.
		res := failure(dragoman.CodeDenied, v.Reason+" It cannot be asked for here. It did not run.")
		return approval.Approval{}, &res, nil
	}
	a, err := t.find(ctx, call, digest, v, waited)
	switch {
	case errors.Is(err, idempotency.ErrRunning):
		return a, &dragoman.Result{Ran: dragoman.RanNot, Problem: madeElsewhere(err)}, err
	case errors.Is(err, approval.ErrTooMany):
		res := failure(dragoman.CodeDenied, "Too many calls wait for somebody's approval already. It did not run.")
		return a, &res, nil
	case errors.Is(err, approval.ErrTooLarge):
		res := failure(dragoman.CodeDenied, v.Reason+" Its arguments are longer than anybody would read: split it up. It did not run.")
		return a, &res, nil
	case err != nil && ctx.Err() != nil:
		return a, &dragoman.Result{Ran: dragoman.RanNot, Problem: endedBefore()}, nil
	case err != nil:
		t.o.Log.Error("an approval could not be asked for", "error", err)
		res := failure(dragoman.CodeInternal, "Somebody has to approve this call, and the gateway cannot ask now. It did not run.")
		return a, &res, nil
	}
	if a.State != approval.Pending {
		observe.Count(ctx, observe.Approvals, 1, observe.Text(observe.ApprovalState, string(a.State)))
	}
	switch a.State {
	case approval.Approved:
		return a, nil, nil
	case approval.Pending:
		res := t.ask(call, &a)
		return a, &res, nil
	case approval.Denied:
		message := "The call was not approved. It did not run. Do not try it again in another way: tell the user."
		if a.Why != "" {
			message += " The reason given: " + a.Why
		}
		res := failure(dragoman.CodeDenied, message)
		return a, &res, nil
	}
	res := failure(dragoman.CodeDenied, "Nobody approved the call in time. It did not run. Tell the user, who can ask for it again.")
	return a, &res, nil
}

// askedAbout reports whether a call, which somebody has to approve, waited for an answer that
// still counts, or has been approved already. Its place in a rate it took when it was asked about.
func (t *gated) askedAbout(ctx context.Context, call *dragoman.Call, digest audit.Hash, v policy.Verdict, waited string) bool {
	if t.o.Inbox == nil || call.Tool == nil {
		return false
	}
	key := t.key(call, digest)
	if waited != "" {
		if a, err := t.o.Inbox.Get(ctx, waited); err == nil && answers(&a, key, v) {
			return true
		}
	}
	ok, err := t.o.Inbox.Granted(ctx, approval.Request{Key: key, Rule: v.Rule, Approvers: v.Approvers})
	return ok && err == nil
}

// answers reports whether an approval is for a call, as rules ask for it now, and not spent.
func answers(a *approval.Approval, key approval.Key, v policy.Verdict) bool {
	return a.Key == key && a.State != approval.Used && a.Satisfies(v.Rule, v.Approvers)
}

// answeredIn is the record of the answer to an approval; zero where it was given by a program
// that does not name it.
func answeredIn(a *approval.Approval) audit.Head {
	at, err := audit.ParseHead(a.Record)
	if err != nil {
		return audit.Head{}
	}
	return at
}

// find returns the approval that was waited for, or asks.
func (t *gated) find(ctx context.Context, call *dragoman.Call, digest audit.Hash, v policy.Verdict, waited string) (approval.Approval, error) {
	key := t.key(call, digest)
	if waited != "" {
		a, err := t.o.Inbox.Get(ctx, waited)
		if err == nil && answers(&a, key, v) || err != nil && !errors.Is(err, approval.ErrNotFound) {
			return a, err
		}
		// An equal call was quicker to spend it, or other rules ask meanwhile.
	}
	if err := t.elsewhere(ctx); err != nil {
		return approval.Approval{}, err
	}
	tool := call.Tool
	return t.o.Inbox.Ask(ctx, approval.Request{
		Key:       key,
		Arguments: orEmpty(call.Arguments),
		Details: approval.Details{
			CallerName: t.who.Caller.Name, Door: t.who.Door, Call: call.ID, Name: tool.Name, Title: tool.Title,
			Description: tool.Description, Effect: tool.Effect().String(), Reason: v.Reason,
		},
		Rule: v.Rule, Approvers: v.Approvers,
	})
}

// errMayAsk undoes a claim that was made to see whether it can be.
var errMayAsk = errors.New("no other process makes the calls of the request")

// elsewhere is [idempotency.ErrRunning] where another process makes the calls of the request,
// or has made them: nobody is asked about what this one does not make. What claims the
// request is the call itself, once it may run.
func (t *gated) elsewhere(ctx context.Context) error {
	if t.who.Claim == nil {
		return nil
	}
	err := t.o.Store.Write(ctx, func(tx *store.Tx) error { return cmp.Or(t.who.Claim(tx), errMayAsk) })
	if errors.Is(err, idempotency.ErrRunning) {
		return err
	}
	return nil // what else is wrong stops the question, or the intent, too
}

func madeElsewhere(err error) *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "Another process makes the calls of this request. This one was not made.", Err: err}
}

// key is what an approval of a call is bound to.
func (t *gated) key(call *dragoman.Call, digest audit.Hash) approval.Key {
	return approval.Key{Caller: t.who.Caller.ID, Server: call.Tool.Server, Tool: call.Tool.Original, Pin: call.Tool.Pin, Digest: digest}
}

// orEmpty returns the arguments of a call, which are an object also where it has
// none.
func orEmpty(arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		return json.RawMessage(`{}`)
	}
	return arguments
}

// QuestionKey names the question of an approval among those of a call.
const QuestionKey = "operator"

// ask is the result of a call that somebody has to approve.
func (t *gated) ask(call *dragoman.Call, a *approval.Approval) dragoman.Result {
	return dragoman.Result{Ran: dragoman.RanNot, Asks: &dragoman.Asks{
		Questions: []dragoman.Question{{
			Key: QuestionKey, Kind: dragoman.AskApproval, Operator: true, Server: call.Tool.Server,
			Params: json.RawMessage(`{"approval":` + string(rawjson.Quote(a.ID)) + `,"message":` + string(rawjson.Quote(a.Reason)) + `}`),
		}},
		State:   passage{approval: a.ID}.bytes(),
		Expires: time.Now().Add(a.Left + approval.Grace), // by our clock, by which it is waited for
	}}
}

// pending is the result of a call that nobody waits with any longer.
func (t *gated) pending(id string) dragoman.Result {
	res := failure(CodeApprovalPending, fmt.Sprintf("Somebody has to approve this call, and has not yet (approval %s). It did not run. "+
		"Tell the user so. Once it is approved, the same call with the same arguments runs; do not make it before.", id))
	res.Problem.RetryAfter = time.Minute
	return res
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
	err := t.o.Audit.Behind()
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
	return t.unwritten(ctx, r, err), nil
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
