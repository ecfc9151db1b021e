package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// taskLife is how long a server of the legacy era is asked to keep a task and its
// result.
const taskLife = 24 * time.Hour

// runTask runs a tools/call as a task of a server of the legacy era (MCP
// 2025-11-25, "Tasks"). When ctx ends, the task is cancelled.
func (c *Client) runTask(ctx context.Context, r *request) (*answer, error) {
	s := c.session.Load()
	r.join(fmt.Appendf(nil, `"task":{"ttl":%d}`, taskLife.Milliseconds()))
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	task := object(a.object.Get("task"))
	t := &taskRun{c: c, r: r, id: task.Get("taskId")}
	if rawjson.Kind(t.id) != '"' {
		return a, nil // the server made no task of it: this is the result
	}
	r.pending.made.Store(true)
	defer c.attach(t.id, r.pending)()
	a, err = t.wait(ctx, task)
	if ctx.Err() != nil && s.declared.cancelTasks {
		t.cancel()
	}
	return a, err
}

// wait asks for the state of the task until there is a result to get.
func (t *taskRun) wait(ctx context.Context, task *rawjson.Object) (*answer, error) {
	for {
		switch status, _ := rawjson.String(task.Get("status")); status {
		case "working":
		case "completed", "failed", "input_required":
			// tasks/result brings the questions of the server, too.
			return t.ask(ctx, methodTaskResult, nil)
		case "cancelled":
			// It should be an error that tasks/result brings now; that of mcp-go (1.2) is a
			// result without anything in it, which would be a success.
			return nil, errTaskCancelled
		default:
			return nil, fmt.Errorf("%w: task status %q", ErrAnswer, bounded(status, 40))
		}
		if err := pause(ctx, task, "pollInterval"); err != nil {
			return nil, err
		}
		a, err := t.ask(ctx, methodTaskGet, nil)
		if err != nil {
			return nil, err
		}
		task = a.object
	}
}

// taskResult asks for the result of a task that a caller was given, and hears what
// the server asks about it meanwhile.
func (c *Client) taskResult(ctx context.Context, r *request) (*answer, error) {
	id := object(r.pending.call.Arguments).Get("taskId")
	defer c.attach(id, r.pending)()
	return c.insist(ctx, func() (*answer, error) { return c.do(ctx, r) })
}
