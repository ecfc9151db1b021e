package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// A request is what a caller wants of the server. It may be sent more than once:
// on a renewed session, or with the input that the server asked for.
type request struct {
	method  string
	params  json.RawMessage // an object, or nil
	inner   []byte          // in place of params: its members, without braces and without _meta
	meta    json.RawMessage // the caller's _meta; nil for the one in params
	name    string          // for Mcp-Name, when inner is set
	headers []header
	token   int64 // of progress; 0 for none
	ask     func(context.Context, Question) (Reply, error)
	split   bool // the result is checked in parts: a part that is not JSON does not spoil the others

	extra []byte // members that go after inner: the input that the server asked for
}

// An answer is a result of the server.
type answer struct {
	raw    json.RawMessage
	object *rawjson.Object
}

// Request sends a request and returns the raw result, byte for byte. params is
// a JSON object or nil; its _meta is kept, except for the keys that belong to
// the wire. Errors of the server are *[RPCError].
//
// In the modern era, tools/call, prompts/get and resources/read may ask for
// input; the hooks of [ClientOptions] provide it, and the result is the final
// one.
func (c *Client) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if params != nil {
		if err := rawjson.Check(params); err != nil {
			return nil, fmt.Errorf("requesting %s: params: %w", method, err)
		}
	}
	a, err := c.do(ctx, &request{method: method, params: params})
	if err != nil {
		return nil, wrap("requesting", method, err)
	}
	c.replay.note(c, method, params)
	return a.raw, nil
}

func wrap(doing, what string, err error) error { return fmt.Errorf("%s %s: %w", doing, what, err) }

// do sends r until it is answered for good.
func (c *Client) do(ctx context.Context, r *request) (*answer, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	renewed := false
	for round := 0; ; round++ {
		s := c.session.Load()
		a, err := c.attempt(ctx, s, r)
		if gone, ok := errors.AsType[*sessionGone](err); ok {
			if renewed || ctx.Err() != nil {
				return nil, gone.err
			}
			renewed = true
			if err := c.renew(ctx, s); err != nil {
				// Whatever became of that, the request itself was not handled.
				return nil, &TransportError{Err: fmt.Errorf("renewing the session: %w", err)}
			}
			continue
		}
		if err != nil || s.era != Modern {
			return a, err
		}
		kind, ok := rawjson.String(a.object.Get("resultType"))
		switch {
		case a.object.Get("resultType") == nil, ok && kind == "complete":
			return a, nil
		case ok && kind == "input_required" && takesInput(r.method):
			if round >= c.o.Limits.Rounds {
				return nil, fmt.Errorf("%w: it asked for input %d times", ErrAnswer, round+1)
			}
			if r.extra, err = c.provide(ctx, r, a.object, round); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%w: result type %q", ErrAnswer, bounded(kind, 40))
		}
	}
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
		ctx: ctx, id: c.ids.Add(1), method: r.method, name: r.name, headers: r.headers,
		version: s.version, modern: s.era == Modern, ask: r.ask,
	}
	if !x.modern && c.o.answers() {
		// What the server asks during the request is not to outlive it.
		var end context.CancelFunc
		x.ctx, end = context.WithCancel(ctx)
		defer end()
	}
	if c.o.Elicit != nil && !x.modern && (r.ask != nil || takesInput(r.method)) {
		c.mu.Lock()
		c.asking[x] = struct{}{}
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			delete(c.asking, x)
			c.mu.Unlock()
		}()
	}
	x.body = r.body(x.id, s)
	m, err := c.link.roundTrip(ctx, x)
	switch {
	case err != nil:
	case m.bad != nil && (!r.split || m.result == nil):
		err = m.bad
	case m.err != nil:
		err = m.err
	}
	if e, ok := errors.AsType[*RPCError](err); ok && e.Code == codeUnsupportedVersion && s == c.session.Load() {
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
	o, err := rawjson.ParseObject(m.result)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return &answer{raw: m.result, object: o}, nil
}

