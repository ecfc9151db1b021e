package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// told is what clients/anthropic.mjs prints.
type told struct {
	Events, Kinds, Names []string
	Steps, Status        int
	Finish, Text, Type   string
	Tokens               int `json:"input_tokens"`
}

func (g *gateway) anthropic(scenario, prompt string) (f told) {
	g.t.Helper()
	program, path := node(g.t, filepath.Join("clients", "anthropic.mjs"))
	out := output(g.t, []string{"DRAGOMAN_BASE_URL=" + g.Base}, program, path, scenario, prompt)
	if err := json.Unmarshal(out, &f); err != nil {
		g.t.Fatalf("%s: %v: %s", scenario, err, out)
	}
	return f
}

// mixedTurn makes a call of ours and one of the client's in one message, then one of
// each alone.
const mixedTurn = "SAY Both.\nCALL echo {\"text\":\"a\"}\nCALL multiply {\"a\":6,\"b\":7}\nTHEN\nCALL echo {\"text\":\"b\"}\nTHEN\nCALL multiply {\"a\":2,\"b\":3}\nSAY Done."

// TestAnthropicClients: Anthropic's own client and the AI SDK's go through turns in which
// our tools and theirs are called, by strict streams of one message each.
func TestAnthropicClients(t *testing.T) {
	server := fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}}
	tools, _ := fake(t, server)
	g := start(t, nil, servers{"tools": tools}).ready()
	for _, tt := range []struct {
		scenario string
		kinds    []string
	}{
		{"unseen", []string{"text", "tool_use", "tool_use", "text"}},
		{"shown", []string{"text", "mcp_tool_use", "mcp_tool_result", "tool_use", "mcp_tool_use", "mcp_tool_result", "tool_use", "text"}},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			f := g.anthropic(tt.scenario, mixedTurn)
			if f.Finish != "end_turn" || f.Text != "Done." || !slices.Equal(f.Kinds, tt.kinds) {
				t.Errorf("%+v", f)
			}
			starts := 0
			for _, e := range f.Events {
				if e == "message_start" {
					starts++
				}
			}
			if starts != f.Steps || f.Steps != 3 {
				t.Errorf("%d requests began %d messages: %v", f.Steps, starts, f.Events)
			}
		})
	}
	for _, scenario := range []string{"generate", "stream"} {
		if f := g.anthropic(scenario, mixedTurn); f.Text != "Done." || f.Finish != "stop" || f.Steps != 3 {
			t.Errorf("%s: %+v", scenario, f)
		}
	}
	if f := g.anthropic("error", ""); f.Status != 400 || f.Type != "invalid_request_error" {
		t.Errorf("error: %+v", f)
	}
	if f := g.anthropic("count", "Hello"); f.Tokens < 1 {
		t.Errorf("count: %+v", f)
	}
	if f := g.anthropic("models", ""); !slices.Equal(f.Names, []string{"rehearsal"}) {
		t.Errorf("models: %+v", f)
	}
}

// TestClaudeCode: Claude Code writes a file with a tool of its own and calls one of ours
// in the same turn, by the environment that dragoman claude prints. It needs the package
// @anthropic-ai/claude-code (2.1.197), which is too large to be among the others:
// DRAGOMAN_CLAUDE names its program.
func TestClaudeCode(t *testing.T) {
	program := os.Getenv("DRAGOMAN_CLAUDE")
	if program == "" {
		t.Skip("DRAGOMAN_CLAUDE names no program of Claude Code")
	}
	tools, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})
	g := start(t, nil, servers{"tools": tools}).ready()
	home := t.TempDir()
	env := append(cleanEnv(t), "HOME="+home, "CLAUDE_CONFIG_DIR="+home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1")
	setUp := exec.CommandContext(soon(t), binary(t), "claude", "--write", "--url", g.Root)
	setUp.Env = env
	if out, err := setUp.CombinedOutput(); err != nil {
		t.Fatalf("dragoman claude: %v\n%s", err, out)
	}
	ask := func(prompt string, more ...string) string {
		cmd := exec.CommandContext(soon(t), program, append([]string{"-p", prompt, "--permission-mode", "acceptEdits"}, more...)...)
		cmd.Env, cmd.Dir = env, home
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("claude: %v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	file := filepath.Join(home, "made.txt")
	said := ask("CALL Write {\"file_path\":\"" + file + "\",\"content\":\"made\"}\nCALL echo {\"text\":\"a\"}\nSAY Done.")
	if got, _ := os.ReadFile(file); said != "Done." || string(got) != "made" {
		t.Errorf("said %q, the file is %q\n%s", said, got, g.logged())
	}
	if strings.Count(g.logged(), `"tool":"echo"`) != 1 {
		t.Errorf("echo did not run once:\n%s", g.logged())
	}
	for n := range 3 { // it sends all of the conversation again
		if said := ask("CALL Read {\"file_path\":\""+file+"\"}\nSAY Again.", "--continue"); said != "Again." {
			t.Errorf("turn %d: %q", n, said)
		}
	}
}
