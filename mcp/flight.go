package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// A flight is a call on its way, from before its first byte to its result. It has
// a context of its own, so that it can outlive the leg that it began with: where
// the server of the legacy era asks something, the flight is parked, and lands in
// a later leg.
type flight struct {
	c      *Client
	call   dragoman.Call // of the first leg; without what belongs to that leg
	ctx    context.Context
	cancel context.CancelCauseFunc
	mail   mailbox
	watch  stopwatch
	sent   atomic.Bool // part of it may have left
	made   atomic.Bool // the server has made a task of it
	token  int64       // of progress; 0 for none
	round  int         // how often the server has asked for input in earlier legs; modern era

	mu        sync.Mutex
	questions []*question   // that wait for an answer, in the order in which they came
	count     int           // of questions so far, for their keys
	landed    bool          // nothing can be asked any more
	news      chan struct{} // there are new questions; has room for one

	fly  func()        // makes the call; nil where that has a goroutine of its own
	done chan struct{} // closed when there is a result
	res  dragoman.Result
}

// gatherTime is how long further questions are waited for after the first.
const gatherTime = 10 * time.Millisecond

// unsentPatience is how long a request may wait for its first byte to leave.
const unsentPatience = 30 * time.Second

// The causes by which a flight ends before its server has answered.
var (
	errTimeUp = errors.New("the server's time for the call is over")
	errUnsent = errors.New("the server takes no requests")
	errGone   = errors.New("nobody answers what the server asks")
)

// launch starts a call. Its result is for whoever waits in a leg.
func (c *Client) launch(ctx context.Context, call *dragoman.Call, r *request, round int) *flight {
	f := &flight{c: c, round: round, call: *call, news: make(chan struct{}, 1), done: make(chan struct{})}
	f.call.Progress, f.call.Notify, f.call.Answers = nil, nil, nil
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.flight, r.can = f, call.Can&c.o.Can
	if s := c.session.Load(); s.era == Modern && s.declared.taskExtension {
		r.tasks = r.method == methodTool || aboutTask(r.method) || r.method == listenMethod
	}
	if call.Progress != nil {
		f.token = c.ids.Add(1)
		r.token = f.token
	}
	unsent := time.AfterFunc(unsentPatience, func() {
		if !f.sent.Load() {
			f.cancel(errUnsent)
		}
	})
	if c.o.Timeout > 0 && r.method != listenMethod && r.method != methodTaskResult {
		f.watch.set(c.o.Timeout, func() { f.cancel(errTimeUp) })
	}
	c.board(f)
	run := func() {
		defer unsent.Stop()
		defer f.watch.stop()
		f.run(r)
	}
	if c.session.Load().era == Modern && r.method == methodTool && !r.tasks {
		// It never asks in the middle, so whoever waits for it can fly it.
		f.fly = run
		return f
	}
	if !c.start(run) {
		unsent.Stop()
		f.land(nil, &TransportError{Err: ErrClosed})
	}
	return f
}

// board notes that f is on its way.
func (c *Client) board(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flights[f] = struct{}{}
	if f.token != 0 {
		c.tokens[f.token] = f
	}
}

// end lets those go on who wait for the result. The flight is on its way no more
// before they know.
func (f *flight) end() {
	f.recall()
	f.c.mu.Lock()
	delete(f.c.flights, f)
	delete(f.c.tokens, f.token)
	f.c.mu.Unlock()
	close(f.done)
}

// left notes that the first byte is about to leave.
func (f *flight) left() {
	if !f.sent.Swap(true) {
		f.watch.start()
	}
}

// run makes the call and keeps its result.
func (f *flight) run(r *request) {
	defer context.AfterFunc(f.c.ctx, func() { f.cancel(f.c.Err()) })()
	defer f.cancel(nil)
	defer func() {
		if v := recover(); v != nil {
			f.res = dragoman.Result{Problem: &dragoman.Problem{
				Code: dragoman.CodeInternal, Message: "The call failed here. It may or may not have taken effect: check before you repeat it.",
				Err: &dragoman.PanicError{Value: v, Stack: debug.Stack()},
			}}
			f.end()
		}
	}()
	a, err := f.c.perform(f.ctx, r)
	if err != nil {
		err = f.ended(err)
	}
	f.land(a, err)
}

// ended returns why the flight has no answer: what ended its context, rather than
// what that did to the request.
func (f *flight) ended(err error) error {
	cause := context.Cause(f.ctx)
	switch {
	case cause == nil:
		return err
	case f.c.ctx.Err() != nil && cause == f.c.Err():
		if _, ok := errors.AsType[*TransportError](err); ok {
			return err
		}
		return &TransportError{Sent: f.sent.Load(), Err: cause}
	}
	return cause
}

// land keeps the result, and tells the server about questions that nobody will
// answer now.
func (f *flight) land(a *answer, err error) {
	if err != nil {
		f.c.log.Debug("MCP call failed", "method", f.call.Method, "error", err)
	}
	f.res = f.outcome(a, err)
	f.end()
}

// flown makes the call on the goroutine of its leg.
func (f *flight) flown(ctx context.Context) {
	leave, ok := f.c.enter()
	if !ok {
		f.land(nil, &TransportError{Err: ErrClosed})
		return
	}
	defer leave()
	defer context.AfterFunc(ctx, func() { f.cancel(context.Cause(ctx)) })()
	f.fly()
}

// leg waits for the result of the flight, or for a question of the server, on
// behalf of one call of [Client.Call]. When ctx ends, so does the flight.
func (f *flight) leg(ctx context.Context, call *dragoman.Call) (dragoman.Result, error) {
	stop := f.mail.deliver(call.Progress, call.Notify)
	defer stop()
	if f.fly != nil {
		f.flown(ctx)
		return f.over(ctx)
	}
	for {
		select {
		case <-f.done:
			return f.res, nil
		case <-f.news:
			// A server that has several questions sends them one after the other.
			if sleep(ctx, gatherTime) != nil {
				continue
			}
			if asks := f.park(); asks != nil {
				return dragoman.Result{Asks: asks}, nil
			}
		case <-ctx.Done():
			f.cancel(context.Cause(ctx))
			<-f.done // it tells the server first
			return f.over(ctx)
		}
	}
}

// over is what a leg comes to whose flight is over. Where ctx has ended too, a
// result was here at the same moment.
func (f *flight) over(ctx context.Context) (dragoman.Result, error) {
	if ctx.Err() != nil && f.res.Content == nil {
		return dragoman.Result{Ran: f.res.Ran}, fmt.Errorf("calling the server: %w", context.Cause(ctx))
	}
	return f.res, nil
}
