package toolkit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// demands are the rights that tools, prompts and resources require. They have a
// lock of their own, since the SDK asks for them with its lock held.
type demands struct {
	mu        sync.RWMutex
	of        map[string][]string // by kind and name, such as "tool x"
	resources bool                // a resource is among them
}

func (d *demands) set(r registration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what := r.kind + " " + r.name
	if len(r.requires) == 0 {
		delete(d.of, what)
		return
	}
	if d.of == nil {
		d.of = map[string][]string{}
	}
	d.of[what] = r.requires
	d.resources = d.resources || r.kind == "resource"
}

func (d *demands) get(what string) []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.of[what]
}

func (d *demands) guard() (anything, resources bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.of) > 0, d.resources
}

// listed leaves out of the lists what their reader has no right to use.
func (s *Server) listed(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if something, _ := s.demands.guard(); err != nil || !something {
			return result, err
		}
		c := callerOf(ctx, req.GetExtra())
		hidden := func(what string) bool { return c.lacks(s.demands.get(what)) != "" }
		switch list := result.(type) {
		case *sdk.ListToolsResult:
			list.Tools = without(list.Tools, func(t *sdk.Tool) bool { return hidden("tool " + t.Name) })
		case *sdk.ListPromptsResult:
			list.Prompts = without(list.Prompts, func(p *sdk.Prompt) bool { return hidden("prompt " + p.Name) })
		case *sdk.ListResourcesResult:
			list.Resources = without(list.Resources, func(r *sdk.Resource) bool { return hidden("resource " + r.URI) })
		case *sdk.ListResourceTemplatesResult:
			list.ResourceTemplates = without(list.ResourceTemplates, func(r *sdk.ResourceTemplate) bool { return hidden("resource " + r.URITemplate) })
		}
		return result, nil
	}
}

// without is a copy of a list without what is hidden; never nil, since MCP wants
// a list.
func without[T any](list []T, hidden func(T) bool) []T {
	return slices.DeleteFunc(append(make([]T, 0, len(list)), list...), hidden)
}

// cacheable says who may share a list or the contents of a resource. Whatever an
// authenticated caller was given is theirs alone, and so are the contents of
// resources that require a right, also for the owner. Everything else keeps what
// MCP assumes, "public".
//
// The SDK calls it with a lock of its own held.
func (s *Server) cacheable(ctx context.Context, req sdk.Request, c *sdk.Cacheable) {
	if callerOf(ctx, req.GetExtra()).Authenticated() || s.guardedResource(req) {
		c.CacheScope = "private"
	}
}

// guardedResource reports whether a request reads a resource that requires
// rights. What a template gives is found by the template, not by its address, so
// where any resource requires a right all of them are held back.
func (s *Server) guardedResource(req sdk.Request) bool {
	if _, ok := req.GetParams().(*sdk.ReadResourceParams); !ok {
		return false
	}
	_, guarded := s.demands.guard()
	return guarded
}

// abilities are what a server has that tools, prompts and resources alone do not make.
func (s *Server) abilities() (completes, watched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.completed) > 0, s.watched
}

// announced tells a client of the abilities that the server has by then, and has it listen
// to nothing else.
func (s *Server) announced(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		completes, watched := s.abilities()
		if p, ok := req.GetParams().(*sdk.SubscriptionsListenParams); ok && p != nil && p.Notifications != nil && !watched {
			p.Notifications.ResourceSubscriptions = nil
		}
		result, err := next(ctx, method, req)
		var c *sdk.ServerCapabilities
		switch result := result.(type) {
		case *sdk.InitializeResult:
			c = result.Capabilities
		case *sdk.DiscoverResult:
			c = result.Capabilities
		}
		if err != nil || c == nil {
			return result, err
		}
		if !completes {
			c.Completions = nil
		}
		if c.Resources != nil {
			c.Resources.Subscribe = watched
		}
		return result, nil
	}
}

// subscribing answers a subscription, which the SDK keeps itself.
func (s *Server) subscribing(method string) error {
	if _, watched := s.abilities(); !watched {
		return noMethod(method)
	}
	return nil
}

func noMethod(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", name)}
}
