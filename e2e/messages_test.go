package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
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
