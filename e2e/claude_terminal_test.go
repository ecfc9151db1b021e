//go:build !windows

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestClaudeCodeTerminal: at a terminal Claude Code asks more than turns, for which the model
// gets no tools of ours: a title of the session, with the person's words, else it would do
// what they say once more; and a side question, which has Claude Code's own tools and the
// whole conversation.
func TestClaudeCodeTerminal(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	term := sitBeforeClaude(t, g)
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
	term.sees("done") // with the turn
	term.types("/btw CALL tools__again {}")
	term.sees("/btw CALL tools__again {}")
	term.types(enter)
	isAside := func(r request) bool { return strings.Contains(r.told("user"), "CALL tools__again") && !isTitle(r) }
	g.until("asking the side question", func() bool { return slices.ContainsFunc(up.all(), isAside) })
	for _, r := range up.all() {
		if isAside(r) && slices.ContainsFunc(r.names(), func(name string) bool { return strings.HasPrefix(name, "tools__") }) {
			t.Errorf("the model is offered %s for a side question", r.names())
		}
	}
	if !strings.Contains(up.last().told("tool"), `\"n\"`) {
		t.Errorf("the model is not told what tools said before: %q", up.last().told("tool"))
	}
}

// sitBeforeClaude starts Claude Code at a terminal.
func sitBeforeClaude(t *testing.T, g *gateway) *terminal {
	t.Helper()
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
	return term
}

// TestClaudeCodeTakesBack: a person presses Esc while a tool of a server runs and before anything was
// said. Claude Code takes the turn back, and what is sent next stands in its place: the model reads
// what was done there, then and with the next turn.
func TestClaudeCodeTakesBack(t *testing.T) {
	t.Parallel()
	up := record(t)
	up.obeys = true
	tools, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "slow", Delay: time.Hour}}})
	g := start(t, up, servers{"tools": tools, "other": idle(t)}).ready()
	term := sitBeforeClaude(t, g)
	term.types("CALL tools__slow {}")
	term.sees("CALL tools__slow {}")
	term.types(enter)
	g.until("the call", func() bool { return len(ran(t, log)) > 0 })
	term.sees("esc to interrupt")
	term.skips()
	term.types(escape)
	term.sees("CALL tools__slow {}") // where it was typed
	term.types(ctrlU)
	for n, prompt := range []string{"SAY Next.", "SAY More."} {
		says := strings.TrimPrefix(prompt, "SAY ")
		term.types(prompt)
		term.sees(says) // of what was there before may be left what is the same
		term.types(enter)
		asks := func(r request) bool {
			return strings.Contains(r.told("user"), prompt) && !strings.Contains(r.told("user"), "<session>")
		}
		g.until("asking for the turn", func() bool { return slices.ContainsFunc(up.all(), asks) })
		all := up.all()
		r := all[slices.IndexFunc(all, asks)]
		r.whole(t, 1)
		if said := r.told("user"); strings.Count(said, "CALL tools__slow") != 1 || !strings.Contains(r.told("tool"), "unknown_outcome") {
			t.Errorf("prompt %d: the model is told %s, and by tools %s", n, said, r.told("tool"))
		}
		term.sees(says)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"slow"}) {
		t.Errorf("of ours ran %s", got)
	}
}
