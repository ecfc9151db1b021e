package toolkit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// grace is how long a function may take to notice that its context has ended
// before it is abandoned.
const grace = 500 * time.Millisecond

// A Rate limits how often something is called.
type Rate struct {
	// PerSecond is the sustained rate; zero: no limit. 0.1 is one in ten seconds.
	PerSecond float64
	// Burst is how many calls may come at once; zero: PerSecond, at least 1.
	Burst int
}

func (r Rate) limiter() *rate.Limiter {
	if r.PerSecond <= 0 {
		return nil
	}
	burst := r.Burst
	if burst == 0 {
		burst = max(1, int(r.PerSecond))
	}
	return rate.NewLimiter(rate.Limit(r.PerSecond), burst)
}

// admit takes a call from the budget of each limiter, or says when to come back.
func admit(limiters ...*rate.Limiter) error {
	var taken []*rate.Reservation
	for _, l := range limiters {
		if l == nil {
			continue
		}
		r := l.Reserve()
		taken = append(taken, r)
		if wait := r.Delay(); wait > 0 || !r.OK() {
			for _, t := range taken {
				t.Cancel()
			}
			return RetryAfter(max(wait, time.Second), "Too many calls.")
		}
	}
	return nil
}

// A job is one call of an author's function, whatever it is for.
type job struct {
	kind, name string
	arguments  []byte // for the digest in the audit line
	timeout    time.Duration
	changes    bool // the call may have changed something
	raw        bool // a *jsonrpc.Error goes out as it is
	limiters   [2]*rate.Limiter
	client     *sdk.Implementation
	session    *sdk.ServerSession
}

// do runs the author's function under the job's limits and writes the audit
// line. The error it returns can be shown: a *Refusal, a *jsonrpc.Error of a raw
// tool, or the error of a context that the caller has ended.
func do[T any](ctx context.Context, s *Server, j job, run func(context.Context) (T, error)) (T, error) {
	s.calls.enter()
	defer s.calls.leave()
	start := time.Now()
	e := entry{kind: j.kind, name: j.name, arguments: j.arguments, outcome: "ok"}
	if j.client != nil {
		e.client = j.client.Name
	}
	if j.session != nil {
		e.session = j.session.ID()
	}
	var out T
	err := admit(j.limiters[0], j.limiters[1])
	if err == nil {
		out, err = bounded(ctx, j.timeout, run)
	}
	if err != nil {
		var none T
		out = none
		err = s.judge(ctx, j, &e, err)
	}
	e.took = time.Since(start)
	s.trail.write(s.name, e)
	return out, err
}

// bounded runs f for at most the timeout, in a goroutine of its own, so that a
// function that does not look at its context cannot hold the caller.
func bounded[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	type answer struct {
		out T
		err error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = &crash{p, debug.Stack()}
			}
			answers <- a
		}()
		a.out, a.err = f(ctx)
	}()
	select {
	case a := <-answers:
		return a.out, late(ctx, a.err)
	case <-ctx.Done():
	}
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case a := <-answers:
		return a.out, late(ctx, a.err)
	case <-wait.C:
		var none T
		return none, context.Cause(ctx)
	}
}

// late replaces the error of a function that failed because its time was up by
// that fact. A result that came at the last moment counts.
func late(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

var errTimeout = errors.New("toolkit: time limit reached")

// A crash is a panic in an author's function.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("panic: %v", c.value) }

// judge decides what the caller may know of an error, and logs the rest.
func (s *Server) judge(ctx context.Context, j job, e *entry, err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		e.outcome = r.Code
		return r
	}
	if errors.Is(err, errTimeout) {
		e.outcome = codeTimeout
		text := fmt.Sprintf("%s did not finish within %s.", j.name, seconds(j.timeout))
		if j.changes {
			text += " It may have been carried out all the same; look before you try again."
		} else {
			text += " Ask for less, or try again later."
		}
		return &Refusal{Code: codeTimeout, Message: text}
	}
	if ctx.Err() != nil {
		e.outcome = "canceled"
		return context.Cause(ctx)
	}
	if protocol, ok := err.(*jsonrpc.Error); ok && j.raw {
		e.outcome = "protocol_error"
		return protocol
	}
	e.outcome, e.id = "internal_error", newID()
	log := s.log.With("server", s.name, j.kind, j.name, "error_id", e.id)
	if c, ok := errors.AsType[*crash](err); ok {
		e.outcome = "panic"
		log.ErrorContext(ctx, "the function panicked", "panic", fmt.Sprint(c.value), "stack", string(c.stack))
	} else {
		log.ErrorContext(ctx, "the function failed", "error", err)
	}
	return &Refusal{Code: "internal_error", Message: fmt.Sprintf(
		"Internal error in %s, id %s. The cause is in the server's log; trying again with other arguments may help.", j.name, e.id)}
}
