package mcp

import (
	"encoding/json"
	"slices"
	"time"
)

// maxHeld is how many questions about tasks of callers are held at a time, of one
// connection.
const maxHeld = 16

// attach lets a call hear what the server asks about a task: also what it asked
// when nobody listened, which is declined where whoever made the call cannot be asked it.
// The returned function ends that.
func (c *Client) attach(id json.RawMessage, f *pendingCall) (detach func()) {
	c.mu.Lock()
	held := c.held[string(id)]
	delete(c.held, string(id))
	first := c.tasks[string(id)] == nil
	if first {
		c.tasks[string(id)] = f
	}
	for _, q := range held {
		q.pending = f
	}
	c.mu.Unlock()
	for _, q := range held {
		switch {
		case f.takes(q.kind, q.params):
			f.put(q)
		case c.served(q.id):
			result, err := declined(q.kind)
			c.answer(q.conn, q.id, result, err)
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if first {
			delete(c.tasks, string(id))
		}
	}
}

// hold keeps a question about a task that a caller was given, until the caller asks
// for the result: that is when the caller can be asked (MCP 2025-11-25, "Tasks",
// Input Required Status). It reports false where there is no room.
func (c *Client) hold(task string, q *question) bool {
	withdraw := func() { c.release(task, q) }
	c.mu.Lock()
	count := 0
	for _, held := range c.held {
		count += len(held)
	}
	room := count < maxHeld
	if room {
		c.held[task] = append(c.held[task], q)
	}
	c.mu.Unlock()
	if !room {
		return false
	}
	if !c.serve(q.id, withdraw) {
		c.release(task, q)
		return false
	}
	time.AfterFunc(parkLife, func() {
		if c.release(task, q) {
			c.settleHeld(q)
		}
	})
	return true
}

// settleHeld answers a question for which nobody came.
func (c *Client) settleHeld(q *question) {
	if c.served(q.id) {
		result, err := answered(q.kind, defaults(q.params), nil)
		c.answer(q.conn, q.id, result, err)
	}
}

// release takes a question back, and reports whether it was held still. One that a
// call has taken over is taken back there.
func (c *Client) release(task string, q *question) bool {
	c.mu.Lock()
	i := slices.Index(c.held[task], q)
	if i >= 0 {
		if c.held[task] = slices.Delete(c.held[task], i, i+1); len(c.held[task]) == 0 {
			delete(c.held, task)
		}
	}
	f := q.pending
	c.mu.Unlock()
	if f != nil {
		f.forget(q)
	}
	return i >= 0
}
