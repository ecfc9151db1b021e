package dragoman

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
)

// repeatNote is told to a model that makes the same read again and again.
const repeatNote = "This exact call was made before in this conversation; if its result does not change, use what you have."

// execute runs the calls of one round. Calls that change nothing run side by
// side; calls that may change something run one after the other, in order,
// beside them. The results are in the order of the calls, and complete even when
// there is an error, so that the conversation can remember what was done.
func (r *run) execute(ctx context.Context, round int, calls []Call) ([]Result, error) {
	ctx, cancel := r.clock.bound(ctx)
	defer cancel()

	e := execution{
		run: r, round: round, calls: calls,
		results: make([]Result, len(calls)), failures: make([]error, len(calls)),
		slots: make(chan struct{}, or(r.Parallel, 8)),
	}
	var inOrder, beside []int
	for i, c := range calls {
		refused, note := r.admit(c)
		e.results[i].Info.Note = note
		switch {
		case refused != nil:
			e.finish(i, Result{Problem: refused, Ran: RanNot.After(c.Answers)})
		case c.Tool != nil && c.Tool.Writes():
			inOrder = append(inOrder, i)
		default:
			beside = append(beside, i)
		}
	}
	var wg sync.WaitGroup
	ordered := func() {
		for n, i := range inOrder {
			if e.work(ctx, i); e.results[i].Asks != nil {
				for _, behind := range inOrder[n+1:] {
					e.finish(behind, Result{Asks: &Asks{}, Ran: RanNot})
				}
				return
			}
		}
	}
	if len(beside) == 0 {
		ordered() // nothing is beside it: no goroutine is needed
	} else if len(calls) == 1 {
		e.work(ctx, beside[0])
	} else {
		for _, i := range beside {
			wg.Go(func() { e.work(ctx, i) })
		}
		wg.Go(ordered)
	}
	wg.Wait()

	r.settle(calls, e.results)
	for _, err := range e.failures {
		if err != nil {
			return e.results, err
		}
	}
	return e.results, r.observer
}

// An execution is one round that runs.
type execution struct {
	*run
	round    int
	calls    []Call
	results  []Result
	failures []error
	slots    chan struct{} // one for each call that runs
}

// work runs the call i when it has a slot.
func (e *execution) work(ctx context.Context, i int) {
	e.slots <- struct{}{}
	defer func() { <-e.slots }()
	ran := RanNot.After(e.calls[i].Answers)
	if p, err := e.late(ctx, e.calls[i], ran); p != nil {
		e.failures[i] = err
		e.finish(i, Result{Problem: p, Ran: ran})
		return
	}
	e.observe(Event{Phase: Execute, Round: e.round, Call: &e.calls[i]})
	note := e.results[i].Info.Note
	res, err := e.Loop.call(ctx, e.calls[i], e.pause)
	if e.bytes.Add(-int64(len(res.Content))); err != nil {
		e.failures[i] = err
		e.broken.Store(true)
	}
	if res.Info.Note == "" {
		res.Info.Note = note
	}
	e.finish(i, res)
}

// pause gives a call's slot back and stops the clock while somebody is asked.
func (e *execution) pause() (resume func()) {
	<-e.slots
	goOn := e.clock.pause()
	return func() {
		e.slots <- struct{}{}
		goOn()
	}
}

// finish keeps the result of the call i and tells of it.
func (e *execution) finish(i int, res Result) {
	e.results[i] = res
	e.observe(Event{Phase: Execute, Round: e.round, Duration: res.Info.Duration, Call: &e.calls[i], Result: &e.results[i]})
}

// admit decides whether c runs: not when it is no valid call, when the budget
// is used up, or when it repeats a call that may have changed something. The
// note goes with the result of a call that does run. A call that goes on with
// answers was admitted before, and is the one that the next may repeat.
func (r *run) admit(c Call) (refused *Problem, note string) {
	if c.Problem != nil {
		return c.Problem, ""
	}
	if c.Tool != nil && c.Tool.Quarantined != nil {
		return c.Tool.Quarantined, ""
	}
	key := callKey(c)
	if c.Answers != nil {
		r.lastKey, r.lastWrote = key, c.Tool != nil && c.Tool.Writes()
		return nil, ""
	}
	if r.spent() {
		return usedUp(), ""
	}
	if c.Tool != nil && c.Tool.Writes() {
		if r.lastWrote && key == r.lastKey {
			return &Problem{Code: CodeRepeated, Message: "This exact call has just been made and may have changed something, so it was not made again. Use its result, or look at the state before you repeat it."}, ""
		}
		r.lastKey, r.lastWrote = key, true
	} else {
		r.lastKey, r.lastWrote = key, false
		if r.reads == nil {
			r.reads = map[string]int{}
		}
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
// it is. ran is what its earlier legs did. The error is the one that ends the
// conversation, if any.
func (r *run) late(ctx context.Context, c Call, ran Ran) (*Problem, error) {
	switch cause := context.Cause(ctx); {
	case cause == errBudget || cause == nil && r.bytes.Load() <= 0:
		if ran != RanNot {
			return stopped(c, ran), nil
		}
		return usedUp(), nil
	case cause != nil:
		return stopped(c, ran), cause
	case r.broken.Load():
		return stopped(c, ran), nil
	}
	return nil, nil
}

// settle lets the last call be repeated when it provably did nothing: when it
// did not run, or ran and said that it failed.
func (r *run) settle(calls []Call, results []Result) {
	for i := len(calls) - 1; i >= 0; i-- {
		p := results[i].Problem
		if calls[i].Problem != nil || callKey(calls[i]) != r.lastKey || p != nil && p.Code == CodeRepeated {
			continue // how the call went that this one repeats is what counts
		}
		done := results[i].Ran != RanNot && !(results[i].Ran == RanYes && results[i].Failed)
		r.lastWrote = r.lastWrote && done
		return
	}
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
