package catalog

import (
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

func TestToolset(t *testing.T) {
	t.Run("catalog", func(t *testing.T) {
		toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset { return New(inner, Config{}) })
	})
	t.Run("selection", func(t *testing.T) {
		toolsettest.Run(t, func(_ *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
			return new(Selections).Of(inner, Selection{{Server: toolsettest.Server}})
		})
	})
}
