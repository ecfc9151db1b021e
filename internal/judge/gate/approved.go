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
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// CodeApprovalPending: somebody has to approve the call, and has not yet. The same
// call finds the answer when it is made again.
const CodeApprovalPending = "approval_pending"

// approved returns the approval of a call where somebody has given it, or else what
// the caller is answered: that it is asked for, or was denied. An error beside that ends the
// whole request.
func (t *gated) approved(ctx context.Context, call *dragoman.Call, digest audit.Hash, v policy.Verdict, waited string) (approval.Approval, *dragoman.Result, error) {
	if !t.asksFor(call) {
		return approval.Approval{}, &dragoman.Result{Ran: dragoman.RanNot, Problem: nobodyAsked(v)}, nil
	}
	var a approval.Approval
	err := ctx.Err() // nobody is asked about what nobody waits for
	if err == nil {
		a, err = t.find(ctx, call, digest, v, waited)
	}
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

// asksFor reports whether somebody can be asked about a call. Without a log no approval
// could be spent. What is no call of a tool cannot wait: it is asked for by programs.
func (t *gated) asksFor(call *dragoman.Call) bool {
	return t.o.Inbox != nil && t.o.Audit != nil && call.Tool != nil
}

func nobodyAsked(v policy.Verdict) *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeDenied, Message: v.Reason + " It cannot be asked for here. It did not run."}
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

// satisfied reports whether a call was begun with an approval of what is asked of it
// now.
func (t *gated) satisfied(ctx context.Context, id string, v policy.Verdict) bool {
	if id == "" || t.o.Inbox == nil {
		return false
	}
	a, err := t.o.Inbox.Get(ctx, id)
	return err == nil && a.Satisfies(v.Rule, v.Approvers)
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
