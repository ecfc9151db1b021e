package dragoman

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errBudget is why calls end when the clock of their conversation has run down.
var errBudget = errors.New("the conversation's time is used up")

// A clock is the time that a conversation has. It stands still while somebody is
// asked.
type clock struct {
	mu      sync.Mutex
	left    time.Duration // when it last stood still
	since   time.Time     // since then it runs; zero while it stands still
	asking  int           // how many calls wait for answers
	expired context.CancelCauseFunc
	timer   *time.Timer // calls expired; nil while no round runs
}

// start lets the clock run.
func (c *clock) start() { c.since = time.Now() }

// down reports whether the clock has run down.
func (c *clock) down() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remaining() <= 0
}

func (c *clock) remaining() time.Duration {
	if c.since.IsZero() {
		return c.left
	}
	return c.left - time.Since(c.since)
}

// bound returns a context that ends with errBudget when the clock runs down. One
// round at a time has one.
func (c *clock) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, expired := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired = expired
	c.timer = time.AfterFunc(c.remaining(), func() { expired(errBudget) })
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer.Stop()
		c.timer = nil
		expired(nil)
	}
}

// pause lets the clock stand still until resume is called.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking++; c.asking == 1 {
		c.left, c.since = c.remaining(), time.Time{}
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.asking--; c.asking > 0 {
			return
		}
		c.since = time.Now()
		if c.timer != nil {
			c.timer.Reset(c.left)
		}
	}
}
