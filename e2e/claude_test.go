package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A claude is Claude Code, configured by "dragoman claude".
type claude struct{ *agent }

func startClaude(t *testing.T, g *gateway, env ...string) claude {
	t.Helper()
	c := claude{installed(t, "@anthropic-ai/claude-code", "claude")}
	c.env = append(append(c.env, "CLAUDE_CONFIG_DIR="+c.home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "IS_SANDBOX=1"), env...)
	c.configure("claude", "--write", "--url", g.Root)
	return c
}

// claudeFacts are what Claude Code says of a turn.
type claudeFacts struct {
	Session, Result string
	Failed          bool
	Tools           []string // its own calls that it shows, those of agents too
	Texts           []string // what it shows of texts, those of agents too
	Results         string
}

// ask has Claude Code do one turn.
func (c claude) ask(prompt string, args ...string) (f claudeFacts) {
	c.t.Helper()
	args = append([]string{"-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"}, args...)
	f.Failed = true
	for _, line := range c.run(agentTime(c.t), append(args, "--", prompt)...) {
		var e struct {
			Type      string
			SessionID string `json:"session_id"`
			Result    string
			IsError   bool `json:"is_error"`
			Message   struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			c.t.Fatalf("Claude Code prints %s: %v", line, err)
		}
		switch e.Type {
		case "result":
			f.Session, f.Result, f.Failed = e.SessionID, e.Result, e.IsError
		case "user":
			f.Results += string(e.Message.Content)
		case "assistant":
			var blocks []struct{ Type, Name, Text string }
			if err := json.Unmarshal(e.Message.Content, &blocks); err != nil {
				c.t.Fatalf("Claude Code prints %s: %v", line, err)
			}
			for _, b := range blocks {
				switch b.Type {
				case "tool_use":
					f.Tools = append(f.Tools, b.Name)
				case "text":
					f.Texts = append(f.Texts, b.Text)
				}
			}
		}
	}
	return f
}

// TestClaudeCode: Claude Code edits a file, looks at a picture and finds a tool that it
// did not have, and calls tools of ours in the same turn.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startClaude(t, g)
	file, picture := filepath.Join(c.folder, "made.txt"), pixelFile(t, c.folder)
	writeFile(t, file, "one")
	f := c.ask("SAY Hm.\nCALL Read {\"file_path\":" + tomlText(file) + "}\n" +
		"THEN\nCALL Edit {\"file_path\":" + tomlText(file) + ",\"old_string\":\"one\",\"new_string\":\"two\"}\nCALL tools__echo {\"n\":1}\n" +
		"THEN\nCALL Read {\"file_path\":" + tomlText(picture) + "}\nCALL tools__picture\n" +
		"THEN\nCALL ToolSearch {\"query\":\"select:CronList\"}\nTHEN\nCALL CronList\nSAY Done.")
	if f.Failed || f.Result != "Done." || !slices.Equal(f.Texts, []string{"Hm.", "Done."}) || !slices.Equal(f.Tools, []string{"Read", "Edit", "Read", "ToolSearch", "CronList"}) {
		t.Errorf("Claude Code says %+v", f)
	}
	if got, _ := os.ReadFile(file); string(got) != "two" {
		t.Errorf("the file is %q", got)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"echo", "picture"}) {
		t.Errorf("of ours ran %s", got)
	}
	last := up.last()
	last.whole(t, 7)
	if n := strings.Count(last.told("user"), "data:image/png;base64,"); n != 2 || !slices.Contains(last.names(), "CronList") {
		t.Errorf("the model sees %d pictures, and is offered %s", n, last.names())
	}
}

