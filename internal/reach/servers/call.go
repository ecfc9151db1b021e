package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// patience is how long a call waits for its turn, and for a server that is coming
// back.
const patience = 30 * time.Second

// current returns the client, or waits for a server that is starting, or starting
// again. A client that has lost its server is none.
func (c *connection) current(ctx context.Context) *mcp.Client {
	var timer *time.Timer
	for {
		c.mu.Lock()
		client, moved, status := c.client, c.moved, c.status
		c.mu.Unlock()
		if client != nil {
			select {
			case <-client.Done():
			default:
				return client
			}
		}
		switch {
		case status.State == dragoman.Stopped,
			status.Problem != nil && status.Problem.Code == dragoman.CodeNeedsAuthorization:
			return nil
		}
		if timer == nil {
			observe.Current(ctx).Event(observe.EventReconnect, observe.Text(observe.Server, c.label))
			wait := patience
			defer c.await()()
			if status.State == dragoman.Failed && time.Since(status.Since) > patience {
				wait = 2 * retryFor // it is not expected, but may have just come back
			}
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		select {
		case <-moved:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// await lets the server be tried again soon, until the returned function is called.
func (c *connection) await() (end func()) {
	c.waiting.Add(1)
	select {
	case c.wanted <- struct{}{}:
	default:
	}
	return func() { c.waiting.Add(-1) }
}

// waits reports whether a call lasts as long as somebody listens, or as a task
// takes; such a call does nothing, and takes no slot.
func waits(call *dragoman.Call) bool {
	return call.Method == "subscriptions/listen" || call.Method == "tasks/result"
}

// call runs one call when it has its turn. A call that goes on with answers has
// had it.
func (c *connection) call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Answers != nil || waits(&call) {
		return c.attempt(ctx, call)
	}
	select {
	case c.slots <- struct{}{}:
	default:
		began := time.Now()
		timer := time.NewTimer(patience)
		defer timer.Stop()
		c.queued.Add(1)
		select {
		case c.slots <- struct{}{}:
			c.queued.Add(-1)
			observe.Current(ctx).Event(observe.EventQueue, observe.Text(observe.Server, c.label), observe.Seconds(observe.Waited, time.Since(began).Seconds()))
		case <-timer.C:
			c.queued.Add(-1)
			return dragoman.Result{Problem: c.busy(), Ran: dragoman.RanNot}, nil
		case <-ctx.Done():
			c.queued.Add(-1)
			return dragoman.Result{Ran: dragoman.RanNot}, context.Cause(ctx)
		}
	}
	defer func() { <-c.slots }()
	return c.attempt(ctx, call)
}

// attempt runs one call. A call that was provably not made is made once more, if
// need be over a new connection; one whose outcome is unknown only if running it
// twice does no harm.
func (c *connection) attempt(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	for again := false; ; again = true {
		if ctx.Err() != nil && call.Answers == nil {
			// The turn came with the end, which frees the slots of others.
			return dragoman.Result{Ran: dragoman.RanNot}, context.Cause(ctx)
		}
		client := c.current(ctx)
		switch {
		case client == nil && ctx.Err() != nil:
			return dragoman.Result{Ran: dragoman.RanNot.After(call.Answers)}, context.Cause(ctx)
		case client == nil:
			return dragoman.Result{Problem: c.unavailable(), Ran: dragoman.RanNot.After(call.Answers)}, nil
		}
		c.catchUp(ctx, client, &call)
		if res, held := c.withheld(ctx, client, call); held {
			return res, nil
		}
		if !again {
			c.retries.Sent()
		}
		began, heard := time.Now(), client.Heard()
		res, err := client.Call(ctx, call)
		if err != nil {
			return res, err
		}
		c.asksOld(client, &call, &res)
		if res.Problem == nil {
			c.judgeSkill(&call, &res)
			return res, nil
		}
		res.Problem = c.masked(c.worded(res.Problem))
		if res.Problem.Code == dragoman.CodeTimeout || res.Problem.Code == dragoman.CodeUnknownOutcome || lost(res.Problem) {
			c.doubted(!lost(res.Problem) && time.Since(began) >= c.config.Timeout && client.Heard() == heard)
		}
		if again || !repeatable(&call, &res) || !lost(res.Problem) && !c.retries.Spend() {
			return res, nil
		}
		observe.Current(ctx).Event(observe.EventAgain, observe.Text(observe.ErrorType, res.Problem.Code))
		c.log.Info("calling again", "tool", call.Tool.Original, "after", res.Problem.Code)
		// A moment for the client to find out that its server is gone: of a local one, once
		// its process has ended.
		moment := 100 * time.Millisecond
		if c.config.URL == "" && lost(res.Problem) {
			moment = patience
		}
		select {
		case <-client.Done():
		case <-time.After(moment):
		case <-ctx.Done():
		}
	}
}

// lost reports whether a call came to nothing because the way to the server broke.
func lost(p *dragoman.Problem) bool {
	_, ok := errors.AsType[*mcp.TransportError](p)
	return ok
}

// repeatable reports whether a call that came to r is to be made again: where the
// way to the server broke, or the server had trouble and did not ask for time.
// What the call may have changed is never changed twice.
func repeatable(call *dragoman.Call, r *dragoman.Result) bool {
	if call.Answers != nil || call.Tool == nil || r.Ran == dragoman.RanYes {
		return false // a task that was made is not made again
	}
	status, refused := errors.AsType[*mcp.StatusError](r.Problem)
	refused = refused && status.RetryAfter == 0 && (status.Status >= 500 || status.Status == http.StatusTooManyRequests)
	return (refused || lost(r.Problem)) && (r.Ran == dragoman.RanNot || call.Tool.Effect() != dragoman.MayChange)
}

// busy is the problem of a call that never had its turn.
func (c *connection) busy() *dragoman.Problem {
	return &dragoman.Problem{
		Code:       dragoman.CodeServerUnavailable,
		Message:    fmt.Sprintf("The server %q is busy with other calls; the call was not made. Try again later.", c.label),
		RetryAfter: 5 * time.Second,
	}
}

// unavailable is what a model is told about a server that is not connected.
func (c *connection) unavailable() *dragoman.Problem {
	state := c.state()
	p := &dragoman.Problem{
		Code:    dragoman.CodeServerUnavailable,
		Message: fmt.Sprintf("The server %q is not available now; the call was not made.", c.label),
	}
	if state.Problem != nil && state.Problem.Code == dragoman.CodeNeedsAuthorization {
		return state.Problem
	}
	if !state.Retry.IsZero() {
		p.RetryAfter = max(time.Second, time.Until(state.Retry).Round(time.Second))
	}
	return p
}
