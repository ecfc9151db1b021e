//go:build !windows

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClaudeCodeTerminal: at a terminal Claude Code asks for a title of the session beside
// the conversation, with the person's words, for which the model gets no tools; else it would
// do what they say once more.
func TestClaudeCodeTerminal(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startClaude(t, g)
	// What it asks in its first start has been answered.
	begun, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark",
		"projects": map[string]any{c.folder: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(c.home, ".claude.json"), string(begun))
	cmd := exec.Command(c.program)
	cmd.Dir = c.folder
	cmd.Env = append(slices.DeleteFunc(slices.Clone(c.env), func(s string) bool { return strings.HasPrefix(s, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=") }), terminalKind)
	term := sitBefore(t, cmd)
	term.sees("auto mode on") // it takes what is typed
	term.types("CALL tools__echo {\"n\":1}")
	term.sees("CALL tools__echo {\"n\":1}")
	term.types(enter)
	isTitle := func(r request) bool { return strings.Contains(r.told("user"), "<session>") }
	g.until("asking for a title and for the turn", func() bool {
		return slices.ContainsFunc(up.all(), isTitle) && strings.Contains(up.last().told("tool"), `\"n\"`) || len(ran(t, log)) > 1
	})
	if got := ran(t, log); !slices.Equal(got, []string{"echo"}) {
		t.Errorf("of ours ran %s", got)
	}
	for _, r := range up.all() {
		if isTitle(r) && len(r.Tools) > 0 {
			t.Errorf("the model is offered %s for a title", r.names())
		}
	}
}
