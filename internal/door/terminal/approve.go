package terminal

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/frame"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Approve says before which calls a person is asked.
type Approve int

const (
	// ApproveDestructive, the zero Approve: before calls of tools that say they are
	// destructive.
	ApproveDestructive Approve = iota
	// ApproveWrites: before calls of all tools that may change something.
	ApproveWrites
	// ApproveNothing asks nobody.
	ApproveNothing
)

// asks reports whether a person is asked before a call of a tool.
func (a Approve) asks(t *dragoman.Tool) bool {
	switch {
	case t == nil || t.Effect() == dragoman.ReadOnly:
		return false
	case a == ApproveWrites:
		return t.Writes()
	case a == ApproveDestructive:
		return t.Hints.Destructive != nil && *t.Hints.Destructive && t.Writes()
	}
	return false
}

// Approving returns the tools with a question before the calls that a says. Where
// nobody can be asked, such a call is denied. It is the outermost layer of a stack
// whose results do not leave this process.
func Approving(tools dragoman.Toolset, a Approve) dragoman.Toolset {
	l := &approving{Toolset: tools, which: a, key: make([]byte, 32)}
	_, _ = rand.Read(l.key) // it never fails
	return l
}

type approving struct {
	dragoman.Toolset
	which Approve
	key   []byte
}

// approvalKey names our question among those of a call.
const approvalKey = "approval"

// Call implements [dragoman.Toolset]. The frame of a call has a proof: that this very call
// was asked about, or, once it has begun, that it was approved.
func (l *approving) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if !l.which.asks(call.Tool) {
		return l.Toolset.Call(ctx, call)
	}
	if call.Answers == nil {
		return l.ask(&call), nil
	}
	switch f, ok := frame.Read(call.Answers.State, 1); {
	case !ok || !hmac.Equal([]byte(f.Fields[0]), l.proof(f.Began, &call)):
		// What an earlier leg of whatever call this continues did, nobody knows here.
		return dragoman.Result{Problem: &dragoman.Problem{
			Code: dragoman.CodeUnanswered, Message: "These are answers to a question that was not asked about this call.",
		}}, nil
	case f.Began:
		answers := *call.Answers
		answers.State = f.Inner
		call.Answers = &answers
	case call.Answers.Gone:
		return dragoman.Failure(dragoman.CodeUnanswered, "Nobody answered whether this call may run. It did not run."), nil
	case !accepts(call.Answers.Replies[approvalKey]):
		return dragoman.Failure(dragoman.CodeDenied, "The user does not want this call. It did not run. Do not try it again in another way: ask the user."), nil
	default:
		call.Answers = nil
	}
	res, err := l.Toolset.Call(ctx, call)
	if res.Asks != nil && res.Asks.State != nil {
		asks := *res.Asks
		asks.State = l.framed(true, &call, asks.State)
		res.Asks = &asks
	}
	return res, err
}

// ask is the result of a call that nobody was asked about yet.
func (l *approving) ask(call *dragoman.Call) dragoman.Result {
	if call.Can&dragoman.AskApproval == 0 {
		return dragoman.Failure(dragoman.CodeDenied, "This call needs somebody's approval, and nobody can be asked. It did not run.")
	}
	message := "This tool may change something."
	if l.which == ApproveDestructive {
		message = "This tool says that it may delete or overwrite something."
	}
	return dragoman.Result{Ran: dragoman.RanNot, Asks: &dragoman.Asks{
		State: l.framed(false, call, nil),
		Questions: []dragoman.Question{{
			Key: approvalKey, Kind: dragoman.AskApproval, Server: call.Tool.Server,
			Params: json.RawMessage(`{"message":` + string(rawjson.Quote(message)) + `}`),
		}},
	}}
}

// framed returns the state of a call about which somebody was asked, or which was
// approved and has begun.
func (l *approving) framed(began bool, call *dragoman.Call, inner []byte) []byte {
	return frame.Frame{Began: began, Fields: []string{string(l.proof(began, call))}, Inner: inner}.Bytes()
}

// proof returns what nobody can make for a call but us.
func (l *approving) proof(began bool, call *dragoman.Call) []byte {
	what := "asked\n"
	if began {
		what = "approved\n"
	}
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(what))
	mac.Write(call.Tool.Pin[:])
	mac.Write(call.Arguments)
	return mac.Sum(nil)
}

// accepts reports whether a reply is a yes.
func accepts(reply json.RawMessage) bool {
	var r struct{ Action string }
	return json.Unmarshal(reply, &r) == nil && r.Action == "accept"
}
