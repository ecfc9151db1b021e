package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// current returns the client, or waits a moment for a server that is starting,
// or starting again. A client that has lost its server is none.
func (s *server) current(ctx context.Context) *mcp.Client {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		s.mu.Lock()
		client, moved, status := s.client, s.moved, s.status
		s.mu.Unlock()
		if client != nil {
			select {
			case <-client.Done():
			default:
				return client
			}
		}
		if status.State == dragoman.Stopped || status.State == dragoman.Failed && time.Until(status.Retry) > 3*time.Second {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil
		}
	}
}

// call runs one call within the time that the server has for it.
func (s *server) call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	limited, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-limited.Done():
		if ctx.Err() != nil {
			return dragoman.Result{}, context.Cause(ctx)
		}
		return dragoman.Result{Problem: s.busy(), Ran: dragoman.RanNot}, nil
	}
	if ctx.Err() != nil {
		// The turn came with the end, which frees the slots of others.
		return dragoman.Result{}, context.Cause(ctx)
	}
	res, err := s.attempt(limited, call)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		if res.Problem == nil {
			res.Problem = s.timedOut(call.Tool)
		}
		return res, nil
	}
	return res, err
}

// attempt runs one call. A call that was provably not sent is sent once more, if
// need be over a new connection; one whose outcome is unknown only if running it
// twice does no harm. Beside the error of ctx there is a problem if the call was
// never made.
func (s *server) attempt(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	for again := false; ; again = true {
		client := s.current(ctx)
		switch {
		case ctx.Err() != nil && again:
			return dragoman.Result{}, context.Cause(ctx)
		case ctx.Err() != nil:
			return dragoman.Result{Problem: s.busy(), Ran: dragoman.RanNot}, context.Cause(ctx)
		case client == nil:
			return dragoman.Result{Problem: s.unavailable(), Ran: dragoman.RanNot}, nil
		}
		res, err := client.Call(ctx, call)
		if err != nil || res.Problem == nil || again || !repeatable(call.Tool, &res) {
			return res, err
		}
		s.log.Info("calling again", "tool", call.Tool.Original, "after", res.Problem.Code)
		// A moment for the client to find out that its server is gone.
		select {
		case <-client.Done():
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// repeatable reports whether a call of t that came to r is to be made again: not
// when the server asks for time.
func repeatable(t *dragoman.Tool, r *dragoman.Result) bool {
	switch r.Problem.Code {
	case dragoman.CodeServerUnavailable, dragoman.CodeUnknownOutcome:
		return r.Problem.RetryAfter == 0 && (r.Ran == dragoman.RanNot || t.Effect() != dragoman.MayChange)
	}
	return false
}

// timedOut is the problem of a call that the server did not answer in its time.
func (s *server) timedOut(t *dragoman.Tool) *dragoman.Problem {
	return dragoman.Unanswered(t, fmt.Sprintf("The server %q gave no answer within %s.", s.label, s.config.Timeout))
}

// busy is the problem of a call that never had its turn.
func (s *server) busy() *dragoman.Problem {
	return &dragoman.Problem{
		Code:       dragoman.CodeServerUnavailable,
		Message:    fmt.Sprintf("The server %q is busy with other calls; the call was not made. Try again later.", s.label),
		RetryAfter: 5 * time.Second,
	}
}

// unavailable is what a model is told about a server that is not connected.
func (s *server) unavailable() *dragoman.Problem {
	state := s.state()
	p := &dragoman.Problem{
		Code:    dragoman.CodeServerUnavailable,
		Message: fmt.Sprintf("The server %q is not available now; the call was not made.", s.label),
	}
	if state.Problem != nil && state.Problem.Code == dragoman.CodeNeedsAuthorization {
		return state.Problem
	}
	if !state.Retry.IsZero() {
		p.RetryAfter = max(time.Second, time.Until(state.Retry).Round(time.Second))
	}
	return p
}