// TestClaudeCodeSession: twenty turns of one session, each by a new process, which sends
// all of the conversation again; what our tools said in all of them is there at the end.
func TestClaudeCodeSession(t *testing.T) {
	t.Parallel()
	const turns = 20
	g, up, log := agentGateway(t)
	c := startClaude(t, g)
	f := c.ask("CALL tools__echo {\"turn\":1}\nSAY Turn 1.")
	for n := 2; n <= turns; n++ {
		prompt := fmt.Sprintf("CALL tools__echo {\"turn\":%d}\n", n)
		if n%3 == 0 {
			prompt += fmt.Sprintf("CALL Bash {\"command\":\"echo turn %d >> turns.txt\",\"description\":\"Notes the turn\"}\n", n)
		}
		said := fmt.Sprintf("Turn %d.", n)
		if f = c.ask(prompt+"SAY "+said, "--resume", f.Session); f.Failed || f.Result != said {
			t.Fatalf("turn %d: %+v", n, f)
		}
	}
	if n := len(ran(t, log)); n != turns {
		t.Errorf("%d calls of ours ran", n)
	}
	up.last().whole(t, turns+turns/3)
	if data, _ := os.ReadFile(filepath.Join(c.folder, "turns.txt")); strings.Count(string(data), "turn") != turns/3 {
		t.Errorf("Claude Code's commands left %q", data)
	}
}

// TestClaudeCodeWindow: Claude Code takes a conversation for as long as the model got it
// last, not for as long as what all rounds got that it does not see, and goes on with it.
func TestClaudeCodeWindow(t *testing.T) {
	t.Parallel()
	const rounds = 9
	g, up, log := agentGateway(t, func(c map[string]any, _ *exec.Cmd) {
		c["models"].([]any)[0].(map[string]any)["context_window"] = 150_000
	})
	c := startClaude(t, g)
	prompt := strings.Repeat("word ", 18_000)
	for n := range rounds {
		prompt += fmt.Sprintf("\nTHEN\nCALL tools__echo {\"n\":%d}", n)
	}
	f := c.ask(prompt + "\nSAY One.")
	if f.Failed || f.Result != "One." || len(ran(t, log)) != rounds {
		t.Fatalf("the first turn: %+v, and %d calls of ours", f, len(ran(t, log)))
	}
	before := len(up.all())
	if f = c.ask("SAY Two.", "--resume", f.Session); f.Failed || f.Result != "Two." || len(up.all()) != before+1 {
		t.Errorf("the second turn: %+v, for which the model was asked %d times", f, len(up.all())-before)
	}
	up.last().whole(t, rounds)
}

// TestClaudeCodeAgents: an agent that Claude Code starts has a conversation of its own,
// with our tools.
func TestClaudeCodeAgents(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	c := startClaude(t, g)
	below := "CALL tools__again {}\nCALL Bash {\"command\":\"echo below > below.txt\",\"description\":\"Notes it\"}\nSAY From below."
	f := c.ask("CALL Agent {\"description\":\"look\",\"subagent_type\":\"general-purpose\",\"run_in_background\":false,\"prompt\":" + tomlText(below) + "}\nCALL tools__echo {\"n\":1}\nSAY Done.")
	if f.Failed || f.Result != "Done." || !strings.Contains(f.Results, "From below.") {
		t.Errorf("Claude Code says %+v", f)
	}
	if made, _ := os.ReadFile(filepath.Join(c.folder, "below.txt")); string(made) != "below\n" {
		t.Errorf("the agent left %q", made)
	}
	if got := sorted(ran(t, log)); !slices.Equal(got, []string{"again", "echo"}) {
		t.Errorf("of ours ran %s", got)
	}
	up.last().whole(t, 2)
}

// TestClaudeCodeWaits: a call that a rule wants approved waits in the inbox, and Claude
// Code waits with it.
func TestClaudeCodeWaits(t *testing.T) {
	t.Parallel()
	keys := makeKeys(t, []string{"claude"}, []string{"operator", "--right", "approve:*"})
	g, up, log := agentGateway(t, keys.option, careful)
	c := startClaude(t, g, "DRAGOMAN_API_KEY="+keys.of["claude"])
	done := make(chan claudeFacts, 1)
	go func() { done <- c.ask("CALL tools__again {\"n\":1}\nSAY Done.") }()
	g.approves(keys.of["operator"])
	if f := <-done; f.Failed || f.Result != "Done." {
		t.Errorf("Claude Code says %+v", f)
	}
	if got := ran(t, log); !slices.Equal(got, []string{"again"}) {
		t.Errorf("of ours ran %s", got)
	}
	up.last().whole(t, 1)
}
