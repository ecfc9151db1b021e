package commandline

import (
	"strings"
	"testing"
)

// TestMissing: who has no npx is told to install Node.js, as with other programs that
// servers are started by.
func TestMissing(t *testing.T) {
	for command, want := range map[string]string{
		"npx":  "install Node.js (https://nodejs.org), which npx comes with, or give its whole path",
		"node": "Node.js", `C:\\tools\\npx.cmd`: "Node.js", "python3.12": "Python (", "uvx": "install uv (", "docker": "Docker", "bunx": "Bun",
		"my-server": "install it, or give its whole path",
	} {
		if got := Missing(command); !strings.Contains(got, want) {
			t.Errorf("%s: %s", command, got)
		}
	}
	for _, o := range origins {
		for _, program := range strings.Fields(o.programs) {
			if programName(program) != program {
				t.Errorf("nothing is called %s: programName makes it %s", program, programName(program))
			}
		}
	}
}
