package mcp

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// asksOfServers are the kinds of questions that MCP knows.
const asksOfServers = dragoman.AskForm | dragoman.AskURL | dragoman.AskSampling | dragoman.AskTools | dragoman.AskRoots

// asking returns the kind of question that a request is; zero for none, or for
// an elicitation in a mode that nobody knows.
func asking(method string, params json.RawMessage) dragoman.Kind {
	switch method {
	case "roots/list":
		return dragoman.AskRoots
	case "sampling/createMessage":
		return dragoman.AskSampling
	case "elicitation/create":
		switch mode, _ := rawjson.String(object(params).Get("mode")); mode {
		case "", "form":
			return dragoman.AskForm
		case "url":
			return dragoman.AskURL
		}
	}
	return 0
}

// needed returns all that has to be declared before a question of a kind may be asked: one
// for a sample may not offer tools to those who have not said that they take them (MCP
// 2025-11-25, "Sampling", Tool Use).
func needed(kind dragoman.Kind, params json.RawMessage) dragoman.Kind {
	if kind == dragoman.AskSampling && (rawjson.Get(params, "tools") != nil || rawjson.Get(params, "toolChoice") != nil) {
		return kind | dragoman.AskTools
	}
	return kind
}

// A question waits for its answer: a request of a legacy server, or what the task
// of a modern one asks.
type question struct {
	conn    connection
	id      json.RawMessage
	key     string // among those of a call; empty until it has one
	kind    dragoman.Kind
	params  json.RawMessage
	put     bool                  // to whoever made the call
	pending *pendingCall          // that took over a question which was held; under Client.mu
	reply   func(json.RawMessage) // takes the answer in place of conn; nil: nobody answers
}

// handleRequest takes a request of the server.
func (c *Client) handleRequest(l connection, x *exchange, m message) {
	if s := c.session.Load(); s != nil && s.era == Modern {
		// A modern server must not send requests, and a modern client not answer.
		c.log.Warn("modern MCP server sent a request", "method", bounded(m.method, 60))
		return
	}
	kind := asking(m.method, m.params)
	switch {
	case m.method == "ping":
		c.answer(l, m.id, json.RawMessage(`{}`), nil)
	case kind == 0 && m.method == "elicitation/create":
		c.answer(l, m.id, nil, &RPCError{Code: codeInvalidParams, Message: "unknown elicitation mode"})
	case kind == dragoman.AskURL && c.o.Can&dragoman.AskForm != 0 && c.o.Can&kind == 0,
		kind == dragoman.AskForm && c.o.Can&dragoman.AskURL != 0 && c.o.Can&kind == 0:
		c.answer(l, m.id, nil, &RPCError{Code: codeInvalidParams, Message: "this client did not declare that elicitation mode"})
	case c.o.Can&kind == 0:
		c.answer(l, m.id, nil, &RPCError{Code: codeMethodNotFound, Message: "this client does not answer " + bounded(m.method, 60)})
	default:
		f, task, several := c.callAskedFor(x, m.params)
		if f == nil && task != "" && c.hold(task, &question{conn: l, id: m.id, kind: kind, params: m.params}) {
			return
		}
		if several {
			c.log.Warn("declined what an MCP server asks: several calls are on their way on one connection, and nothing says for which it asks", "method", m.method)
		}
		if f == nil || !f.takes(kind, m.params) {
			result, err := declined(kind)
			c.answer(l, m.id, result, err)
			return
		}
		f.ask(&question{conn: l, id: m.id, kind: kind, params: m.params})
	}
}

