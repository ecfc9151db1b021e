package dragoman

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// maxLegs is how often one call may ask.
const maxLegs = 16

// Call runs one call outside any conversation, and asks where it asks. A call
// that is no valid one is answered with its problem. It returns an error, beside
// a result that says what is known, when ctx ends or when the trouble is our
// own. Without [Loop.Ask], a result that asks is returned as it is.
func (l *Loop) Call(ctx context.Context, c Call) (Result, error) {
	return l.call(ctx, c, func() func() { return func() {} })
}

// call makes a call, and makes it again with the answers as long as it asks.
// pause is called while somebody is asked, or while the server wants time.
func (l *Loop) call(ctx context.Context, c Call, pause func() (resume func())) (res Result, err error) {
	if c.Method == "" {
		var span *observe.Span
		ctx, span = observe.Begin(ctx, observe.Tool)
		defer func() { called(ctx, span, &c, &res, err) }()
	}
	if c.Problem == nil && c.Tool != nil {
		c.Problem = c.Tool.Quarantined
	}
	if c.Problem != nil {
		return Result{Problem: c.Problem, Ran: RanNot.After(c.Answers)}, nil
	}
	start := time.Now()
	var waited time.Duration
	for asked := 0; ; {
		res, err := l.leg(ctx, c)
		res.Ran = res.Ran.After(c.Answers)
		if err != nil || res.Asks == nil || res.Asks.Deferred() {
			return ended(ctx, c, res, err, time.Since(start)-waited)
		}
		if len(res.Asks.Questions) > 0 {
			asked++
		}
		began := time.Now()
		resume := pause()
		answers, err := l.answers(ctx, c, res.Asks, asked)
		resume()
		tellWait(ctx, res.Asks, time.Since(began))
		waited += time.Since(began)
		if answers == nil && err == nil {
			res.Info.Duration = time.Since(start) - waited
			return res, nil
		}
		if err != nil {
			l.abandon(ctx, c, res)
			if ctx.Err() != nil {
				return ended(ctx, c, Result{Ran: res.Ran}, context.Cause(ctx), time.Since(start)-waited)
			}
			return Result{Problem: unanswered(err), Ran: res.Ran, Info: Info{Duration: time.Since(start) - waited}}, nil
		}
		given := *answers // which whoever gave them may give to other calls, too
		given.State, given.Ran = res.Asks.State, res.Ran
		c.Answers = &given
	}
}

// answers gets the answers to what a call asks. Nil without an error: they are
// to come with a later request.
func (l *Loop) answers(ctx context.Context, c Call, asks *Asks, asked int) (answers *Answers, err error) {
	if len(asks.Questions) == 0 {
		// It had nothing to ask: it wants to be called later.
		timer := time.NewTimer(max(asks.After, 100*time.Millisecond))
		defer timer.Stop()
		select {
		case <-timer.C:
			return &Answers{}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l.Ask == nil {
		return nil, nil
	}
	if asked > maxLegs {
		return nil, fmt.Errorf("the call asked %d times", asked)
	}
	defer func() {
		if p := recover(); p != nil {
			answers, err = nil, &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	asking, withdraw := context.WithCancelCause(ctx)
	defer withdraw(nil)
	if !asks.Expires.IsZero() {
		var cancel context.CancelFunc
		asking, cancel = context.WithDeadline(asking, asks.Expires)
		defer cancel()
	}
	if asks.Withdrawn != nil {
		asked := make(chan struct{})
		defer close(asked)
		go func() {
			select {
			case <-asks.Withdrawn:
				withdraw(errWithdrawn)
			case <-asked:
			}
		}()
	}
	answers, err = l.Ask(asking, c, asks)
	if err != nil && context.Cause(asking) == errWithdrawn && ctx.Err() == nil {
		return &Answers{}, nil
	}
	return answers, err
}

// errWithdrawn ends the asking of questions that nobody waits for any more.
var errWithdrawn = errors.New("the server does not wait for the answer any more")

// abandon tells the server behind a call that nobody will answer.
func (l *Loop) abandon(ctx context.Context, c Call, res Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	c.Answers = &Answers{State: res.Asks.State, Ran: res.Ran, Gone: true}
	_, _ = l.leg(ctx, c)
}

// leg makes a call once.
func (l *Loop) leg(ctx context.Context, c Call) (res Result, err error) {
	if l.Tools == nil {
		return Result{Ran: RanNot}, errNoTools
	}
	defer func() {
		if p := recover(); p != nil {
			failure := &PanicError{Value: p, Stack: debug.Stack()}
			res, err = Result{Problem: &Problem{Code: CodeInternal, Message: "The call failed here. It may or may not have taken effect: check before you repeat it.", Err: failure}}, nil
		}
	}()
	return l.Tools.Call(ctx, c)
}

// A PanicError is a panic that ended a call, as [Problem.Err], or that of
// [Loop.Observe] or of [Toolset].List, as the error of [Loop.Run].
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value that the code panicked with, and where.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// ended completes the result of a call that has come to its end after some time.
func ended(ctx context.Context, c Call, res Result, err error, took time.Duration) (Result, error) {
	switch late := err != nil && context.Cause(ctx) == errBudget; {
	case late && res.Ran == RanNot: // it still waited for its turn
		res.Problem, err = usedUp(), nil
	case late:
		res.Problem, err = Unanswered(c.Tool, fmt.Sprintf("No answer within %s.", took.Round(100*time.Millisecond))), nil
	}
	if err != nil {
		res.Problem = stopped(c, res.Ran)
	}
	if res.Info.Duration == 0 {
		res.Info.Duration = took
	}
	return res, err
}

// stopped is the problem of a call that was running when the conversation ended.
func stopped(c Call, ran Ran) *Problem {
	switch {
	case ran == RanNot:
		return &Problem{Code: CodeCanceled, Message: "The conversation ended before this call was made."}
	case c.Tool != nil && c.Tool.Writes():
		return &Problem{Code: CodeUnknownOutcome, Message: "The call was interrupted and may or may not have taken effect: check before you repeat it."}
	}
	return &Problem{Code: CodeCanceled, Message: "The call was interrupted. It can be made again."}
}

func unanswered(err error) *Problem {
	return &Problem{Code: CodeUnanswered, Message: "The tool asked a question and nobody answered it, so the call was given up.", Err: err}
}
