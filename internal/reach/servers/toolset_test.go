package servers

import (
	"context"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestToolset: a set of one server that serves a toolset is as good as the
// toolset.
func TestToolset(t *testing.T) {
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			toolsettest.Run(t, func(t *testing.T, inner *toolsettest.Inner) dragoman.Toolset {
				o := builtin(func(ctx context.Context) mcp.Transport {
					r, w := fakemcp.PipeToolset(ctx, inner, era)
					return mcp.Pipe{Reader: r, Writer: w}
				})
				o.Can = dragoman.AskForm
				s := open(t, nil, o)
				settle(t, s)
				return s
			})
		})
	}
}
