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
	r.join(fmt.Appendf(nil, `"task":{"ttl":%d}`, taskLife.Milliseconds()))
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	task := object(a.object.Get("task"))
	id := task.Get("taskId")
	if rawjson.Kind(id) != '"' {
		return a, nil // the server made no task of it: this is the result
	}
	r.flight.made.Store(true)
	ref := append([]byte(`"taskId":`), id...)
	about := func(method string, f *flight) *request {
		return &request{method: method, inner: ref, can: r.can, flight: f}
	}
	c.mu.Lock()
	c.tasks[string(id)] = r.flight
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.tasks, string(id))
		c.mu.Unlock()
	}()
	a, err = c.waitTask(ctx, task, func(method string) (*answer, error) {
		return c.insist(ctx, about(method, r.flight))
	})
	if ctx.Err() != nil && s.declared.cancelTasks {
		c.start(func() {
			stop, cancel := context.WithTimeout(c.ctx, cancelPatience)
			defer cancel()
			_, _ = c.do(stop, about("tasks/cancel", nil))
		})
	}
	return a, err
}

// insist makes a request about a task, again where the way to the server broke:
// it changes nothing, and the task goes on meanwhile.
func (c *Client) insist(ctx context.Context, r *request) (*answer, error) {
	for failures := 0; ; failures++ {
		a, err := c.do(ctx, r)
		if !errors.As(err, new(*TransportError)) || failures >= resumptions {
			return a, err
		}
		if sleep(ctx, backOff(failures)) != nil || c.ctx.Err() != nil {
			return a, err
		}
	}
}

// waitTask asks for the state of a task until there is a result to get.
func (c *Client) waitTask(ctx context.Context, task *rawjson.Object, ask func(method string) (*answer, error)) (*answer, error) {
	for {
		switch status, _ := rawjson.String(task.Get("status")); status {
		case "working":
		case "completed", "failed", "cancelled", "input_required":
			// tasks/result brings the questions of the server, too.
			return ask("tasks/result")
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
		a, err := ask("tasks/get")
		if err != nil {
			return nil, err
		}
		task = a.object
	}
}
