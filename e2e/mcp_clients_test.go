package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
)

// TestMCPClients lets official MCP clients of both eras use the MCP endpoint, with
// servers of both eras behind: list, call, progress, a question, an error.
func TestMCPClients(t *testing.T) {
	for _, behind := range []fakemcp.Era{fakemcp.LegacyOnly, fakemcp.ModernOnly} {
		for _, client := range []string{"legacy", "auto", "modern"} {
			t.Run(string(behind)+" server, "+client+" client", func(t *testing.T) {
				up := record(t)
				entry, _ := fake(t, fakemcp.Config{Era: behind, Tools: []fakemcp.Tool{
					{Name: "echo"}, {Name: "steps", Do: fakemcp.Progress}, {Name: "ask", Do: fakemcp.Ask, Question: json.RawMessage(`{"message":"The answer?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}}}}`)},
				}})
				g := start(t, up, servers{"tools": entry, "other": idle(t)}).offers(up, "tools__echo", "other__noop")
				program, path := node(t, filepath.Join("clients", "mcp.mjs"))
				var got struct {
					Tools                                []string
					Echo, Steps, Asked, Unknown, Version string
					Progress                             []float64
				}
				out := output(t, []string{"DRAGOMAN_BASE_URL=" + g.Base}, program, path, client)
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if want := []string{"other__noop", "read_more", "tools__ask", "tools__echo", "tools__steps"}; !slices.Equal(got.Tools, want) {
					t.Errorf("listed %s", got.Tools)
				}
				if !strings.Contains(got.Echo, `"hi"`) || got.Unknown != "-32602" || got.Version != "dragoman" {
					t.Errorf("got %+v", got)
				}
				if len(got.Progress) == 0 || !slices.IsSorted(got.Progress) {
					t.Errorf("progress %v", got.Progress)
				}
				if !strings.Contains(got.Asked, "accept") {
					t.Errorf("the question came to %q", got.Asked)
				}
			})
		}
	}
}
