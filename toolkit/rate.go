package toolkit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Rate limits how often something is called.
type Rate struct {
	// PerSecond is the sustained rate; zero: no limit. 0.1 is one in ten seconds.
	PerSecond float64
	// Burst is how many calls may come at once; zero: PerSecond, at least 1. It
	// limits nothing by itself.
	Burst int
}

// check reports a rate that limits nothing, or lets nothing through, where it looks
// like a limit.
func (r Rate) check() error {
	switch {
	case !(r.PerSecond >= 0):
		return fmt.Errorf("PerSecond is %v; zero is no limit", r.PerSecond)
	case r.Burst < 0:
		return fmt.Errorf("a Burst of %d lets no call through", r.Burst)
	case r.Burst > 0 && r.PerSecond == 0:
		return errors.New("a Burst limits nothing without PerSecond")
	}
	return nil
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

// A budget is a rate for all callers together and one for each of them.
type budget struct {
	all *rate.Limiter // nil: no limit
	one Rate

	mu     sync.Mutex
	byUser map[string]*rate.Limiter
	sweep  int // look for idle users when there are so many
}

// fewUsers are kept without looking who is idle.
const fewUsers = 1024

func newBudget(all, one Rate) *budget { return &budget{all: all.limiter(), one: one, sweep: fewUsers} }

// limiters are those that a call of that caller needs.
func (b *budget) limiters(c Caller) []*rate.Limiter {
	var list []*rate.Limiter
	if b.all != nil {
		list = append(list, b.all)
	}
	if b.one.PerSecond <= 0 {
		return list
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.byUser[c.identity()]
	if l == nil {
		if b.byUser == nil {
			b.byUser = map[string]*rate.Limiter{}
		}
		b.forget()
		l = b.one.limiter()
		b.byUser[c.identity()] = l
	}
	return append(list, l)
}

// forget drops users who have not called for so long that their budget is full
// again, as a new one would be. What is kept is bounded by the users that the
// server recognises and are busy; looking for the others costs little each time,
// since it waits until there are twice as many as were left.
func (b *budget) forget() {
	if len(b.byUser) < b.sweep {
		return
	}
	for user, l := range b.byUser {
		if l.Tokens() >= float64(l.Burst()) {
			delete(b.byUser, user)
		}
	}
	b.sweep = max(fewUsers, 2*len(b.byUser))
}

// admit takes a call from the budget of each limiter, or says when to come back.
func admit(limiters []*rate.Limiter) error {
	var taken []*rate.Reservation
	for _, l := range limiters {
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
