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

// A pendingCall is a call on its way, from before its first byte to its result. It has
// a context of its own, so that it can outlive the leg that it began with: where
// the server of the legacy era asks something, the call is parked, and ends in
// a later leg.
type pendingCall struct {
	c             *Client
	call          dragoman.Call // of the first leg; without what belongs to that leg
	ctx           context.Context
	cancel        context.CancelCauseFunc
	notifications notificationQueue
	timeout       callTimeout
	sent          atomic.Bool // part of it may have left
	made          atomic.Bool // the server has made a task of it
	token         int64       // of progress; 0 for none
	round         int         // how often the server has asked for input in earlier legs; modern era

	mu        sync.Mutex
	questions []*question   // that wait for an answer, in the order in which they came
	count     int           // of questions so far, for their keys
	answered  bool          // nothing can be asked any more
	news      chan struct{} // there are new questions; has room for one

	runInline func()        // makes the call; nil where that has a goroutine of its own
	done      chan struct{} // closed when there is a result
	res       dragoman.Result
}

// gatherTime is how long further questions are waited for after the first.
const gatherTime = 10 * time.Millisecond

// unsentPatience is how long a request may wait for its first byte to leave.
const unsentPatience = 30 * time.Second

// The causes by which a call ends before its server has answered.
var (
	errTimeUp = errors.New("the server's time for the call is over")
	errUnsent = errors.New("the server takes no requests")
	errGone   = errors.New("nobody answers what the server asks")
)

// startCall starts a call. Its result is for whoever waits in a leg.
func (c *Client) startCall(ctx context.Context, call *dragoman.Call, r *request, round int) *pendingCall {
	f := &pendingCall{c: c, round: round, call: *call, news: make(chan struct{}, 1), done: make(chan struct{})}
	f.call.Progress, f.call.Notify, f.call.Answers = nil, nil, nil
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.pending, r.can = f, call.Can&c.o.Can
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
		f.timeout.set(c.o.Timeout, func() { f.cancel(errTimeUp) })
	}
	c.register(f)
	run := func() {
		defer unsent.Stop()
		defer f.timeout.stop()
		f.run(r)
	}
	if c.session.Load().era == Modern && r.method == methodTool && !r.tasks {
		// It never asks in the middle, so whoever waits for it can fly it.
		f.runInline = run
		return f
	}
	if !c.start(run) {
		unsent.Stop()
		f.finish(nil, &TransportError{Err: ErrClosed})
	}
	return f
}

// register notes that f is on its way.
func (c *Client) register(f *pendingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[f] = struct{}{}
	if f.token != 0 {
		c.tokens[f.token] = f
	}
}

// end lets those go on who wait for the result. The call is on its way no more
// before they know.
func (f *pendingCall) end() {
	f.withdrawQuestions()
	f.c.mu.Lock()
	delete(f.c.pending, f)
	delete(f.c.tokens, f.token)
	f.c.mu.Unlock()
	close(f.done)
}

// markSent notes that the first byte is about to leave.
func (f *pendingCall) markSent() {
	if !f.sent.Swap(true) {
		f.timeout.start()
	}
}

// run makes the call and keeps its result.
func (f *pendingCall) run(r *request) {
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
		err = f.callError(err)
	}
	f.finish(a, err)
}

// callError returns why the call has no answer: what ended its context, rather than
// what that did to the request.
func (f *pendingCall) callError(err error) error {
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

// finish keeps the result, and tells the server about questions that nobody will
// answer now.
func (f *pendingCall) finish(a *answer, err error) {
	if err != nil {
		f.c.log.Debug("MCP call failed", "method", f.call.Method, "error", err)
	}
	f.res = f.outcome(a, err)
	f.end()
}

// runOnCaller makes the call on the goroutine of its leg.
func (f *pendingCall) runOnCaller(ctx context.Context) {
	leave, ok := f.c.enter()
	if !ok {
		f.finish(nil, &TransportError{Err: ErrClosed})
		return
	}
	defer leave()
	defer context.AfterFunc(ctx, func() { f.cancel(context.Cause(ctx)) })()
	f.runInline()
}

// leg waits for the result of the call, or for a question of the server, on
// behalf of one call of [Client.Call]. When ctx ends, so does the call.
func (f *pendingCall) leg(ctx context.Context, call *dragoman.Call) (dragoman.Result, error) {
	stop := f.notifications.deliver(call.Progress, call.Notify)
	defer stop()
	if f.runInline != nil {
		f.runOnCaller(ctx)
		return f.finalResult(ctx)
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
			return f.finalResult(ctx)
		}
	}
}

// finalResult is what a leg comes to whose call is over. Where ctx has ended too, a
// result was here at the same moment.
func (f *pendingCall) finalResult(ctx context.Context) (dragoman.Result, error) {
	if ctx.Err() != nil && f.res.Content == nil {
		return dragoman.Result{Ran: f.res.Ran}, fmt.Errorf("calling the server: %w", context.Cause(ctx))
	}
	return f.res, nil
}
