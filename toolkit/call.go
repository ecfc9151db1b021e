package toolkit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

// grace is how long a function may take to notice that its context has ended
// before it is abandoned.
const grace = 500 * time.Millisecond

// A job is one call of an author's function, whatever it is for.
type job struct {
	request   *Request
	session   *sdk.ServerSession
	token     any      // of the caller's, for progress; nil: none is wanted
	name      string   // in messages
	arguments []byte   // for the digest in the audit line
	requires  []string // rights
	own       *budget  // besides the server's; nil: none
	timeout   time.Duration
	changes   bool // the call may have changed something
	raw       bool // a *jsonrpc.Error goes out as it is
	asks      *asks
	again     bool // it is a later leg, which the rates have let in
	// prepare runs before any middleware; it may complete the request.
	prepare func(*Request) error
}

// do runs the author's function under the job's limits and writes the audit
// line. The error it returns can be shown: a *Refusal, a *jsonrpc.Error of a raw
// tool, or the error of a context that the caller has ended.
func do[T any](ctx context.Context, s *Server, j job, run func(context.Context) (T, error)) (T, error) {
	root := s.root()
	root.calls.enter()
	defer root.calls.leave()
	ctx, cancel := root.bound(ctx)
	defer cancel()
	start := time.Now()
	e := entry{request: j.request, name: j.name, arguments: j.arguments, outcome: "ok"}
	current := &running{Request: j.request, session: j.session, token: j.token, asks: j.asks}
	if j.asks != nil {
		current.last, current.sent = j.asks.last, j.asks.sent
		defer func() { j.asks.last, j.asks.sent = current.last, current.sent }()
	}
	defer current.end()
	var out T
	err := s.permit(j)
	if err == nil {
		ctx := context.WithValue(ctx, runningKey{}, current)
		out, err = bounded(ctx, j.timeout, func(ctx context.Context) (T, error) {
			if j.prepare != nil {
				if err := j.prepare(j.request); err != nil {
					var none T
					return none, err
				}
			}
			return surround(ctx, s.around(), j.request, run)
		})
	}
	if _, asking := errors.AsType[unasked](err); asking {
		e.outcome = "asked"
	} else if err != nil {
		var none T
		out = none
		err = s.judge(ctx, j, &e, err)
	}
	e.took = time.Since(start)
	root.trail.write(s.name, e)
	return out, err
}

// permit checks rights, and then rates: who may not call at all uses nothing up.
func (s *Server) permit(j job) error {
	if lacking := j.request.lacks(j.requires); lacking != "" {
		return &Refusal{Code: codeDenied, Message: fmt.Sprintf(
			"%s needs the right %q, which %s does not have. Whoever runs this server can grant it.", j.name, lacking, j.request.Caller)}
	}
	if j.again {
		return nil
	}
	var limiters []*rate.Limiter
	for _, server := range s.chain() {
		limiters = append(limiters, server.budget.limiters(j.request.Caller)...)
	}
	if j.own != nil {
		limiters = append(limiters, j.own.limiters(j.request.Caller)...)
	}
	return admit(limiters)
}

// surround runs f inside of the middleware, the first of which is the outermost.
func surround[T any](ctx context.Context, around []Middleware, r *Request, f func(context.Context) (T, error)) (out T, err error) {
	var ran bool
	var inner error
	next := func(ctx context.Context) error {
		ran = true
		out, inner = f(ctx)
		return inner
	}
	for _, m := range slices.Backward(around) {
		within := next
		next = func(ctx context.Context) error { return m(ctx, r, within) }
	}
	switch err = next(ctx); {
	case err != nil:
		return out, err
	case !ran:
		return out, errors.New("a middleware neither called next nor returned an error")
	}
	return out, inner // a failure cannot be made into a result that is not there
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
		a := answer{err: errExited} // unless f returns or panics
		defer func() {
			if p := recover(); p != nil {
				a.err = &crash{p, debug.Stack()}
			}
			answers <- a
		}()
		if a.out, a.err = f(ctx); a.err != nil {
			readOnce(a.err)
		}
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

// readOnce does to the error of an author's function what is done to it later, where
// nobody recovers from it: the methods of an error can panic, as those of a nil pointer
// that was returned as one do.
func readOnce(err error) {
	_ = err.Error()
	refusalIn(err)
	_, _ = errors.AsType[unasked](err)
	_ = errors.Is(err, errTimeout)
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

// errExited is the error of a function that neither returned nor panicked.
var errExited = errors.New("the function ended its goroutine (runtime.Goexit), as testing.T.FailNow does")

// A crash is a panic in an author's function.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("panic: %v", c.value) }

// judge decides what the caller may know of an error, and logs the rest.
func (s *Server) judge(ctx context.Context, j job, e *entry, err error) error {
	if r, ok := refusalIn(err); ok {
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
	log := s.logger().With("server", s.name, j.request.Kind, j.name, "error_id", e.id)
	if c, ok := errors.AsType[*crash](err); ok {
		e.outcome = "panic"
		log.ErrorContext(ctx, "the function panicked", "panic", fmt.Sprint(c.value), "stack", string(c.stack))
	} else {
		log.ErrorContext(ctx, "the function failed", "error", err)
	}
	return &Refusal{Code: "internal_error", Message: fmt.Sprintf(
		"Internal error in %s, id %s. The cause is in the server's log; trying again with other arguments may help.", j.name, e.id)}
}
