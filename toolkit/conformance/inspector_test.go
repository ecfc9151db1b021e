package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// TestInspector uses a server of the toolkit's with the command line of the MCP
// Inspector, which judges with --strict how portable the schemas are.
func TestInspector(t *testing.T) {
	node, _ := programs(t)
	entry := modules(t, ".bin", "mcp-inspector")
	s := toolkit.NewServer(toolkit.Options{Service: "hotel"})
	type wish struct {
		City   string   `json:"city" desc:"City" min:"1"`
		Nights int      `json:"nights" desc:"Nights" default:"2" min:"1"`
		Extras []string `json:"extras,omitempty" desc:"Extras" enum:"breakfast,parking"`
	}
	type room struct {
		City  string    `json:"city" md:"name"`
		Until time.Time `json:"until"`
	}
	reading := toolkit.Tool{Name: "hotel_find_room", Description: "Finds a free room.", Hints: hints, Examples: []toolkit.Example{{Ask: "Rome", Arguments: `{"city":"Rome"}`}}}
	toolkit.Add(s, reading, func(_ context.Context, in wish) (room, error) {
		if in.City == "Atlantis" {
			return room{}, toolkit.NotFound("There is no hotel in %s.", in.City)
		}
		return room{in.City, time.Date(2026, 5, 1+in.Nights, 0, 0, 0, 0, time.UTC)}, nil
	})
	reading.Name = "hotel_list_rooms"
	toolkit.AddList(s, reading, func(_ context.Context, in wish, p toolkit.Page) (toolkit.Listing[room], error) {
		return toolkit.ListOf([]room{{City: in.City}, {City: in.City}}, p), nil
	})
	url := serve(t, s)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			run := func(args ...string) (string, int) {
				t.Helper()
				args = append([]string{entry, "--cli", url, "--transport", "http", "--protocol-era", era, "--format", "json", "-q"}, args...)
				cmd := exec.CommandContext(patience.Context(t), node, args...)
				cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
				var complaints strings.Builder
				cmd.Stderr = &complaints
				out, err := cmd.Output()
				if err != nil && cmd.ProcessState == nil {
					t.Fatal(err)
				}
				if code := cmd.ProcessState.ExitCode(); code != 0 {
					t.Logf("%v: exit %d: %s", args[7:], code, complaints.String())
				}
				return string(out), cmd.ProcessState.ExitCode()
			}
			if out, code := run("--method", "tools/list", "--strict"); code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, "hotel_list_rooms") {
				t.Errorf("tools/list --strict: exit %d: %s", code, out)
			}
			if out, code := run("--method", "tools/call", "--tool-name", "hotel_find_room", "--tool-arg", "city=Rome"); code != 0 || !strings.Contains(out, "2026-05-03T00:00:00Z") {
				t.Errorf("a call: exit %d: %s", code, out)
			}
			if out, code := run("--method", "tools/call", "--tool-name", "hotel_find_room", "--tool-arg", "city=Atlantis"); code != 5 || !strings.Contains(out, "no hotel in Atlantis") {
				t.Errorf("a call that is refused: exit %d: %s", code, out)
			}
		})
	}
}
