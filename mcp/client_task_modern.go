package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// followTask watches a task that a server of the modern era made of a call, and
// puts to the caller what the server asks about it (SEP-2663). When there is no use
// in it any more, the task is cancelled.
func (c *Client) followTask(ctx context.Context, r *request, task *rawjson.Object) (*answer, error) {
	if _, err := taskID(task); err != nil {
		return nil, err
	}
	r.pending.made.Store(true)
	t := &taskRun{c: c, r: r, id: task.Get("taskId")}
	a, err := t.follow(ctx, task)
	if err != nil && !t.over && !errors.As(err, new(*RPCError)) {
		t.cancel()
	}
	return a, err
}

// follow asks for the state of the task until it has ended.
func (t *taskRun) follow(ctx context.Context, task *rawjson.Object) (*answer, error) {
	asked := map[string]bool{}
	for created := true; ; created = false {
		status, _ := rawjson.String(task.Get("status"))
		switch t.over = status == "completed" || status == "failed" || status == "cancelled"; {
		case status == "cancelled":
			return nil, errTaskCancelled
		case t.over && !created:
			return ended(status, task)
		case status == "input_required" && !created:
			if err := t.answer(ctx, object(task.Get("inputRequests")), asked); err != nil {
				return nil, err
			}
		case status != "working" && status != "input_required" && !t.over:
			return nil, fmt.Errorf("%w: task status %q", ErrAnswer, bounded(status, 40))
		}
		// What a task came to, and what it asks, is told by tasks/get alone.
		if !created || status == "working" {
			if err := pause(ctx, task, "pollIntervalMs"); err != nil {
				return nil, err
			}
		}
		a, err := t.ask(ctx, methodTaskGet, nil)
		if err != nil {
			return nil, err
		}
		task = a.object
	}
}

// ended returns what a task came to.
func ended(status string, task *rawjson.Object) (*answer, error) {
	if status == "failed" {
		o := object(task.Get("error"))
		e := &RPCError{Data: o.Get("data")}
		e.Code, _ = number(o.Get("code"))
		if e.Message, _ = rawjson.String(o.Get("message")); e.Message == "" {
			e.Message = "the task failed"
		}
		return nil, e
	}
	raw := task.Get("result")
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: the task ended without a result", ErrAnswer)
	}
	return &answer{raw: raw, object: o}, nil
}

// answer puts to the caller those questions of the server that were not put yet,
// and sends the server the answers.
func (t *taskRun) answer(ctx context.Context, requests *rawjson.Object, asked map[string]bool) error {
	type reply struct {
		q   *question
		raw json.RawMessage
	}
	f := t.r.pending
	var questions []*question
	replies := make(chan reply, len(requests.Members))
	for _, m := range requests.Members {
		if asked[m.Name] {
			continue // the answer is on its way
		}
		o := object(m.Value)
		method, _ := rawjson.String(o.Get("method"))
		q := &question{key: m.Name, params: o.Get("params")}
		q.kind = asking(method, q.params)
		if need := needed(q.kind, q.params); q.kind == 0 || need&f.call.Can&f.c.o.Can != need {
			return fmt.Errorf("%w: it asks for %s, which was not declared", ErrAnswer, bounded(method, 60))
		}
		if len(asked) >= t.c.limits.Requests {
			return fmt.Errorf("%w: the task asked %d times", ErrAnswer, len(asked))
		}
		asked[m.Name] = true
		q.reply = func(raw json.RawMessage) { replies <- reply{q, raw} } // there is room
		questions = append(questions, q)
	}
	for _, q := range questions {
		f.put(q)
	}
	responses := rawjson.Object{}
	for range questions {
		select {
		case got := <-replies:
			raw, err := answered(got.q.kind, defaults(got.q.params), got.raw)
			if err != nil {
				return errGone
			}
			responses.Set(got.q.key, raw)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if len(responses.Members) == 0 {
		return nil
	}
	_, err := t.ask(ctx, methodTaskUpdate, append([]byte(`"inputResponses":`), responses.Bytes()...))
	return err
}