// callAskedFor returns the call that a question belongs to: that of the task that it
// names, the one on whose stream it came, or the only one that is on its way. On
// a channel that all share nothing else says which it is, and of several it may be any. Of
// a task of which nobody hears now, it returns the raw id.
func (c *Client) callAskedFor(x *exchange, params json.RawMessage) (f *pendingCall, task string, several bool) {
	task = string(object(object(object(params).Get("_meta")).Get(metaTask)).Get("taskId"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.tasks[task]; f != nil || task != "" {
		return f, task, false
	}
	if x != nil {
		return x.pending, "", false
	}
	f, several = c.only()
	return f, "", several
}

// only returns the one call that is on its way; nil for none, and for several. Those that
// only listen are none. mu is held.
func (c *Client) only() (one *pendingCall, several bool) {
	for f := range c.pending {
		switch {
		case f.call.Method == listenMethod:
		case one != nil:
			return nil, true
		default:
			one = f
		}
	}
	return one, false
}

// declined is the answer to a question that nobody behind the call can be asked.
func declined(kind dragoman.Kind) (json.RawMessage, error) {
	switch kind {
	case dragoman.AskSampling:
		return nil, &RPCError{Code: codeRejected, Message: "sampling is not available for this call"}
	case dragoman.AskRoots:
		return nil, &RPCError{Code: codeMethodNotFound, Message: "roots are not available for this call"}
	}
	return json.RawMessage(`{"action":"decline"}`), nil
}

// answered makes the answer to a question of a reply to it, which may be nil. An
// elicitation that is accepted without content takes the form as it stands: with
// the defaults of its schema (MCP 2025-11-25, "Elicitation", Requested Schema).
func answered(kind dragoman.Kind, form, reply json.RawMessage) (json.RawMessage, error) {
	o, err := rawjson.ParseObject(reply)
	if err != nil || rawjson.Check(reply) != nil {
		switch kind {
		case dragoman.AskSampling, dragoman.AskRoots:
			return nil, &RPCError{Code: codeRejected, Message: "nobody answered"}
		}
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	if action, _ := rawjson.String(o.Get("action")); kind == dragoman.AskForm && action == "accept" && o.Get("content") == nil {
		o = o.Clone()
		o.Set("content", form)
		return o.Bytes(), nil
	}
	return reply, nil
}

// defaults returns the form that an elicitation asks for as it stands: its
// properties that have a default.
func defaults(params json.RawMessage) json.RawMessage {
	form := rawjson.Object{}
	for _, p := range object(object(object(params).Get("requestedSchema")).Get("properties")).Members {
		if v := object(p.Value).Get("default"); v != nil {
			form.Set(p.Name, v)
		}
	}
	return form.Bytes()
}

// takes reports whether whoever made the call can be asked a question.
func (f *pendingCall) takes(kind dragoman.Kind, params json.RawMessage) bool {
	need := needed(kind, params)
	return f.call.Can&f.c.o.Can&need == need
}

// ask keeps a question of the server for whoever made the call.
func (f *pendingCall) ask(q *question) {
	if !f.c.serve(q.id, func() { f.forget(q) }) {
		f.c.answer(q.conn, q.id, nil, &RPCError{Code: codeInternal, Message: "too many requests at a time"})
		return
	}
	f.put(q)
}

// put keeps a question of the server, which is known to be open, for whoever made
// the call.
func (f *pendingCall) put(q *question) {
	f.mu.Lock()
	landed := f.answered
	if !landed {
		if f.count++; q.key == "" {
			q.key = strconv.Itoa(f.count)
		}
		f.questions = append(f.questions, q)
		select {
		case f.news <- struct{}{}:
		default:
		}
	}
	f.mu.Unlock()
	if landed {
		f.answer(q, nil)
	}
}

// forget takes back a question that the server does not ask any more.
func (f *pendingCall) forget(q *question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.questions = slices.DeleteFunc(f.questions, func(have *question) bool { return have == q })
	if !slices.ContainsFunc(f.questions, func(q *question) bool { return q.put }) {
		f.noneWaits()
	}
}

// noneWaits tells whoever was asked that no answer is waited for. mu is held.
func (f *pendingCall) noneWaits() {
	if f.withdrawn != nil {
		close(f.withdrawn)
		f.withdrawn = nil
	}
}

// answer answers a question, unless the server has withdrawn it.
func (f *pendingCall) answer(q *question, reply json.RawMessage) {
	if q.reply != nil {
		q.reply(reply)
		return
	}
	if !f.c.served(q.id) {
		return
	}
	result, err := answered(q.kind, defaults(q.params), reply)
	f.c.answer(q.conn, q.id, result, err)
}

// withdrawQuestions ends what the call has asked: nobody will answer now.
func (f *pendingCall) withdrawQuestions() {
	f.mu.Lock()
	questions := f.questions
	f.questions, f.answered = nil, true
	f.noneWaits()
	f.mu.Unlock()
	for _, q := range questions {
		f.answer(q, nil)
	}
}
