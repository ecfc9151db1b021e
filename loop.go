package dragoman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Loop runs conversations: decide, execute, summarise. The zero value of each
// limit means its default; the fields must not change while Run is running. A
// Loop holds no state of its own, so one Loop serves any number of
// conversations at once.
type Loop struct {
	// Tools lists and runs the tools.
	Tools Toolset

	// Rounds is the number of model messages that may call tools; 16 if zero.
	// After them the model gets one more message, without tools.
	Rounds int
	// Calls is the number of calls that run in one conversation; 64 if zero.
	// Calls beyond it are answered with CodeBudget.
	Calls int
	// Parallel is the number of calls of one round that run at a time; 8 if
	// zero.
	Parallel int
	// Bytes is the total size of all results of one conversation; 64 MiB if
	// zero. The result that crosses it still counts; no call runs after it.
	Bytes int64
	// Timeout is the time after which no further call starts and running ones
	// are ended; 10 minutes if zero. The model is then asked for its answer, so
	// a conversation may last longer by one message.
	Timeout time.Duration
	// CallTimeout is the time that one call may take; 2 minutes if zero.
	CallTimeout time.Duration

	// Observe is told what happens as it happens. It may be nil. It is called
	// from one goroutine at a time and holds the loop up while it runs.
	Observe func(Event)
}

// Phase is a phase of a conversation.
type Phase string

// The phases, by the names that logs, traces and people use.
const (
	Decide    Phase = "decide"
	Execute   Phase = "execute"
	Summarise Phase = "summarise"
)

// An Event tells what happened in a conversation: a model message is complete
// (Decide when it calls tools, Summarise when it does not), a call starts
// (Execute without a Result) or a call has ended (Execute with one).
type Event struct {
	Phase Phase
	// Round counts model messages from 1.
	Round int
	// Duration is the time that the message or the call took; zero at a start.
	Duration time.Duration
	// Calls are the calls of a Decide event.
	Calls []Call
	// Call is the call of an Execute event, and Result its result.
	Call   *Call
	Result *Result
}

// repeatNote is told to a model that makes the same read again and again.
const repeatNote = "This exact call was made before in this conversation; if its result does not change, use what you have."

// Run drives conv to its end and closes it. It returns the error that ended the
// conversation early, such as the end of ctx or a failure of the upstream; conv
// has then told the client.
func (l *Loop) Run(ctx context.Context, conv Conversation) error {
	err := l.run(ctx, conv)
	if closeErr := conv.Close(err); err == nil {
		err = closeErr
	}
	return err
}

func (l *Loop) run(ctx context.Context, conv Conversation) error {
	tools, err := l.Tools.Tools(ctx)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	if err := conv.Offer(tools); err != nil {
		return err
	}
	r := run{
		Loop: l, calls: or(l.Calls, 64),
		deadline: time.Now().Add(or(l.Timeout, 10*time.Minute)),
		reads:    map[string]int{},
	}
	r.bytes.Store(or(l.Bytes, 64<<20))
	for round := 1; ; round++ {
		last := round > or(l.Rounds, 16) || r.spent()
		start := time.Now()
		calls, err := conv.Next(ctx, last)
		if err != nil {
			return err
		}
		phase := Decide
		if len(calls) == 0 {
			phase = Summarise
		}
		r.observe(Event{Phase: phase, Round: round, Duration: time.Since(start), Calls: calls})
		if len(calls) == 0 {
			return nil
		}
		if last {
			return errors.New("conversation called tools in its last round")
		}
		results, err := r.execute(ctx, round, calls)
		if err := errors.Join(err, conv.Answer(ctx, results)); err != nil {
			return err
		}
	}
}

// run is the state of one conversation.
type run struct {
	*Loop
	calls    int          // calls left
	bytes    atomic.Int64 // bytes left
	deadline time.Time    // no call runs after it
	broken   atomic.Bool  // a call ended with an error: no further one starts

	reads     map[string]int // how often each call that changes nothing ran
	lastKey   string         // the call before, by key
	lastWrote bool           // it may have changed something

	observing sync.Mutex
}

