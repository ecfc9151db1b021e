package cache

import (
	"context"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// The contract holds where the cache has no say, and where it has in every call.
func TestToolset(t *testing.T) {
	t.Run("beside", func(t *testing.T) {
		toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
			return New(Config{Tools: []string{"*"}}).For("ann", inner)
		})
	})
	t.Run("through", func(t *testing.T) {
		toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
			return declared{New(Config{Tools: []string{"*__echo", "*__wait", "*__ask", "*__steps"}}).For("ann", inner)}
		})
	})
}

// declared adds the operator's word that the tools only read.
type declared struct{ dragoman.Toolset }

func (d declared) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Tool != nil {
		tool := *call.Tool
		tool.Declared, tool.Hints = dragoman.ReadOnly, dragoman.Hints{}
		call.Tool = &tool
	}
	return d.Toolset.Call(ctx, call)
}
