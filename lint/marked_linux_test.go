package lint

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestChildrenInTheirOwnSession: a process that a server starts in a session of its own
// is found, and ended.
func TestChildrenInTheirOwnSession(t *testing.T) {
	path, args, env := fakemcp.Command(fakemcp.Config{Name: "fake-mcp-server", Era: fakemcp.LegacyOnly})
	for command, want := range map[string]bool{
		`setsid sleep 300 >/dev/null 2>&1 & exec "$@"`:  true,
		`setsid sleep 0.01 >/dev/null 2>&1 & exec "$@"`: false,
	} {
		target := Target{Label: "fake", Command: func() *exec.Cmd {
			cmd := exec.Command("sh", append([]string{"-c", command, "sh", path}, args...)...)
			cmd.Env = append(os.Environ(), env...)
			return cmd
		}}
		r, err := Run(t.Context(), []Target{target}, Options{Rules: Only("P024")})
		must(t, err)
		if got := slices.Contains(rulesOf(r), "P024"); got != want {
			t.Errorf("%s: %+v", command, r.Findings)
		}
	}
}
