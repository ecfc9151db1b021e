package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A session is what the handshake settled. It never changes; a renewed session
// is another one.
type session struct {
	era          Era
	version      string
	server       json.RawMessage
	capabilities json.RawMessage
	instructions string
	declared     declared
	meta         *meta  // modern: the members of _meta that each request carries
	levelMeta    []byte // modern: the level of log messages, for requests that do not say
}

// adopt makes s the session.
func (c *Client) adopt(s *session) {
	c.session.Store(s)
	c.version.Store(&s.version)
}

// A meta is what tells a modern server who we are and what it can ask of whoever
// is behind a request.
type meta struct {
	of    func(can dragoman.Kind, tasks bool) []byte
	ready [2][32]atomic.Pointer[[]byte] // by whether tasks are taken, and kinds
}

// members returns the members of _meta for a request behind which there is
// somebody who can be asked can. tasks says that a task may be the answer.
func (m *meta) members(can dragoman.Kind, tasks bool) []byte {
	at := &m.ready[0][can%32]
	if tasks {
		at = &m.ready[1][can%32]
	}
	if b := at.Load(); b != nil {
		return *b
	}
	b := m.of(can, tasks)
	at.Store(&b)
	return b
}

// modernSession returns the session with a modern server, before anything is
// known of it.
func (c *Client) modernSession(version string) *session {
	of := func(can dragoman.Kind, tasks bool) []byte {
		b := append([]byte(`"`+metaVersion+`":`), rawjson.Quote(version)...)
		b = append(append(b, `,"`+metaClient+`":`...), c.info()...)
		return append(append(b, `,"`+metaCapabilities+`":`...), c.capabilities(can, tasks)...)
	}
	s := &session{era: Modern, version: version, meta: &meta{of: of}}
	if c.o.LogLevel != "" {
		s.levelMeta = append([]byte(`"`+metaLogLevel+`":`), rawjson.Quote(c.o.LogLevel)...)
	}
	return s
}

func (c *Client) info() json.RawMessage {
	o := rawjson.Object{}
	o.Set("name", rawjson.Quote(c.o.Name))
	o.Set("version", rawjson.Quote(c.o.Version))
	return o.Bytes()
}

// capabilities returns what we declare for somebody who can be asked can, and for
// a request that a task may be the answer to.
func (c *Client) capabilities(can dragoman.Kind, tasks bool) json.RawMessage {
	o, modes := rawjson.Object{}, rawjson.Object{}
	for _, d := range []struct {
		kind dragoman.Kind
		in   *rawjson.Object
		name string
	}{
		{dragoman.AskRoots, &o, "roots"}, {dragoman.AskSampling, &o, "sampling"},
		{dragoman.AskForm, &modes, "form"}, {dragoman.AskURL, &modes, "url"},
	} {
		switch {
		case can&d.kind == 0:
		case d.kind == dragoman.AskSampling && can&dragoman.AskTools != 0:
			d.in.Set(d.name, json.RawMessage(`{"tools":{}}`))
		default:
			d.in.Set(d.name, json.RawMessage(`{}`))
		}
	}
	if len(modes.Members) > 0 {
		o.Set("elicitation", modes.Bytes())
	}
	extensions := c.o.Extensions
	if tasks {
		with := object(extensions).Clone()
		with.Set(TasksExtension, json.RawMessage(`{}`))
		extensions = with.Bytes()
	}
	if extensions != nil {
		o.Set("extensions", extensions)
	}
	return o.Bytes()
}

// A sessionGone says that the server has forgotten the legacy session, and
// provably did not handle the request.
type sessionGone struct {
	err      error
	doubtful bool // the answer may mean something else: ask again before it is believed
}

// forgotten finds out whether the server has forgotten the session s: it then
// refuses a ping, too. Nobody renews it meanwhile: the ping would be one on the new session.
func (c *Client) forgotten(ctx context.Context, s *session) bool {
	select {
	case c.renewing <- struct{}{}:
		defer func() { <-c.renewing }()
	case <-ctx.Done():
		return false
	}
	if s != c.session.Load() {
		return true
	}
	_, err := c.attempt(ctx, s, &request{method: "ping"})
	return errors.As(err, new(*sessionGone))
}

func (e *sessionGone) Error() string { return "the MCP session is gone: " + e.err.Error() }
func (e *sessionGone) Unwrap() error { return e.err }

// A rejected is a JSON-RPC error that came with an HTTP status other than 200.
type rejected struct {
	status int
	err    *RPCError
}

func (e *rejected) Error() string { return e.err.Error() }
func (e *rejected) Unwrap() error { return e.err }

// renew makes a new legacy session in place of old, unless somebody else just
// did: initialize, set again what was set, and say that all lists may have
// changed. old is nil for whoever finds a renewal that has not come to its end.
func (c *Client) renew(ctx context.Context, old *session) error {
	select {
	case c.renewing <- struct{}{}:
		defer func() { <-c.renewing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.session.Load() != old && !c.renewal.Load() {
		return nil
	}
	c.renewal.Store(true)
	s, err := c.initialize(ctx)
	if err != nil {
		return err
	}
	c.adopt(s)
	if err := c.greet(ctx); err != nil {
		return err
	}
	c.link.established(s)
	c.renewal.Store(false)
	c.log.Info("MCP session renewed")
	for _, r := range c.replay.all() {
		c.start(func() {
			if _, err := c.insist(c.ctx, func() (*answer, error) { return c.attempt(c.ctx, s, r) }); err != nil && c.ctx.Err() == nil {
				c.log.Warn("MCP server refused on a renewed session", "method", r.method, "error", err)
			}
		})
	}
	c.notificationsMissed()
	return nil
}

// A replay remembers the requests that gave a legacy session its state.
type replay struct {
	mu        sync.Mutex
	subscribe map[string]json.RawMessage // params by raw uri
	level     json.RawMessage            // params of logging/setLevel
}

// note remembers a request that succeeded, if it is one of those.
func (r *replay) note(c *Client, method string, params json.RawMessage) {
	switch method {
	case "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
	default:
		return
	}
	uri := string(object(params).Get("uri"))
	r.mu.Lock()
	defer r.mu.Unlock()
	switch method {
	case "logging/setLevel":
		r.level = params
	case "resources/subscribe":
		if r.subscribe == nil {
			r.subscribe = map[string]json.RawMessage{}
		}
		if len(r.subscribe) < c.limits.Pages {
			r.subscribe[uri] = params
		}
	case "resources/unsubscribe":
		delete(r.subscribe, uri)
	}
}

func (r *replay) all() []*request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*request
	if r.level != nil {
		all = append(all, &request{method: "logging/setLevel", params: r.level})
	}
	for _, params := range r.subscribe {
		all = append(all, &request{method: "resources/subscribe", params: params})
	}
	return all
}
