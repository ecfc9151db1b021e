package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// ReviewApprovals is the name of the tool with which somebody who may approve calls
// of others has their MCP client ask about them.
const ReviewApprovals = "review_approvals"

const reviewDefinition = `{"name":"` + ReviewApprovals + `","title":"Review approvals",` +
	`"description":"Shows the person at this client, one after the other, the calls of other callers that wait for an approval, and lets the person decide. It takes no arguments and decides nothing by itself. It returns how many were approved and denied.",` +
	`"inputSchema":{"type":"object","properties":{},"additionalProperties":false},` +
	`"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`

// ReviewTool returns the definition of review_approvals.
func ReviewTool() dragoman.Tool {
	no, yes := false, true
	return dragoman.Tool{
		Definition: json.RawMessage(reviewDefinition), Name: ReviewApprovals, Original: ReviewApprovals, Title: "Review approvals",
		Hints: dragoman.Hints{ReadOnly: &no, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Pin:   dragoman.Pin("", ReviewApprovals, json.RawMessage(reviewDefinition)),
	}
}

// Bounds of a review: how many questions one call asks, and how long arguments may
// be that a form shows, in bytes.
const (
	maxReviewed = 10
	maxForm     = 16 << 10
)

// reviewable is a stack that also runs review_approvals. It does not list it: the
// door offers it to those who have something to decide and a client that shows forms.
//
// What the person decides comes as the answer to a question, and never in the
// arguments, which a model writes. It is for the approval that was shown, by its ID
// and the digest of its arguments, and is given to the inbox like anybody's: which
// knows who may answer what, and that nobody answers for themselves.
type reviewable struct {
	dragoman.Toolset
	inbox *approval.Inbox
	who   caller.Caller
}

// A review is how far the person has come.
type review struct {
	Asked    string         `json:"asked"` // the ID of the approval that is shown
	Digest   canonical.Hash `json:"digest"`
	Approved int            `json:"approved,omitempty"`
	Denied   int            `json:"denied,omitempty"`
	Gone     int            `json:"gone,omitempty"`  // answered or expired meanwhile
	Later    []string       `json:"later,omitempty"` // IDs
}

func (t reviewable) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if c := call.Tool; c == nil || c.Server != "" || c.Original != ReviewApprovals {
		return t.Toolset.Call(ctx, call)
	}
	if o, err := rawjson.ParseObject(call.Arguments); len(call.Arguments) > 0 && (err != nil || len(o.Members) > 0) {
		return dragoman.Failure(dragoman.CodeInvalidArguments, "It takes no arguments: the person at the client decides, in a form."), nil
	}
	if call.Can&dragoman.AskForm == 0 {
		return dragoman.Failure(dragoman.CodeDenied, "This client shows no forms (elicitation), so nobody can be asked here. Approvals are also answered with \"dragoman approve\" and POST /approvals/ID."), nil
	}
	var r review
	if a := call.Answers; a != nil {
		if err := json.Unmarshal(a.State, &r); err != nil {
			return dragoman.Failure(dragoman.CodeDenied, "The answers do not belong to this call, so it was not continued."), nil
		}
		goOn, err := t.decide(ctx, &r, a.Replies[reviewKey])
		if err != nil {
			return dragoman.Result{}, err
		}
		if !goOn || a.Gone {
			return t.reviewed(ctx, &r)
		}
	}
	return t.next(ctx, &r)
}

// decide gives the inbox what the person decided about the approval that was shown,
// and reports whether they want to see another. Whoever closes a form, or answers
// anything else, has decided nothing.
func (t reviewable) decide(ctx context.Context, r *review, reply json.RawMessage) (goOn bool, err error) {
	o, bad := rawjson.ParseObject(reply)
	if bad != nil {
		return false, nil
	}
	if action, _ := rawjson.String(o.Get("action")); action != "accept" {
		return false, nil
	}
	var decision, why string
	if content, bad := rawjson.ParseObject(o.Get("content")); bad == nil {
		decision, _ = rawjson.String(content.Get("decision"))
		why, _ = rawjson.String(content.Get("why"))
	}
	switch decision {
	case "approve", "deny":
		_, err = t.inbox.Answer(ctx, t.who, approval.Answer{ID: r.Asked, Digest: &r.Digest, Approve: decision == "approve", Why: why})
		switch {
		case err != nil:
		case decision == "approve":
			r.Approved++
		default:
			r.Denied++
		}
	default:
		r.Later = append(r.Later, r.Asked)
	}
	if errors.Is(err, approval.ErrDecided) || errors.Is(err, approval.ErrNotFound) || errors.Is(err, approval.ErrNotApprover) || errors.Is(err, approval.ErrOwn) {
		r.Gone++
		err = nil
	}
	return true, err
}

