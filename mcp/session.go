package mcp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// A sessionGone says that the server has forgotten the legacy session, and
// provably did not handle the request.
type sessionGone struct{ err error }

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
// changed.
func (c *Client) renew(ctx context.Context, old *session) error {
	select {
	case c.renewing <- struct{}{}:
		defer func() { <-c.renewing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.session.Load() != old {
		return nil
	}
	s, err := c.initialize(ctx)
	if err != nil {
		return err
	}
	c.session.Store(s)
	if err := c.greet(ctx); err != nil {
		return err
	}
	c.link.established(s)
	c.log.Info("MCP session renewed", "server", c.o.Label)
	for _, r := range c.replay.all() {
		c.start(func() {
			if _, err := c.attempt(c.ctx, s, r); err != nil && c.ctx.Err() == nil {
				c.log.Warn("MCP server refused on a renewed session", "server", c.o.Label, "method", r.method, "error", err)
			}
		})
	}
	c.listChanged("tools", "prompts", "resources")
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
		if len(r.subscribe) < c.o.Limits.Pages {
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

// listChanged tells the hook that lists changed, without waiting for it.
func (c *Client) listChanged(what ...string) {
	if c.o.OnListChanged == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range what {
		if !c.pending[w] {
			c.pending[w] = true
			c.changed <- w // has room for each name once
		}
	}
}

// watchLists starts what tells the hook about changes.
func (c *Client) watchLists() {
	if c.o.OnListChanged == nil {
		return
	}
	c.start(func() {
		for {
			select {
			case w := <-c.changed:
				c.mu.Lock()
				delete(c.pending, w)
				c.mu.Unlock()
				c.o.OnListChanged(w)
			case <-c.ctx.Done():
				return
			}
		}
	})
	if s := c.session.Load(); s.era == Modern {
		d := s.declared
		filter := rawjson.Object{}
		var names []string
		for _, f := range []struct {
			name string
			want bool
		}{{"tools", d.toolsChange}, {"prompts", d.promptsChange}, {"resources", d.resourcesChange}} {
			if f.want {
				filter.Set(f.name+"ListChanged", json.RawMessage(`true`))
				names = append(names, f.name)
			}
		}
		if names != nil {
			c.start(func() { c.listen(names, filter.Bytes()) })
		}
	}
}
