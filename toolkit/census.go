package toolkit

import (
	"context"
	"sync"
)

// A census counts the calls under way, so that a server can wait for them.
type census struct {
	mu    sync.Mutex
	count int
	idle  []chan struct{} // closed when count reaches 0
}

func (c *census) enter() {
	c.mu.Lock()
	c.count++
	c.mu.Unlock()
}

func (c *census) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count--; c.count == 0 {
		for _, waiting := range c.idle {
			close(waiting)
		}
		c.idle = nil
	}
}

// wait returns when no call is under way, or when ctx ends.
func (c *census) wait(ctx context.Context) {
	c.mu.Lock()
	if c.count == 0 {
		c.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	c.idle = append(c.idle, idle)
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
