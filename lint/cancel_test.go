package lint

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestCancelled: a server that stops when it is told to does not fire P017, in
// either era.
func TestCancelled(t *testing.T) {
	for _, era := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		t.Run(string(era), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakemcp.New(fakemcp.Config{Name: "notes-mcp-server", Era: era, Tools: []fakemcp.Tool{
					{Name: "notes_get_note", Definition: json.RawMessage(base), Delay: 3 * time.Second},
				}})
				r, err := Run(t.Context(), []Target{{Label: "notes", Pipe: func(ctx context.Context) (io.ReadCloser, io.WriteCloser, error) {
					r, w := server.Pipe(ctx)
					return r, w, nil
				}}}, Options{long: 10_000})
				must(t, err)
				c := r.Servers[0].Server.Live.Cancelled
				if c == nil || c.Result != nil || slices.Contains(rulesOf(r), "P017") {
					t.Errorf("cancelled: %+v, fires %v", c, rulesOf(r))
				}
			})
		})
	}
}