func (r *run) spent() bool {
	return r.calls <= 0 || r.bytes.Load() <= 0 || !time.Now().Before(r.deadline)
}

func (r *run) observe(e Event) {
	if r.Observe == nil {
		return
	}
	r.observing.Lock()
	defer r.observing.Unlock()
	r.Observe(e)
}

// execute runs the calls of one round. Calls that change nothing run side by
// side; calls that may change something run one after the other, in order,
// beside them. The results are in the order of the calls, and complete even when
// there is an error, so that the conversation can remember what was done.
func (r *run) execute(ctx context.Context, round int, calls []Call) ([]Result, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, r.deadline, errBudget)
	defer cancel()

	results := make([]Result, len(calls))
	failures := make([]error, len(calls))
	slots := make(chan struct{}, or(r.Parallel, 8))
	var wg sync.WaitGroup
	work := func(i int) {
		slots <- struct{}{}
		defer func() { <-slots }()
		if p, err := r.late(ctx); p != nil {
			results[i], failures[i] = Result{Problem: p}, err
			r.observe(Event{Phase: Execute, Round: round, Call: &calls[i], Result: &results[i]})
			return
		}
		note := results[i].Meta.Note
		results[i], failures[i] = r.call(ctx, round, calls[i])
		r.bytes.Add(-int64(len(results[i].Content)))
		if failures[i] != nil {
			r.broken.Store(true)
		}
		if note != "" && results[i].Meta.Note == "" {
			results[i].Meta.Note = note
		}
	}
	var inOrder []int
	for i, c := range calls {
		refused, note := r.admit(c)
		switch {
		case refused != nil:
			results[i] = Result{Problem: refused}
			r.observe(Event{Phase: Execute, Round: round, Call: &calls[i], Result: &results[i]})
		case c.Tool != nil && c.Tool.ordered():
			inOrder = append(inOrder, i)
		default:
			results[i].Meta.Note = note
			wg.Go(func() { work(i) })
		}
	}
	wg.Go(func() {
		for _, i := range inOrder {
			work(i)
		}
	})
	wg.Wait()

	r.settle(calls, results)
	for _, err := range failures {
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// admit decides whether c runs: not when it is no valid call, when the budget
// is used up, or when it repeats a call that may have changed something. The
// note goes with the result of a call that does run.
func (r *run) admit(c Call) (refused *Problem, note string) {
	if c.Problem != nil {
		return c.Problem, ""
	}
	if c.Tool != nil && c.Tool.Quarantined != nil {
		return c.Tool.Quarantined, ""
	}
	if r.spent() {
		return usedUp(), ""
	}
	key := callKey(c)
	if c.Tool != nil && c.Tool.ordered() {
		if r.lastWrote && key == r.lastKey {
			return &Problem{Code: CodeRepeated, Message: "This exact call has just been made and may have changed something, so it was not made again. Use its result, or look at the state before you repeat it."}, ""
		}
		r.lastKey, r.lastWrote = key, true
	} else {
		r.lastKey, r.lastWrote = key, false
		if r.reads[key]++; r.reads[key] > 3 {
			note = repeatNote
		}
	}
	r.calls--
	return nil, note
}

func usedUp() *Problem {
	return &Problem{Code: CodeBudget, Message: "This conversation has used up its tool calls. Answer with what you have."}
}

// late says why a call that waited for its turn is not made any more; nil when
// it is. The error is the one that ends the conversation, if any.
func (r *run) late(ctx context.Context) (*Problem, error) {
	const ended = "The conversation ended before this call was made."
	switch cause := context.Cause(ctx); {
	case cause == errBudget || cause == nil && r.bytes.Load() <= 0:
		return usedUp(), nil
	case cause != nil:
		return &Problem{Code: CodeCanceled, Message: ended}, cause
	case r.broken.Load():
		return &Problem{Code: CodeCanceled, Message: ended}, nil
	}
	return nil, nil
}

// settle lets the last call be repeated when it failed, unless it may have
// changed something all the same.
func (r *run) settle(calls []Call, results []Result) {
	for i := len(calls) - 1; i >= 0; i-- {
		if calls[i].Problem != nil || callKey(calls[i]) != r.lastKey {
			continue
		}
		p := results[i].Problem
		switch {
		case p == nil:
			r.lastWrote = r.lastWrote && !results[i].Failed
		case p.Code == CodeRepeated:
			continue // how the call went that this one repeats is what counts
		default:
			r.lastWrote = r.lastWrote && (p.Code == CodeUnknownOutcome || p.Code == CodeTooLarge)
		}
		return
	}
}

var errBudget = errors.New("the conversation's time is used up")

// call runs one call of a round.
func (r *run) call(ctx context.Context, round int, c Call) (Result, error) {
	r.observe(Event{Phase: Execute, Round: round, Call: &c})
	res, err := r.Call(ctx, c)
	r.observe(Event{Phase: Execute, Round: round, Duration: res.Meta.Duration, Call: &c, Result: &res})
	return res, err
}

// Call runs one call outside any conversation: a call that is no valid one is
// answered with its problem, and the end of CallTimeout is a result too. It
// returns an error, beside a result that says what is known, when ctx ends or
// when the trouble is our own.
func (l *Loop) Call(ctx context.Context, c Call) (Result, error) {
	if c.Problem == nil && c.Tool != nil {
		c.Problem = c.Tool.Quarantined
	}
	if c.Problem != nil {
		return Result{Problem: c.Problem}, nil
	}
	callCtx, cancel := context.WithTimeout(ctx, or(l.CallTimeout, 2*time.Minute))
	defer cancel()
	start := time.Now()
	res, err := l.Tools.Call(callCtx, c)
	took := time.Since(start)
	switch {
	case err == nil:
	case callCtx.Err() != nil && (ctx.Err() == nil || context.Cause(ctx) == errBudget):
		res, err = Result{Problem: timedOut(c, took)}, nil
	default:
		res = Result{Problem: stopped(c)}
	}
	if res.Meta.Duration == 0 {
		res.Meta.Duration = took
	}
	return res, err
}

// timedOut is the problem of a call that was still running when its time ended.
func timedOut(c Call, took time.Duration) *Problem {
	took = took.Round(100 * time.Millisecond)
	if c.Tool != nil && c.Tool.ordered() {
		return &Problem{
			Code:    CodeUnknownOutcome,
			Message: fmt.Sprintf("No answer within %s. The call may or may not have taken effect: check before you repeat it.", took),
		}
	}
	return &Problem{
		Code:       CodeTimeout,
		Message:    fmt.Sprintf("No answer within %s. Try again later, or ask for less.", took),
		RetryAfter: 5 * time.Second,
	}
}

// stopped is the problem of a call that was running when the conversation ended.
func stopped(c Call) *Problem {
	if c.Tool != nil && c.Tool.ordered() {
		return &Problem{
			Code:    CodeUnknownOutcome,
			Message: "The call was interrupted and may or may not have taken effect: check before you repeat it.",
		}
	}
	return &Problem{Code: CodeCanceled, Message: "The call was interrupted. It can be made again."}
}

// callKey names a call by what it would do.
func callKey(c Call) string {
	name := ""
	if c.Tool != nil {
		name = c.Tool.Name
	}
	var args bytes.Buffer
	if len(c.Arguments) > 0 && json.Compact(&args, c.Arguments) != nil {
		args.Write(c.Arguments)
	}
	return c.Method + "\x00" + name + "\x00" + args.String()
}

// or returns value, or def where value is not positive.
func or[T int | int64 | time.Duration](value, def T) T {
	if value <= 0 {
		return def
	}
	return value
}
