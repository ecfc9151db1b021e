package session

import (
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/state/cache"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

func TestToolset(t *testing.T) {
	t.Run("seal", func(t *testing.T) {
		toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
			return newSeals(nil).around("ann", inner)
		})
	})
	t.Run("stack", func(t *testing.T) {
		toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
			opener := New(Options{
				Tools: Shared(catalog.New(inner, catalog.Config{})), Servers: map[string]bool{toolsettest.Server: true},
				Cache: cache.New(cache.Config{Tools: []string{"*"}}), Dialects: dialect.Builtin(),
			})
			s, err := opener.Open(t.Context(), caller.Local, Want{Servers: catalog.Selection{{Server: toolsettest.Server}}})
			if err != nil {
				t.Fatal(err)
			}
			return s.Tools
		})
	})
}
