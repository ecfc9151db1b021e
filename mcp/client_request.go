package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A request is what a caller wants of the server. It may be sent more than once:
// on a renewed session, or with other headers.
type request struct {
	method  string
	params  json.RawMessage // an object, or nil
	inner   []byte          // in place of params: its members, without braces and without _meta
	meta    json.RawMessage // the caller's _meta; nil for the one in params
	name    string          // for Mcp-Name, when inner is set
	headers []header
	token   int64         // of progress; 0 for none
	can     dragoman.Kind // what a modern server may ask for
	tasks   bool          // a modern server may make a task of it, or it is about one
	pending *pendingCall  // the call that it is for; nil for requests of our own
	split   bool          // the result is checked in parts: a part that is not JSON does not spoil the others
}

// An answer is a result of the server.
type answer struct {
	raw    json.RawMessage
	object *rawjson.Object
	asks   bool   // it is no result yet: the server asks for input
	task   bool   // it is no result yet: the server made a task of the request
	taskID string // of the task that the caller is given in place of a result

	own  rawjson.Object // what object is
	room [5]rawjson.Member
}

// newAnswer takes a result apart.
func newAnswer(raw json.RawMessage) (*answer, error) {
	a := &answer{raw: raw}
	a.own.Members = a.room[:0]
	if err := a.own.Parse(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	a.object = &a.own
	return a, nil
}

// request sends a request of our own and returns its answer. params is a JSON
// object or nil. Errors of the server are *[RPCError].
func (c *Client) request(ctx context.Context, method string, params json.RawMessage) (*answer, error) {
	a, err := c.do(ctx, &request{method: method, params: params, can: c.o.Can})
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", method, err)
	}
	if a.asks {
		return nil, fmt.Errorf("requesting %s: %w: it asks where nobody can answer", method, ErrAnswer)
	}
	c.replay.note(c, method, params)
	return a, nil
}

// do sends r, over a renewed session if need be, and returns the answer.
func (c *Client) do(ctx context.Context, r *request) (*answer, error) {
	for renewed := false; ; renewed = true {
		s := c.session.Load()
		for c.renewal.Load() { // s may be the new one, which the server takes nothing on yet
			if err := c.renew(ctx, nil); err != nil {
				return nil, &TransportError{Err: fmt.Errorf("renewing the session: %w", err)}
			}
			s = c.session.Load()
		}
		a, err := c.attempt(ctx, s, r)
		gone, ok := errors.AsType[*sessionGone](err)
		if ok && gone.doubtful && !c.forgotten(ctx, s) {
			return nil, gone.err
		}
		if !ok || renewed || ctx.Err() != nil {
			if err == nil && s.era == Modern {
				err = a.judge(r)
			}
			return a, err
		}
		if err := c.renew(ctx, s); err != nil {
			// Whatever became of that, the request itself was not handled.
			return nil, &TransportError{Err: fmt.Errorf("renewing the session after %w: %w", gone, err)}
		}
	}
}

// judge reads the type of a modern server's result.
func (a *answer) judge(r *request) error {
	raw := a.object.Get("resultType")
	kind, ok := rawjson.String(raw)
	switch {
	case raw == nil, ok && kind == "complete":
		return nil
	case ok && kind == "input_required" && takesInput(r.method):
		a.asks = true
		return nil
	case ok && kind == "task" && r.tasks && r.method == "tools/call":
		a.task = true
		return nil
	}
	return fmt.Errorf("%w: result type %q", ErrAnswer, bounded(kind, 40))
}

// takesInput reports whether the server may ask for input before it answers
// method (MCP 2026-07-28, "Multi Round-Trip Requests", Supported Requests).
func takesInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// prepare takes _meta out of params, once.
func (r *request) prepare() error {
	if r.inner != nil || r.params == nil {
		return nil
	}
	o, err := rawjson.ParseObject(r.params)
	if err != nil {
		return fmt.Errorf("params are no object: %w", err)
	}
	switch r.method {
	case "tools/call", "prompts/get":
		r.name, _ = rawjson.String(o.Get("name"))
	case "resources/read":
		r.name, _ = rawjson.String(o.Get("uri"))
	case "tasks/get", "tasks/update", "tasks/cancel":
		r.name, _ = rawjson.String(o.Get("taskId"))
	}
	if meta := o.Get("_meta"); meta != nil {
		if r.meta == nil {
			r.meta = meta
		}
		o = o.Clone()
		o.Delete("_meta")
	}
	b := o.Bytes()
	r.inner = b[1 : len(b)-1]
	return nil
}

