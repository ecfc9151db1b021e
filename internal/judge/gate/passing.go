package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// Passing writes down that a request of a caller is about to be passed on which may
// change something at a model API, with the credentials that are ours: what it is, such
// as "DELETE /v1/files/file-7". It returns once that is on disk, or why the request must
// not be passed on. came has to be called with what came of it, once.
func (g *Gate) Passing(ctx context.Context, who caller.Caller, what string) (came func(dragoman.Result), problem *dragoman.Problem) {
	if g.o.Audit == nil {
		return func(dragoman.Result) {}, nil
	}
	r := audit.Record{Kind: audit.Intent, Caller: who.ID, CallerName: who.Name, Door: "relay", Method: string(policy.Route), Target: what, Verdict: audit.Allow}
	err := g.o.Audit.Behind()
	if err == nil {
		err = g.o.Audit.Intent(ctx, r)
	}
	if err != nil {
		return nil, g.unwritten(ctx, r, dragoman.RanNot, err)
	}
	began := time.Now()
	return func(res dragoman.Result) {
		r.Came(res)
		r.Microseconds = time.Since(began).Microseconds()
		g.record(r)
	}, nil
}

func endedBefore() *dragoman.Problem {
	return &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The conversation ended before this call was made."}
}

// errUnwritten is why a call that had begun did not go on.
var errUnwritten = errors.New("it could not be written down that a call goes on")

// unwritten says why nothing is done that could not be written down. earlier is what a call
// that was to go on has done until then.
func (g *Gate) unwritten(ctx context.Context, r audit.Record, earlier dragoman.Ran, err error) *dragoman.Problem {
	if ctx.Err() != nil {
		if earlier != dragoman.RanNot {
			return &dragoman.Problem{Code: dragoman.CodeUnknownOutcome, Message: "The conversation ended before the call went on. It may or may not have taken effect: check before you repeat it."}
		}
		return endedBefore()
	}
	if earlier != dragoman.RanNot {
		// Nobody may think that it can be made again: it has begun.
		g.o.Log.Error("a call did not go on, because it could not be written down", "server", r.Server, "tool", r.Target, "error", err)
		return &dragoman.Problem{Code: dragoman.CodeUnknownOutcome, Message: "The gateway cannot write down that the call goes on with the answers, so it was not continued. It may or may not have taken effect: check before you repeat it.", Err: fmt.Errorf("%w: %w", errUnwritten, err)}
	}
	g.o.Log.Error("a call did not run, because it could not be written down", "server", r.Server, "tool", r.Target, "error", err)
	p := &dragoman.Problem{Code: dragoman.CodeInternal, Message: "The gateway cannot write down what is done, so nothing that may change something runs now. The call did not run.", RetryAfter: time.Minute, Err: err}
	switch code, after := store.Refusal(err); {
	case errors.Is(err, store.ErrUnknown):
		p.Message = "Whether the call was written down is not known, so it did not run."
	case code == store.CodeBusy:
		p.Message, p.RetryAfter = "The gateway is behind with writing down what is done, so the call did not run. Make it again in a moment.", after
	}
	return p
}
