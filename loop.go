package dragoman

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// Loop runs conversations: decide, execute, summarise. The zero value of each
// limit means its default; the fields must not change while Run is running. A
// Loop holds no state of its own, so one Loop serves any number of
// conversations at once.
//
// A panic in a toolset's Call or in Ask ends the call that it happened in, and
// nothing else: the model is told that the call failed. One in its List, or in
// Observe, which is called from goroutines of the Loop, too, ends the conversation:
// calls that run are waited for, and Run returns it as a [*PanicError].
type Loop struct {
	// Tools lists and runs the tools. It must be set.
	Tools Toolset

	// Rounds is the number of model messages that may call tools; 16 if zero.
	// After them the model gets one more message, without tools.
	Rounds int
	// Calls is the number of calls that run in one conversation; 64 if zero.
	// Calls beyond it are answered with CodeBudget. A call that is made again
	// with answers counts once.
	Calls int
	// Parallel is the number of calls of one round that run at a time; 8 if
	// zero. A call that waits for answers is not among them.
	Parallel int
	// Bytes is the total size of all results of one conversation; 64 MiB if
	// zero. The result that crosses it still counts; no call runs after it.
	Bytes int64
	// Timeout is the time after which no further call starts and running ones
	// are ended; 10 minutes if zero. It stands still while Ask waits for answers.
	// The model is then asked for its answer, so a conversation may last longer
	// by one message. The time of a single call is limited by the wire.
	Timeout time.Duration

	// Ask gets the answers to what a call asks, and waits for them. Of the answers
	// it has to fill in Replies alone. Where it is nil, or returns no answers, results
	// that ask go to [Conversation.Answer] and the turn ends. An error means that
	// nobody will answer: the call ends. It is called for several calls at a time.
	Ask func(context.Context, Call, *Asks) (*Answers, error)

	// Observe is told what happens as it happens. It may be nil. It is called
	// from one goroutine at a time and holds the loop up while it runs. What an
	// Event points at must not be changed.
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
	// Call is the call of an Execute event, and Result its result, which may be
	// one that asks.
	Call   *Call
	Result *Result
}

// Run drives conv to its end and closes it. It returns the error that ended the
// conversation early, such as the end of ctx or a failure of the upstream; conv
// has then told the client.
func (l *Loop) Run(ctx context.Context, conv Conversation) error {
	if conv == nil {
		return errNoConversation
	}
	ctx, span := observe.Begin(ctx, observe.Conversation)
	defer span.End()
	err := l.run(ctx, conv)
	if closeErr := conv.Close(err); err == nil {
		err = closeErr
	}
	conversed(ctx, span, err)
	return err
}

func (l *Loop) run(ctx context.Context, conv Conversation) error {
	if l.Tools == nil {
		return errNoTools
	}
	list, err := l.list(ctx)
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	if err := conv.Offer(list); err != nil {
		return err
	}
	r := run{Loop: l, calls: or(l.Calls, 64), clock: clock{left: or(l.Timeout, 10*time.Minute)}}
	r.bytes.Store(or(l.Bytes, 64<<20))
	r.clock.start()
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
			return r.observer
		}
		if last && !continued(calls) {
			return errors.New("conversation called tools in its last round")
		}
		results, err := r.execute(ctx, round, calls)
		if err := errors.Join(err, conv.Answer(ctx, results)); err != nil {
			return err
		}
		if asking(results) {
			return nil // the turn ends; a later request brings the answers
		}
	}
}

// list lists the tools.
func (l *Loop) list(ctx context.Context) (list *List, err error) {
	defer func() {
		if p := recover(); p != nil {
			list, err = nil, &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	if list, err = l.Tools.List(ctx); list == nil && err == nil {
		err = errNoList
	}
	return list, err
}

// What a program that uses a [Loop] has left out.
var (
	errNoTools        = errors.New("a loop needs Tools")
	errNoConversation = errors.New("a loop needs a conversation to run")
	errNoList         = errors.New("the toolset returned neither a list nor an error")
)

// continued reports whether calls are those of an earlier turn, which go on.
func continued(calls []Call) bool {
	for i := range calls {
		if calls[i].Answers != nil {
			return true
		}
	}
	return false
}

func asking(results []Result) bool {
	for i := range results {
		if results[i].Asks != nil {
			return true
		}
	}
	return false
}

// run is the state of one conversation.
type run struct {
	*Loop
	calls  int          // calls left
	bytes  atomic.Int64 // bytes left
	clock  clock        // no call runs when it has run down
	broken atomic.Bool  // a call ended with an error, or Observe panicked: no further one starts

	reads     map[string]int // how often each call that changes nothing ran; nil before the first
	lastKey   string         // the call before, by key
	lastWrote bool           // it may have changed something

	observing sync.Mutex
	observer  error // the panic of Observe, which is told no more then
}

func (r *run) spent() bool {
	return r.calls <= 0 || r.bytes.Load() <= 0 || r.clock.down()
}

func (r *run) observe(e Event) {
	if r.Observe == nil {
		return
	}
	r.observing.Lock()
	defer r.observing.Unlock()
	if r.observer != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			r.observer = &PanicError{Value: p, Stack: debug.Stack()}
			r.broken.Store(true)
		}
	}()
	r.Observe(e)
}

// or returns value, or def where value is not positive.
func or[T int | int64 | time.Duration](value, def T) T {
	if value <= 0 {
		return def
	}
	return value
}
