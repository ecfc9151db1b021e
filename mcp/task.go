package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// Tasks of MCP 2025-11-25: a tool that says execution.taskSupport "required" is
// called as a task, whose state is asked for until it has ended.

// needsTask reports whether the tool of this definition can only be called as a
// task.
func needsTask(definition json.RawMessage) bool {
	if !bytes.Contains(definition, []byte(`"taskSupport"`)) {
		return false
	}
	support, _ := rawjson.String(object(object(definition).Get("execution")).Get("taskSupport"))
	return support == "required"
}

// taskLife is how long the server is asked to keep a task and its result.
const taskLife = 24 * time.Hour

// runTask runs a tools/call as a task. When ctx ends, the task is cancelled.
func (c *Client) runTask(ctx context.Context, r *request) (*answer, error) {
	s := c.session.Load()
	r.inner = append(r.inner[:len(r.inner):len(r.inner)], fmt.Sprintf(`,"task":{"ttl":%d}`, taskLife.Milliseconds())...)
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	task := object(a.object.Get("task"))
	id := task.Get("taskId")
	if rawjson.Kind(id) != '"' {
		return a, nil // the server made no task of it: this is the result
	}
	ref := append([]byte(`"taskId":`), id...)
	ask := func(method string) *request {
		return &request{method: method, inner: ref, ask: r.ask}
	}
	running, end := context.WithCancel(ctx)
	defer end()
	c.mu.Lock()
	c.tasks[string(id)] = &exchange{ctx: running, ask: r.ask}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.tasks, string(id))
		c.mu.Unlock()
	}()
	a, err = c.waitTask(ctx, task, ask)
	if ctx.Err() != nil && s.declared.cancelTasks {
		c.start(func() {
			stop, cancel := context.WithTimeout(c.ctx, 5*time.Second)
			defer cancel()
			_, _ = c.do(stop, ask("tasks/cancel"))
		})
	}
	if e, ok := errors.AsType[*TransportError](err); ok {
		err = &TransportError{Sent: true, Err: e.Err} // the task itself was sent
	}
	return a, err
}

// waitTask asks for the state of a task until there is a result to get.
func (c *Client) waitTask(ctx context.Context, task *rawjson.Object, ask func(string) *request) (*answer, error) {
	for {
		switch status, _ := rawjson.String(task.Get("status")); status {
		case "working":
		case "completed", "failed", "cancelled", "input_required":
			// tasks/result brings the questions of the server, too.
			return c.do(ctx, ask("tasks/result"))
		default:
			return nil, fmt.Errorf("%w: task status %q", ErrAnswer, bounded(status, 40))
		}
		pause, ok := number(task.Get("pollInterval"))
		if !ok {
			pause = 1000
		}
		pause = min(max(pause, 20), 60_000)
		if err := sleep(ctx, time.Duration(pause)*time.Millisecond); err != nil {
			return nil, err
		}
		a, err := c.do(ctx, ask("tasks/get"))
		if err != nil {
			return nil, err
		}
		task = a.object
	}
}
