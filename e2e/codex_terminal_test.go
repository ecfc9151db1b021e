//go:build !windows

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCodexTerminal: at a terminal Codex asks for a title beside the conversation, and for a recap,
// with the person's words, for which the model gets no tools; else it would do what they say once
// more.
func TestCodexTerminal(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startCodex(t, g, true)
	path := filepath.Join(c.home, "config.toml")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(written)+fmt.Sprintf("\n[projects.%s]\ntrust_level = \"trusted\"\n", tomlText(c.folder)))
	cmd := exec.Command(c.program, "--no-daemon")
	cmd.Dir, cmd.Env = c.folder, append(slices.Clip(c.env), terminalKind)
	term := sitBefore(t, cmd)
	term.sees("Ask Codex to do anything") // it takes what is typed
	const call = `CALL tools__echo {"n":1}`
	term.types(call)
	term.sees(call)
	term.types(enter)
	isTitle := func(r request) bool { return strings.Contains(r.told("user"), "User prompt:") }
	g.until("asking for a title and for the turn", func() bool {
		return slices.ContainsFunc(up.all(), isTitle) && slices.ContainsFunc(up.all(), func(r request) bool { return strings.Contains(r.told("tool"), `\"n\"`) })
	})
	term.types("/recap")
	term.sees("summarize the current conversation")
	term.types(enter)
	isRecap := func(r request) bool { return strings.Contains(r.told("user"), `Conversation:\nUser: CALL`) }
	g.until("asking for a recap", func() bool { return slices.ContainsFunc(up.all(), isRecap) })
	if got := ran(t, log); !slices.Equal(got, []string{"echo"}) {
		t.Errorf("of ours ran %s", got)
	}
	for _, r := range up.all() {
		if (isTitle(r) || isRecap(r)) && len(r.Tools) > 0 {
			t.Errorf("beside the conversation the model is offered %s: %s", r.names(), r.told("user"))
		}
	}
}
