package lint

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

func TestMain(m *testing.M) {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	os.Exit(m.Run())
}

// processFixtures are servers that misbehave as processes do, by the rule that
// sees it.
var processFixtures = map[string]fakemcp.Config{
	"P016": {Name: "fake-mcp-server", Era: fakemcp.LegacyOnly, Faults: []fakemcp.Fault{{Kind: fakemcp.Stubborn}}},
	"P024": {Name: "fake-mcp-server", Era: fakemcp.LegacyOnly, Faults: []fakemcp.Fault{{Kind: fakemcp.Grandchild}}},
	"P033": {Name: "fake-mcp-server", Era: fakemcp.LegacyOnly, Stderr: strings.Repeat("loading\n", 300)},
}

// TestProcessRules: servers that do not end, and that leave others behind, are
// found and ended.
func TestProcessRules(t *testing.T) {
	for id, config := range processFixtures {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			r := lintProcess(t, config)
			if got := rulesOf(r); !slices.Equal(got, []string{id}) {
				t.Errorf("fires %v", got)
				for _, f := range r.Findings {
					t.Logf("%s: %s", f.Rule, f.Message)
				}
			}
		})
	}
	if got := rulesOf(lintProcess(t, fakemcp.Config{Name: "fake-mcp-server", Era: fakemcp.LegacyOnly})); len(got) != 0 {
		t.Errorf("a process that ends fires %v", got)
	}
}

// lintProcess lints a fake server without tools, by the rules that do not look at how
// long something takes: on a busy machine everything does.
func lintProcess(t *testing.T, config fakemcp.Config) *Report {
	t.Helper()
	path, args, env := fakemcp.Command(config)
	target := Target{Label: "fake", Command: func() *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), env...)
		return cmd
	}}
	rules := slices.DeleteFunc(Rules(), func(r Rule) bool { return slices.Contains([]string{"P018", "R001", "R002"}, r.ID) })
	r, err := Run(t.Context(), []Target{target}, Options{Rules: rules})
	must(t, err)
	return r
}