// waiting returns what the person may answer: what they are shown, and no rule keeps
// for others.
func (t reviewable) waiting(ctx context.Context) ([]approval.Approval, error) {
	all, err := t.inbox.Waiting(ctx, t.who)
	return slices.DeleteFunc(all, func(a approval.Approval) bool { return a.MayDecide(approval.PersonOf(t.who)) != nil }), err
}

// next shows the approval that waits longest, but for those that are left for later;
// or says what came of the review where there is none.
func (t reviewable) next(ctx context.Context, r *review) (dragoman.Result, error) {
	if r.Approved+r.Denied+r.Gone+len(r.Later) >= maxReviewed {
		return t.reviewed(ctx, r)
	}
	waiting, err := t.waiting(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	at := slices.IndexFunc(waiting, func(a approval.Approval) bool { return len(a.Arguments) <= maxForm && !slices.Contains(r.Later, a.ID) })
	if at < 0 {
		return t.reviewed(ctx, r)
	}
	a := &waiting[at]
	r.Asked, r.Digest = a.ID, a.Digest
	state, err := json.Marshal(r)
	if err != nil {
		return dragoman.Result{}, err
	}
	return dragoman.Result{Ran: dragoman.RanYes, Asks: &dragoman.Asks{
		Questions: []dragoman.Question{{Key: reviewKey, Kind: dragoman.AskForm, Params: form(a)}}, State: state,
	}}, nil
}

// reviewKey names the question.
const reviewKey = "decision"

// reviewForm is what the person fills in. Nothing is chosen for them, and what a
// client would choose that fills in forms by itself decides nothing.
const reviewForm = `{"type":"object","properties":{` +
	`"decision":{"type":"string","title":"Decision","description":"approve: the call runs once, with exactly these arguments. deny: it does not. later: it goes on waiting.","enum":["later","deny","approve"]},` +
	`"why":{"type":"string","title":"Reason","description":"Where it is denied, the model that made the call is told this.","maxLength":1000}},"required":["decision"]}`

// effects are what tools may do, for people.
var effects = map[string]string{
	dragoman.MayChange.String():  "change something",
	dragoman.Idempotent.String(): "change something, which is the same when it is done twice",
	dragoman.ReadOnly.String():   "only read",
}

// form is the question about an approval. What others wrote stands in it as JSON does,
// on one line each, so that none of it looks like ours.
func form(a *approval.Approval) json.RawMessage {
	var b strings.Builder
	b.WriteString("Somebody wants to run a tool. It runs with exactly these arguments, once, if you approve it.\n")
	said := func(text string) string { return canonical.Readable(rawjson.Quote(clip.Text(text, 400))) }
	fmt.Fprintf(&b, "\nTool: %s of the server %s", said(a.Tool), said(a.Server))
	fmt.Fprintf(&b, "\nWhat it may do: %s", cmp.Or(effects[a.Effect], effects[dragoman.MayChange.String()]))
	fmt.Fprintf(&b, "\nCaller: %s", said(a.Caller))
	if a.CallerName != "" && a.CallerName != a.Caller {
		fmt.Fprintf(&b, ", which is called %s", said(a.CallerName))
	}
	fmt.Fprintf(&b, "\nRule: %s", said(a.Rule))
	fmt.Fprintf(&b, "\nApproval: %s, until %s", a.ID, a.Expires.UTC().Format(time.DateTime+" MST"))
	fmt.Fprintf(&b, "\nArguments, all of them:\n%s", canonical.Readable(a.Arguments))
	params := rawjson.Object{}
	params.Set("message", rawjson.Quote(b.String()))
	params.Set("requestedSchema", json.RawMessage(reviewForm))
	return params.Bytes()
}

// reviewed is what the model is told: how many, and nothing of what they were.
func (t reviewable) reviewed(ctx context.Context, r *review) (dragoman.Result, error) {
	waiting, err := t.waiting(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	text := fmt.Sprintf("Approved: %d. Denied: %d. Still waiting: %d.", r.Approved, r.Denied, len(waiting))
	if r.Gone > 0 {
		text += fmt.Sprintf(" Answered by others or expired meanwhile: %d.", r.Gone)
	}
	if slices.ContainsFunc(waiting, func(a approval.Approval) bool { return len(a.Arguments) > maxForm }) {
		text += " Some have arguments too long for a form: \"dragoman approve\" shows them."
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: json.RawMessage(`{"content":[{"type":"text","text":` + string(rawjson.Quote(text)) + `}]}`)}, nil
}
