package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A call can become a task of the server: MCP 2025-11-25 lets the client ask for
// one, with a member of the request; later the server decides, for clients that
// declare [TasksExtension]. Either way the task is handed to a caller who takes
// tasks, and watched to its end here for one who wants the result.

// methodTool is the one method of which servers make tasks.
const methodTool = "tools/call"

// Methods about tasks. tasks/result and tasks/list are of the legacy era, and
// tasks/update of the modern one.
const (
	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskList   = "tasks/list"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
)

// aboutTask reports whether a method is about a task that it names.
func aboutTask(method string) bool {
	switch method {
	case methodTaskGet, methodTaskResult, methodTaskUpdate, methodTaskCancel:
		return true
	}
	return false
}

// errTaskCancelled: the server ended the task of a call without a result.
var errTaskCancelled = errors.New("the server cancelled the task")

// needsTask reports whether the tool of this definition can only be called as a
// task.
func needsTask(definition json.RawMessage) bool {
	if !bytes.Contains(definition, []byte(`"taskSupport"`)) {
		return false
	}
	support, _ := rawjson.String(object(object(definition).Get("execution")).Get("taskSupport"))
	return support == "required"
}

// runTool sends a tools/call: to a server of the legacy era as a task where the
// caller or the tool wants one. What a server of the modern era makes a task of is
// handed over, or watched to its end.
func (c *Client) runTool(ctx context.Context, r *request) (*answer, error) {
	s, call := c.session.Load(), &r.pending.call
	switch {
	case s.era == Modern:
		a, err := c.do(ctx, r)
		switch {
		case err != nil || !a.task:
			return a, err
		case call.TakesTask:
			a.taskID, err = taskID(a.object)
			return a, err
		}
		return c.followTask(ctx, r, a.object)
	case call.Task != nil && s.declared.toolTasks:
		r.join(append([]byte(`"task":`), call.Task...))
		a, err := c.do(ctx, r)
		if err == nil && a.object.Get("task") != nil {
			a.taskID, err = taskID(object(a.object.Get("task")))
		}
		return a, err
	case needsTask(call.Tool.Definition):
		return c.runTask(ctx, r)
	}
	return c.do(ctx, r)
}

// taskID returns the id of a task.
func taskID(task *rawjson.Object) (string, error) {
	id, ok := rawjson.String(task.Get("taskId"))
	if !ok || id == "" {
		return "", fmt.Errorf("%w: a task without an id", ErrAnswer)
	}
	return id, nil
}

// A taskRun is a task that is watched here, on behalf of a call.
type taskRun struct {
	c    *Client
	r    *request // that the task was made of
	id   json.RawMessage
	over bool // the server has ended it
}

// ask makes a request about the task, again where the way to the server broke: it
// changes nothing, and the task goes on meanwhile. members follow the id.
func (t *taskRun) ask(ctx context.Context, method string, members []byte) (*answer, error) {
	r := t.request(method, members, t.r.pending)
	return t.c.insist(ctx, func() (*answer, error) { return t.c.do(ctx, r) })
}

func (t *taskRun) request(method string, members []byte, f *pendingCall) *request {
	inner := append([]byte(`"taskId":`), t.id...)
	if members != nil {
		inner = append(append(inner, ','), members...)
	}
	name, _ := rawjson.String(t.id)
	return &request{method: method, inner: inner, name: name, can: t.r.can, tasks: t.r.tasks, pending: f}
}

// cancel tells the server that nobody waits for the task any more.
func (t *taskRun) cancel() {
	t.c.start(func() {
		stop, cancel := context.WithTimeout(t.c.ctx, cancelPatience)
		defer cancel()
		_, _ = t.c.do(stop, t.request(methodTaskCancel, nil, nil))
	})
}

// insist makes a request again where the way to the server broke, which a proxy in it says
// with a status.
func (c *Client) insist(ctx context.Context, request func() (*answer, error)) (*answer, error) {
	for failures := 0; ; failures++ {
		a, err := request()
		wait, broke := wayBroke(err)
		if !broke || failures >= resumptions {
			return a, err
		}
		if sleep(ctx, max(wait, backOff(failures))) != nil || c.ctx.Err() != nil {
			return a, err
		}
	}
}

// wayBroke reports whether an error is of the way to the server, and for how long
// nothing ought to be sent there again.
func wayBroke(err error) (wait time.Duration, broke bool) {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return min(e.RetryAfter, time.Minute), later(e.Status)
	}
	return 0, errors.As(err, new(*TransportError))
}

// pause waits for as long as the server wants between two questions about a task:
// a second where it does not say, and at most a minute.
func pause(ctx context.Context, task *rawjson.Object, member string) error {
	ms, ok := number(task.Get(member))
	if !ok {
		ms = 1000
	}
	return sleep(ctx, time.Duration(min(max(ms, 20), 60_000))*time.Millisecond)
}
