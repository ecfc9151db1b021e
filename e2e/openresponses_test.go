package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
)

// TestOpenResponses runs the compliance tests of the Open Responses specification
// (https://www.openresponses.org) against the gateway in front of rehearsal, and in front of
// one that is a model whose API speaks Responses. They are source alone: DRAGOMAN_OPENRESPONSES names a checkout in which npm has installed bun
// and zod, as CONTRIBUTING.md says.
func TestOpenResponses(t *testing.T) {
	dir := os.Getenv("DRAGOMAN_OPENRESPONSES")
	if dir == "" {
		t.Skip("DRAGOMAN_OPENRESPONSES is not set: the compliance tests of Open Responses do not judge; CONTRIBUTING.md says where to get them")
	}
	g := start(t, nil, servers{"tools": idle(t)}).ready()
	t.Run("a model of Chat", func(t *testing.T) { judgedByOpenResponses(t, dir, g.Base) })
	// A gateway speaks Responses, too.
	native := with("models", []any{map[string]any{"match": "*", "base_url": g.Base, "wires": []string{"responses"}, "dialect": "openai"}})
	over := start(t, nil, servers{"tools": idle(t)}, native).ready()
	t.Run("a model of Responses", func(t *testing.T) { judgedByOpenResponses(t, dir, over.Base) })
}

func judgedByOpenResponses(t *testing.T, dir, base string) {
	t.Helper()
	cmd := exec.CommandContext(patience.Context(t), filepath.Join(dir, "node_modules", ".bin", "bun"), "run", filepath.Join("bin", "compliance-test.ts"),
		"--base-url", base, "--api-key", "any", "--model", "rehearsal", "--json")
	cmd.Dir, cmd.Env = dir, cleanEnv(t)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) { // 1: a test failed
		t.Fatal(err)
	}
	var report struct {
		Summary struct{ Passed, Total int }
		Results []struct {
			ID, Status string
			Errors     []string
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	t.Logf("Open Responses: %d of %d", report.Summary.Passed, report.Summary.Total)
	// As many as there were when this was written: a suite that asks nothing finds nothing.
	if len(report.Results) < 17 {
		t.Errorf("%d tests ran", len(report.Results))
	}
	for _, r := range report.Results {
		if r.Status != "passed" {
			t.Errorf("%s %s: %v", r.ID, r.Status, r.Errors)
		}
	}
}
