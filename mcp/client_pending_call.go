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
	round         int         // how often the server has asked for input in earlier legs
	visits        []string    // to which somebody has agreed in those, by their ids

	mu        sync.Mutex
	questions []*question   // that wait for an answer, in the order in which they came
	withdrawn chan struct{} // closed when none of those that were put waits any more; nil while none does
	count     int           // of questions so far, for their keys
	answered  bool          // nothing can be asked any more
	news      chan struct{} // there are new questions; has room for one

	inline *request      // is made on the goroutine of the leg; nil where that has one of its own
	tied   bool          // ends with the context of its leg, without being told
	holds  atomic.Int32  // how many there are who need ctx still
	done   chan struct{} // closed when there is a result; nil for an inline call
	res    dragoman.Result
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

// startCall starts a call, or goes on with one from a leg before. Its result is for whoever
// waits in a leg.
func (c *Client) startCall(ctx context.Context, call *dragoman.Call, r *request, from continuation) *pendingCall {
	f := &pendingCall{c: c, round: from.round, visits: from.visits, call: *call}
	f.call.Progress, f.call.Notify, f.call.Answers = nil, nil, nil
	r.pending, r.can = f, call.Can&c.o.Can
	if s := c.session.Load(); s.era == Modern && s.declared.taskExtension {
		r.tasks = r.method == methodTool || aboutTask(r.method) || r.method == listenMethod
	}
	if call.Progress != nil {
		f.token = c.ids.Add(1)
		r.token = f.token
	}
	patience := time.Duration(0)
	if r.method != listenMethod && r.method != methodTaskResult {
		patience = max(c.o.Timeout, 0)
	}
	never := f.neverAsks(r)
	if f.tied = never && !c.readsOn(); f.tied {
		f.ctx, f.cancel = context.WithCancelCause(ctx)
	} else {
		f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	}
	f.timeout.set(unsentPatience, patience, f.cancel)
	if never {
		f.inline = r
		c.register(f)
		return f
	}
	f.news, f.done = make(chan struct{}, 1), make(chan struct{})
	c.register(f)
	if !c.start(func() { f.run(r) }) {
		f.timeout.stop()
		f.finish(nil, &TransportError{Err: ErrClosed})
	}
	return f
}

// neverAsks reports whether the call cannot ask in the middle, so that whoever waits for it
// can make it: a modern server ends it with its questions, and those of a legacy server are
// declined where nobody can be asked. What is run as a task is asked about apart from it.
func (f *pendingCall) neverAsks(r *request) bool {
	if r.method != methodTool || r.tasks || f.call.Tool == nil {
		return false
	}
	return f.c.session.Load().era == Modern || r.can == 0 && f.call.Task == nil && !needsTask(f.call.Tool.Definition)
}

// register notes that f is on its way. It ends with the client.
func (c *Client) register(f *pendingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending[f] = struct{}{}
	if f.token != 0 {
		c.tokens[f.token] = f
	}
	if c.ctx.Err() != nil {
		f.cancel(c.Err())
	}
}

// endPending ends what is on its way when the client has ended.
func (c *Client) endPending() {
	why := c.Err()
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.pending {
		f.cancel(why)
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
	if f.done != nil {
		close(f.done)
	}
}

// markSent notes that the first byte is about to leave.
func (f *pendingCall) markSent() {
	if !f.sent.Swap(true) {
		f.timeout.start()
	}
}

// run makes the call and keeps its result.
func (f *pendingCall) run(r *request) {
	defer f.timeout.stop()
	f.holds.Add(1)
	defer f.release()
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

// release ends the context of a call that nobody needs any more.
func (f *pendingCall) release() {
	if f.holds.Add(-1) == 0 {
		f.cancel(nil)
	}
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
	if !f.tied {
		defer context.AfterFunc(ctx, func() { f.cancel(context.Cause(ctx)) })()
	}
	f.run(f.inline)
}

// leg waits for the result of the call, or for a question of the server, on
// behalf of one call of [Client.Call]. When ctx ends, so does the call.
func (f *pendingCall) leg(ctx context.Context, call *dragoman.Call) (dragoman.Result, error) {
	f.notifications.deliver(call.Progress, call.Notify)
	defer f.notifications.leave()
	if f.inline != nil {
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