// body builds the message.
func (r *request) body(id int64, s *session) []byte {
	var meta []byte
	add := func(b ...[]byte) {
		if len(meta) == 0 {
			meta = append(meta, '{')
		} else {
			meta = append(meta, ',')
		}
		for _, b := range b {
			meta = append(meta, b...)
		}
	}
	if s.era == Modern {
		meta = make([]byte, 0, len(s.askMeta)+len(r.meta)+40)
		if r.ask != nil {
			add(s.askMeta)
		} else {
			add(s.meta)
		}
		if s.levelMeta != nil && object(r.meta).Get(metaLogLevel) == nil {
			add(s.levelMeta)
		}
	}
	if r.token != 0 {
		add([]byte(`"progressToken":`), strconv.AppendInt(nil, r.token, 10))
	}
	if r.meta != nil {
		for _, m := range object(r.meta).Members {
			if !wireKey(m.Name) {
				add(rawjson.Quote(m.Name), []byte{':'}, m.Value)
			}
		}
	}
	if len(meta) > 0 {
		meta = append(meta, '}')
	}
	inner := r.inner
	if len(r.extra) > 0 {
		if inner = inner[:len(inner):len(inner)]; len(inner) > 0 {
			inner = append(inner, ',')
		}
		inner = append(inner, r.extra...)
	}
	size := len(r.method) + len(inner) + len(meta) + 80
	return appendRequest(make([]byte, 0, size), id, r.method, inner, meta)
}

// wireKey reports whether a key of _meta is set by the wire alone.
func wireKey(name string) bool {
	switch name {
	case "progressToken", metaVersion, metaCapabilities, metaClient, metaSubscription:
		return true
	}
	return false
}

// takesInput reports whether the server may ask for input before it answers
// method (MCP 2026-07-28, "Multi Round-Trip Requests", Supported Requests).
func takesInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// provide answers what the server asks for, and returns the members that the
// request is repeated with.
func (c *Client) provide(ctx context.Context, r *request, asked *rawjson.Object, round int) ([]byte, error) {
	var extra []byte
	if requests := asked.Get("inputRequests"); requests != nil {
		o, err := rawjson.ParseObject(requests)
		if err != nil {
			return nil, fmt.Errorf("%w: inputRequests: %w", ErrAnswer, err)
		}
		responses := rawjson.Object{}
		for _, m := range o.Members {
			question := object(m.Value)
			method, _ := rawjson.String(question.Get("method"))
			res, err := c.serve(ctx, method, question.Get("params"), r.ask)
			if err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if e, ok := errors.AsType[*RPCError](err); ok && e.Code == codeMethodNotFound {
					return nil, fmt.Errorf("%w: it asks for %s, which was not declared", ErrAnswer, bounded(method, 60))
				}
				return nil, fmt.Errorf("answering %s of the server: %w", bounded(method, 60), err)
			}
			responses.Set(m.Name, res)
		}
		extra = append([]byte(`"inputResponses":`), responses.Bytes()...)
	} else if err := sleep(ctx, min(100*time.Millisecond<<round, 5*time.Second)); err != nil {
		return nil, err // it had nothing to ask: it wants to be asked later
	}
	if state := asked.Get("requestState"); state != nil {
		if len(extra) > 0 {
			extra = append(extra, ',')
		}
		extra = append(append(extra, `"requestState":`...), state...)
	}
	return extra, nil
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

// track hands the progress of r to f until the returned function is called. The
// token outlives the single request: a task goes on after it.
func (c *Client) track(r *request, f func(dragoman.Progress)) (end func()) {
	p := &progress{f: f}
	r.token = c.ids.Add(1)
	c.mu.Lock()
	c.progress[r.token] = p
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.progress, r.token)
		c.mu.Unlock()
		p.end()
	}
}

// A progress passes the progress of one request on, until it has ended.
type progress struct {
	mu sync.Mutex
	f  func(dragoman.Progress)
}

func (p *progress) tell(v dragoman.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f != nil {
		p.f(v)
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.f = nil
}
