package gateway

import (
	"fmt"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/api"
	"github.com/dragoman-mcp/dragoman/internal/caller"
	"github.com/dragoman-mcp/dragoman/internal/catalog"
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
	return catalog.Select(stack, selection), nil
}