// attempt sends r once, with an id of its own.
func (c *Client) attempt(ctx context.Context, s *session, r *request) (*answer, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	x := &exchange{
		id: c.ids.Add(1), method: r.method, name: r.name, headers: r.headers,
		version: s.version, modern: s.era == Modern, pending: r.pending,
	}
	x.body = r.body(x.id, s, traced(ctx, r.meta))
	if r.method == listenMethod && r.pending != nil {
		c.mu.Lock()
		c.subscriptions[x.id] = &modernListener{r.pending, readSubscription(r.pending.call.Arguments)}
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			delete(c.subscriptions, x.id)
			c.mu.Unlock()
		}()
	}
	m, err := c.link.roundTrip(ctx, x)
	switch {
	case err != nil:
	case m.bad != nil && (!r.split || m.result == nil):
		err = m.bad
	case m.err != nil:
		err = m.err
	}
	if e, ok := errors.AsType[*RPCError](err); ok && e.Code == codeUnsupportedVersion && s.era == Modern && s == c.session.Load() {
		// It spoke this version before. Whoever looks after the server has to
		// connect anew.
		c.end(fmt.Errorf("%w: %w", ErrVersion, e))
	}
	if err != nil {
		return nil, err
	}
	if rawjson.Kind(m.result) != '{' {
		return nil, fmt.Errorf("%w: the result is not an object", ErrAnswer)
	}
	return newAnswer(m.result)
}

// body builds the message, with this _meta beside what is the wire's.
func (r *request) body(id int64, s *session, of json.RawMessage) []byte {
	var theirs rawjson.Object
	if of != nil {
		theirs = *object(of)
	}
	var who, level []byte
	if s.era == Modern {
		who = s.meta.members(r.can, r.tasks)
		if theirs.Get(metaLogLevel) == nil {
			level = s.levelMeta
		}
	}
	b := make([]byte, 0, len(r.method)+len(r.inner)+len(who)+len(level)+len(of)+128)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":`...)
	b = rawjson.AppendQuote(b, r.method)
	none := len(b)
	b = append(b, `,"params":{`...)
	b = append(b, r.inner...)
	before := len(b)
	next := func() { // comes before each member of _meta
		switch {
		case len(b) > before:
			b = append(b, ',')
			return
		case len(r.inner) > 0:
			b = append(b, ',')
		}
		b = append(b, `"_meta":{`...)
	}
	for _, members := range [][]byte{who, level} {
		if members != nil {
			next()
			b = append(b, members...)
		}
	}
	if r.token != 0 {
		next()
		b = append(b, `"progressToken":`...)
		b = strconv.AppendInt(b, r.token, 10)
	}
	for _, m := range theirs.Members {
		if !wireKey(m.Name) {
			next()
			b = append(rawjson.AppendQuote(b, m.Name), ':')
			b = append(b, m.Value...)
		}
	}
	switch {
	case len(b) > before:
		b = append(b, `}}`...)
	case len(r.inner) > 0:
		b = append(b, '}')
	default:
		b = b[:none]
	}
	return append(b, '}')
}

// join appends members to those of the request.
func (r *request) join(members []byte) {
	if r.inner = r.inner[:len(r.inner):len(r.inner)]; len(r.inner) > 0 && len(members) > 0 {
		r.inner = append(r.inner, ',')
	}
	r.inner = append(r.inner, members...)
}

// wireKey reports whether a key of _meta is set by the wire alone.
func wireKey(name string) bool {
	switch name {
	case "progressToken", metaVersion, metaCapabilities, metaClient, metaSubscription:
		return true
	}
	return false
}

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
