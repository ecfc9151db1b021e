package gateway

import (
	"context"
	"fmt"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/api"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/catalog"
	"github.com/dragoman-mcp/dragoman/result"
)

// For returns the stack of toolsets for a request: who asks, and what of all
// tools it wants. Every door gets its tools here, so a rule can not hold at one
// door and not at another.
func (g *Gateway) For(who caller.Caller, selection catalog.Selection) (dragoman.Toolset, error) {
	for _, choice := range selection {
		if !g.labels[choice.Server] {
			return nil, fmt.Errorf("%w: no MCP server is labelled %q", api.ErrUnknownServer, choice.Server)
		}
	}
	stack := dragoman.Toolset(g.catalog) // around g.servers
	stack = g.cache.For(who.ID, stack)
	stack = catalog.Select(stack, selection)
	return readable{stack, g.shelf.For(who.ID)}, nil
}

// readable is a stack that also runs read_more. It does not list it: the
// conversation offers it once there is more to read.
type readable struct {
	dragoman.Toolset
	shelf dragoman.Toolset
}

func (r readable) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if t := call.Tool; t != nil && t.Server == "" && t.Original == result.ReadMore {
		return r.shelf.Call(ctx, call)
	}
	return r.Toolset.Call(ctx, call)
}
