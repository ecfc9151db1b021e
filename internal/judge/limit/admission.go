package limit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// A counter counts for one limit and what has a count of its own in it. The
// limiter's lock is held for all of it.
type counter struct {
	pace    *rate.Limiter
	running int
	waiting []chan struct{} // closed when it is somebody's turn
	lease   lease           // of what all replicas have together
}

// paced reports whether a rate and its burst are what is counted by.
func (c *counter) paced(pace rate.Limit, burst int) bool {
	return c.pace.Limit() == pace && c.pace.Burst() == burst
}

// wake lets the one who waits longest try again: whether there is room for it, the limit
// says as it is then, which is not the one that whoever made room was admitted by.
func (c *counter) wake() {
	if len(c.waiting) > 0 {
		close(c.waiting[0])
		c.waiting = c.waiting[1:]
	}
}

// wakeAll lets all who wait try again.
func (c *counter) wakeAll() {
	for _, turn := range c.waiting {
		close(turn)
	}
	c.waiting = nil
}

// An admission is one use on its way through all limits that count it.
type admission struct {
	of    *Limiter
	use   *Use
	began time.Time
	until time.Time // when to stop waiting

	held    []held
	fetched []held // of which the store was asked
	// refused names the limit that refused the use, and slow the one that made it wait.
	refused, slow string
}

// held is a count that an admitted use holds.
type held struct {
	limit   *limit
	counter *counter
	used    *usage
	day     int64
}

// enter passes all limits at once, or none.
func (a *admission) enter(ctx context.Context) *dragoman.Problem {
	began := time.Now()
	problem, waited := a.pass(ctx)
	switch {
	case problem != nil && problem.Code != dragoman.CodeCanceled:
		observe.Count(ctx, observe.LimitRefusals, 1, observe.Text(observe.Limit, a.refused))
	case waited:
		observe.Current(ctx).Event(observe.EventQueue, observe.Text(observe.Limit, a.slow), observe.Seconds(observe.Waited, time.Since(began).Seconds()))
	}
	return problem
}

// pass passes all limits at once, or none, and says whether it had to wait.
func (a *admission) pass(ctx context.Context) (problem *dragoman.Problem, waited bool) {
	var turn chan struct{} // that was waited for
	var at *held
	for {
		a.of.mu.Lock()
		full, lack, problem := a.try(turn != nil)
		if lack != nil {
			if problem = a.fetch(ctx, lack); problem == nil {
				a.of.mu.Unlock()
				continue
			}
		}
		if full != nil {
			a.refused, a.slow = full.limit.name, full.limit.name
		}
		switch {
		case problem == nil && full == nil:
			a.of.keepSoon()
			a.of.mu.Unlock()
			return nil, turn != nil
		case problem == nil:
			problem = a.mayWait(full)
		}
		if at != nil && (problem != nil || full.counter != at.counter) {
			at.counter.wake() // the turn is another's
		}
		if problem != nil {
			a.tidy()
			a.of.mu.Unlock()
			return problem, turn != nil
		}
		next := make(chan struct{})
		if at != nil && at.counter == full.counter {
			full.counter.waiting = slices.Insert(full.counter.waiting, 0, next) // somebody was quicker
		} else {
			full.counter.waiting = append(full.counter.waiting, next)
		}
		a.of.waiting[full.counter] = struct{}{}
		a.of.mu.Unlock()
		turn, at = next, full
		if problem := a.wait(ctx, turn, at); problem != nil {
			return problem, true
		}
	}
}

// try looks at every limit, and takes a count of each where all of them let it
// pass. Otherwise it returns the problem, or the one that is full now, or the one that
// lacks what the store has.
func (a *admission) try(woken bool) (full, lack *held, problem *dragoman.Problem) {
	now := time.Now()
	var all []held
	for i := range a.of.limits {
		each := &a.of.limits[i]
		if !each.counts(a.use) {
			continue
		}
		owner, key := each.key(a.use)
		a.refused = each.name
		h := held{limit: each, counter: a.of.counter(each, owner, key), day: day(now)}
		if each.Calls > 0 || each.Tokens > 0 {
			if h.used = a.of.days.of(now, a.use.Caller.ID, owner, key); h.used == nil {
				return nil, nil, &dragoman.Problem{Code: dragoman.CodeRateLimited, Message: "Too many different things, or callers, are counted today. Try again tomorrow.", RetryAfter: untilMidnight(now)}
			}
		}
		if a.lacks(&h, now) {
			return nil, &h, nil
		}
		if h.used != nil {
			if problem := each.spent(a.use, h.used, now); problem != nil {
				return nil, nil, problem
			}
		}
		if each.Rate != "" && !a.use.Again {
			if missing := a.missing(&h, now); missing > 0 {
				return nil, nil, each.tooFast(missing)
			}
		}
		if each.Concurrent > 0 && full == nil && (h.counter.running >= a.of.places(&h, now) || !woken && len(h.counter.waiting) > 0) {
			full = &h
		}
		all = append(all, h)
	}
	if full != nil {
		return full, nil, nil
	}
	for _, h := range all {
		if !a.use.Again {
			a.of.spend(&h, now)
		}
		h.counter.running++
		if h.limit.Calls > 0 {
			a.of.days.add(h.used, 1, 0)
			if a.of.shared() && h.near() {
				a.of.keepNow()
			}
		}
	}
	a.held = all
	return nil, nil, nil
}

