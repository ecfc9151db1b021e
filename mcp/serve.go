package mcp

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// receive takes a notification or a request of the server, and does not block.
// x is the exchange whose own stream carried it; nil on a shared channel.
func (c *Client) receive(l link, x *exchange, m message) {
	if m.id == nil {
		c.notified(l, m)
		return
	}
	if s := c.session.Load(); s != nil && s.era == Modern {
		// A modern server must not send requests, and a modern client not answer.
		c.log.Warn("modern MCP server sent a request", "server", c.o.Label, "method", bounded(m.method, 60))
		return
	}
	if m.method == "ping" {
		c.answer(l, m.id, json.RawMessage(`{}`), nil)
		return
	}
	if !c.serves(m.method) {
		c.answer(l, m.id, nil, &RPCError{Code: codeMethodNotFound, Message: "this client does not answer " + bounded(m.method, 60)})
		return
	}
	x = c.askedBy(x, m.params)
	ctx, cancel := context.WithCancel(c.ctx)
	id := string(m.id)
	c.mu.Lock()
	full := len(c.serving) >= c.o.Limits.Requests || c.serving[id] != nil
	if !full {
		c.serving[id] = cancel
	}
	c.mu.Unlock()
	if full {
		cancel()
		c.answer(l, m.id, nil, &RPCError{Code: codeInternal, Message: "too many requests at a time"})
		return
	}
	c.start(func() {
		var ask func(context.Context, Question) (Reply, error)
		if x != nil {
			ask = x.ask
			defer context.AfterFunc(x.ctx, cancel)()
		}
		res, err := c.serve(ctx, m.method, m.params, ask)
		gone := ctx.Err() != nil
		cancel()
		c.mu.Lock()
		delete(c.serving, id)
		c.mu.Unlock()
		if !gone {
			c.answer(l, m.id, res, err)
		} else if c.ctx.Err() == nil && x != nil && x.ctx.Err() != nil {
			c.answer(l, m.id, nil, &RPCError{Code: codeInternal, Message: "the call was cancelled"})
		}
	})
}

// answer sends the answer to a request of the server.
func (c *Client) answer(l link, id, result json.RawMessage, err error) {
	if c.busy.Add(1) > 4*int64(c.o.Limits.Requests) {
		c.busy.Add(-1)
		c.log.Warn("MCP server asks faster than it takes answers", "server", c.o.Label)
		return
	}
	body := reply(id, result, err)
	if !c.start(func() {
		defer c.busy.Add(-1)
		if err := l.send(c.ctx, body); err != nil && c.ctx.Err() == nil {
			c.log.Warn("answering a request of the MCP server", "server", c.o.Label, "error", err)
		}
	}) {
		c.busy.Add(-1)
	}
}

// askedBy returns the exchange that a request of the server belongs to: that of
// the task that it names, the one whose stream it came on, or the only one that
// is running. On a shared channel nothing else says which it is.
func (c *Client) askedBy(x *exchange, params json.RawMessage) *exchange {
	task := object(object(object(params).Get("_meta")).Get(metaTask)).Get("taskId")
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tasks[string(task)]; t != nil {
		return t
	}
	if x != nil || len(c.asking) != 1 {
		return x
	}
	for only := range c.asking {
		x = only
	}
	return x
}

// serves reports whether we declared that we answer method.
func (c *Client) serves(method string) bool {
	switch method {
	case "roots/list":
		return c.o.Roots != nil
	case "sampling/createMessage":
		return c.o.Sampling != nil
	case "elicitation/create":
		return c.o.Elicit != nil
	}
	return false
}

// serve answers what the server asks of us. ask comes before the client's own
// hook.
func (c *Client) serve(ctx context.Context, method string, params json.RawMessage, ask func(context.Context, Question) (Reply, error)) (json.RawMessage, error) {
	if ask == nil {
		ask = c.o.Elicit
	}
	switch {
	case method == "roots/list" && c.o.Roots != nil:
		roots, err := c.o.Roots(ctx)
		if err != nil {
			return nil, err
		}
		return append(append([]byte(`{"roots":`), roots...), '}'), nil
	case method == "sampling/createMessage" && c.o.Sampling != nil:
		return c.o.Sampling(ctx, params)
	case method == "elicitation/create" && ask != nil:
		return c.elicit(ctx, params, ask)
	}
	return nil, &RPCError{Code: codeMethodNotFound, Message: "this client does not answer " + bounded(method, 60)}
}

// elicit puts a question of the server to a person.
func (c *Client) elicit(ctx context.Context, params json.RawMessage, ask func(context.Context, Question) (Reply, error)) (json.RawMessage, error) {
	o := object(params)
	q := Question{Server: c.o.Label}
	q.Message, _ = rawjson.String(o.Get("message"))
	switch mode, _ := rawjson.String(o.Get("mode")); mode {
	case "", "form":
		q.Schema = o.Get("requestedSchema")
	case "url":
		q.URL, _ = rawjson.String(o.Get("url"))
	default:
		return nil, &RPCError{Code: codeInvalidParams, Message: "unknown elicitation mode"}
	}
	r, err := ask(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		c.log.Warn("asking a person for the MCP server", "server", c.o.Label, "error", err)
		r = Reply{Action: "cancel"}
	}
	res := rawjson.Object{}
	res.Set("action", rawjson.Quote(r.Action))
	if r.Action == "accept" && q.URL == "" {
		content := r.Content
		if content == nil {
			content = defaults(q.Schema)
		}
		res.Set("content", content)
	}
	return res.Bytes(), nil
}

// defaults returns the form of schema as it stands: its properties that have a
// default (MCP 2025-11-25, "Elicitation", Requested Schema).
func defaults(schema json.RawMessage) json.RawMessage {
	form := rawjson.Object{}
	for _, p := range object(object(schema).Get("properties")).Members {
		if v := object(p.Value).Get("default"); v != nil {
			form.Set(p.Name, v)
		}
	}
	return form.Bytes()
}

// notified takes a notification.
func (c *Client) notified(l link, m message) {
	switch m.method {
	case "notifications/progress":
		c.progressed(m.params)
		return
	case "notifications/cancelled":
		raw := object(m.params).Get("requestId")
		if s, ok := l.(*stream); ok {
			// On a shared channel a modern server ends a subscription like this.
			if id, ok := number(raw); ok {
				s.unsubscribe(id)
			}
		}
		c.mu.Lock()
		cancel := c.serving[string(raw)]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
	if what, ok := strings.CutSuffix(m.method, "/list_changed"); ok {
		switch what = strings.TrimPrefix(what, "notifications/"); what {
		case "tools", "prompts", "resources":
			c.listChanged(what)
		}
	}
	if c.o.OnNotification != nil {
		c.o.OnNotification(m.method, m.params)
	}
}

// progressed hands progress to the call that it belongs to.
func (c *Client) progressed(params json.RawMessage) {
	o := object(params)
	token, ok := number(o.Get("progressToken"))
	if !ok {
		return
	}
	c.mu.Lock()
	p := c.progress[token]
	c.mu.Unlock()
	if p == nil {
		return
	}
	var v dragoman.Progress
	v.Progress, _ = strconv.ParseFloat(string(o.Get("progress")), 64)
	v.Total, _ = strconv.ParseFloat(string(o.Get("total")), 64)
	v.Message, _ = rawjson.String(o.Get("message"))
	p.tell(v)
}
