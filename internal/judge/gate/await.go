package gate

import (
	"context"
	"errors"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
)

// ErrDenied: what waited for an approval would not be allowed with one any more.
var ErrDenied = errors.New("the policy denies the call meanwhile")

// Await is [approval.Inbox.Wait] for a call that waits for that approval, and ends with
// [ErrDenied] once a newer policy denies the call.
func (g *Gate) Await(ctx context.Context, who Client, call dragoman.Call, id string) (approval.Approval, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			replaced := *g.replaced.Load()
			if g.denies(who, &call) {
				cancel(ErrDenied)
			}
			select {
			case <-replaced:
			case <-ctx.Done():
				return
			}
		}
	}()
	a, err := g.Inbox().Wait(ctx, id)
	if errors.Is(context.Cause(ctx), ErrDenied) {
		err = ErrDenied
	}
	cancel(nil)
	<-watched
	return a, err
}

// denies reports whether the newest policy denies a call whatever anybody approves.
func (g *Gate) denies(who Client, call *dragoman.Call) bool {
	newest := &gated{Gate: g, began: g.policy.Load(), who: who}
	return newest.judge(call).Effect == policy.Deny
}