// mayWait returns why a use cannot wait for its turn; nil where it can.
func (a *admission) mayWait(full *held) *dragoman.Problem {
	if time.Now().Before(a.until) && len(full.counter.waiting) < maxWaiting {
		return nil
	}
	return &dragoman.Problem{
		Code: dragoman.CodeRateLimited, RetryAfter: time.Second,
		Message: fmt.Sprintf("The gateway's limit %q is %d at a time, and so many are running. Try again in a second.", full.limit.name, full.limit.Concurrent),
	}
}

// wait waits for a turn. Who gives up passes on a turn that came meanwhile.
func (a *admission) wait(ctx context.Context, turn chan struct{}, at *held) *dragoman.Problem {
	timer := time.NewTimer(time.Until(a.until))
	defer timer.Stop()
	var poll <-chan time.Time
	if a.of.shared() {
		ticker := time.NewTicker(askAgain)
		defer ticker.Stop()
		poll = ticker.C
	}
	for waiting := true; waiting; {
		select {
		case <-turn:
			return nil
		case <-poll:
			if a.of.first(at.counter, turn) {
				return nil
			}
		case <-timer.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if i := slices.Index(at.counter.waiting, turn); i >= 0 {
		at.counter.waiting = slices.Delete(at.counter.waiting, i, i+1)
	} else {
		at.counter.wake()
	}
	a.of.forget(at.counter)
	a.tidy()
	if err := context.Cause(ctx); err != nil {
		return &dragoman.Problem{Code: dragoman.CodeCanceled, Message: "The call was cancelled while it waited for its turn.", Err: err}
	}
	return a.mayWait(at)
}

// first gives a turn to whoever waits longest, who asks the store again for what other
// replicas have had until then.
func (l *Limiter) first(c *counter, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(c.waiting) == 0 || c.waiting[0] != turn {
		return false
	}
	c.waiting = c.waiting[1:]
	return true
}

// forget forgets a counter at which nobody waits. l.mu is held.
func (l *Limiter) forget(c *counter) {
	if len(c.waiting) == 0 {
		delete(l.waiting, c)
	}
}

// leave gives back what is held; what did not run counts for no day.
func (a *admission) leave(ran bool) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	today := day(time.Now())
	for _, h := range a.held {
		h.counter.running--
		h.counter.wake()
		a.of.forget(h.counter)
		a.of.giveBack(&h)
		if !ran && h.limit.Calls > 0 && h.day == today {
			a.of.days.add(h.used, -1, 0)
		}
	}
	a.of.keepSoon()
}

// spent says that a day's budget is used up; nil where it is not.
func (l *limit) spent(u *Use, used *usage, now time.Time) *dragoman.Problem {
	what := ""
	switch {
	case l.Calls > 0 && used.calls >= l.Calls:
		what = fmt.Sprintf("%d calls", l.Calls)
	case l.Tokens > 0 && used.tokens >= l.Tokens && (u.Kind == "model" || u.Kind == "route"):
		what = fmt.Sprintf("%d tokens", l.Tokens)
	default:
		return nil
	}
	after := untilMidnight(now)
	return &dragoman.Problem{
		Code: dragoman.CodeBudget, RetryAfter: after,
		Message: fmt.Sprintf("The gateway's limit %q is %s a day, and they are used up. The next day begins at midnight UTC, in %s.", l.name, what, seconds(after)),
	}
}

func (l *limit) tooFast(after time.Duration) *dragoman.Problem {
	after = after.Truncate(time.Millisecond) + time.Millisecond // what is missing is a fraction of a call
	return &dragoman.Problem{
		Code: dragoman.CodeRateLimited, RetryAfter: after,
		Message: fmt.Sprintf("The gateway's limit %q is %s. Try again in %s.", l.name, l.words, seconds(after)),
	}
}
