package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// told is what clients/anthropic.mjs prints.
type told struct {
	Events, Kinds, Names []string
	Calls                []string // that a tool runner made
	Steps, Status        int
	Finish, Text, Type   string
	Tokens               int `json:"input_tokens"`
}

func (g *gateway) anthropic(scenario, prompt string, env ...string) (f told) {
	g.t.Helper()
	program, path := node(g.t, filepath.Join("clients", "anthropic.mjs"))
	out := output(g.t, append(env, "DRAGOMAN_BASE_URL="+g.Base), program, path, scenario, prompt)
	if err := json.Unmarshal(out, &f); err != nil {
		g.t.Fatalf("%s: %v: %s", scenario, err, out)
	}
	return f
}

// mixedTurn makes a call of ours and one of the client's in one message, then one of
// each alone.
const mixedTurn = "SAY Both.\nCALL echo {\"text\":\"a\"}\nCALL multiply {\"a\":6,\"b\":7}\nTHEN\nCALL echo {\"text\":\"b\"}\nTHEN\nCALL multiply {\"a\":2,\"b\":3}\nSAY Done."

// TestAnthropicClients: Anthropic's own client goes through turns in which our tools and
// its own are called, by strict streams of one message each.
func TestAnthropicClients(t *testing.T) {
	t.Parallel()
	up := record(t)
	tools, _ := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})
	g := start(t, up, servers{"tools": tools}).ready()
	for _, tt := range []struct {
		scenario, model string
		kinds           []string
		pictures        int
	}{
		{"unseen", "rehearsal", []string{"text", "tool_use", "tool_use", "text"}, 0},
		{"shown", "rehearsal", []string{"text", "mcp_tool_use", "mcp_tool_result", "tool_use", "mcp_tool_use", "mcp_tool_result", "tool_use", "text"}, 0},
		{"pictures", "rehearsal", []string{"text", "tool_use", "tool_use", "text"}, 3},
		{"thinking", "rehearsal:reasoning", []string{"thinking", "text", "tool_use", "thinking", "thinking", "tool_use", "thinking", "text"}, 0},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			g.t = t
			f := g.anthropic(tt.scenario, mixedTurn, "DRAGOMAN_MODEL="+tt.model)
			if n := strings.Count(string(up.last().Raw), "data:image/png;base64,"); n != tt.pictures {
				t.Errorf("the model sees %d pictures", n)
			}
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
	g.t = t
	if f := g.anthropic("whole", mixedTurn); f.Finish != "tool_use" || !slices.Equal(f.Kinds, []string{"text", "tool_use"}) {
		t.Errorf("without a stream: %+v", f)
	}
	for model, want := range map[string]int{"rehearsal:500": 500, "rehearsal:401": 401, "rehearsal:429": 429} {
		if f := g.anthropic("fails", mixedTurn, "DRAGOMAN_MODEL="+model); f.Status != want || f.Type == "" {
			t.Errorf("%s: %+v", model, f)
		}
	}
	// In a stream there is no status any more.
	if f := g.anthropic("fails", mixedTurn, "DRAGOMAN_MODEL=rehearsal:error-in-stream"); f.Status != 0 || f.Text == "" || f.Finish != "" {
		t.Errorf("an error in a stream: %+v", f)
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

// TestAnthropicToolRunners: tool runners of Anthropic's client change their tools in the
// middle of a conversation, and run toolsets.
func TestAnthropicToolRunners(t *testing.T) {
	t.Parallel()
	up := record(t)
	g := start(t, up, nil, withoutServers).ready()
	for scenario, tt := range map[string]struct {
		prompt string
		calls  []string
	}{
		"changing": {"CALL first {}\nTHEN\nCALL second {}\nTHEN\nSAY Done.", []string{"first", "second"}},
		"screen": {"CALL computer_left_click {\"coordinate\":[3,4]}\nTHEN\nCALL computer_screenshot {}\nTHEN\nSAY Done.",
			[]string{`computer left_click {"coordinate":[3,4]}`, "computer screenshot {}"}},
	} {
		for _, scenario := range []string{scenario, scenario + "-stream"} {
			if f := g.anthropic(scenario, tt.prompt); f.Finish != "end_turn" || f.Text != "Done." || !slices.Equal(f.Calls, tt.calls) {
				t.Errorf("%s: %+v", scenario, f)
			}
			if last := up.last().names(); strings.HasPrefix(scenario, "changing") && (!slices.Contains(last, "second") || slices.Contains(last, "first")) {
				t.Errorf("the model has %s in the end", last)
			}
		}
	}
}

// TestVercelAIMessages: the AI SDK's provider for Anthropic's API.
func TestVercelAIMessages(t *testing.T) {
	t.Parallel()
	g, up, log := toolsGateway(t)
	g.plays(t, up, log, "ai.mjs", "messages", []wireScenario{
		{name: "generate-tools", names: []string{"multiply"}}, {name: "stream-tools", names: []string{"multiply"}, model: "rehearsal:reasoning"},
		{name: "generate-named", names: []string{"echo", "multiply", "again"}}, {name: "stream-named", names: []string{"echo", "multiply", "again"}},
		{name: "generate-image", images: 1}, {name: "stream-image", images: 1},
	})
	for _, scenario := range []string{"generate", "stream"} {
		g.refused(t, "ai.mjs", scenario, "rehearsal:500", "messages", 500, "")
	}
}

// TestLangChainMessages: LangChain's ChatAnthropic. It takes the arguments of a server's
// call for those of a call of its own that is broken, where they come in a stream.
func TestLangChainMessages(t *testing.T) {
	t.Parallel()
	g, up, log := toolsGateway(t)
	g.plays(t, up, log, "langchain.mjs", "messages", []wireScenario{
		{name: "invoke-tools"}, {name: "stream-tools", model: "rehearsal:reasoning"},
		{name: "invoke-named"}, {name: "stream-named", fails: true},
		{name: "invoke-image", images: 1}, {name: "stream-image", images: 1},
	})
	for _, scenario := range []string{"invoke", "stream"} {
		g.refused(t, "langchain.mjs", scenario, "rehearsal:500", "messages", 500, "")
	}
}
