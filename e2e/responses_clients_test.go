package e2e

import (
	"slices"
	"strings"
	"testing"
)

// A played scenario of a client on another API than Chat: what the client has to see.
type wireScenario struct {
	name   string
	prompt string   // mixed where it is empty
	names  []string // of the calls that the client's user sees
	ran    []string // of ours; nil means echo, then again
	local  int      // calls of the client's own tool; -1 for none
	model  string   // of rehearsal's
	images int      // that the model sees in the last request
	fails  bool     // a call of ours does, which the client sees
}

// only calls ours and the client's own tool each in a message of its own.
const alone = "SAY Let me look.\nCALL tools__echo {\"message\":\"one\"}\nTHEN\nCALL tools__again {\"message\":\"two\"}\nTHEN\nCALL multiply {\"a\":6,\"b\":7}\nSAY All done."

// plays plays scenarios of a client script, each as it is and streamed.
func (g *gateway) plays(t *testing.T, up *upstream, log, file, wire string, scenarios []wireScenario) {
	for _, tt := range scenarios {
		t.Run(tt.name, func(t *testing.T) {
			g.t = t
			before := len(ran(t, log))
			if tt.prompt == "" {
				tt.prompt = mixed
			}
			if tt.model == "" {
				tt.model = "rehearsal"
			}
			if tt.ran == nil {
				tt.ran = []string{"echo", "again"}
			}
			got := g.script(file, tt.name, tt.prompt, "DRAGOMAN_WIRE="+wire, "DRAGOMAN_MODEL="+tt.model)
			if got.Error != nil || !strings.HasSuffix(got.Content, "All done.") || tt.fails != (len(got.Errors) > 0) {
				t.Errorf("the client got %+v, %+v", got, got.Error)
			}
			if tt.names != nil && !slices.Equal(got.Names, tt.names) {
				t.Errorf("the client shows calls of %s, want %s", got.Names, tt.names)
			}
			if want := max(tt.local+1, 0); len(got.Local) != want || want == 1 && (got.Local[0].A != 6 || got.Local[0].B != 7) {
				t.Errorf("the client's tool got %+v", got.Local)
			}
			if now := ran(t, log)[before:]; !slices.Equal(now, tt.ran) {
				t.Errorf("of ours ran %s, want %s", now, tt.ran)
			}
			if n := strings.Count(string(up.last().Raw), "data:image/"); n != tt.images {
				t.Errorf("the model sees %d pictures", n)
			}
		})
	}
}

// streamsToo returns scenarios, each followed by the one with a suffix.
func streamsToo(suffix string, scenarios ...wireScenario) (all []wireScenario) {
	for _, s := range scenarios {
		all = append(all, s)
		s.name += suffix
		all = append(all, s)
	}
	return all
}

// refused holds a client's error to being what the gateway said.
func (g *gateway) refused(t *testing.T, file, scenario, model, wire string, status int, says string) {
	t.Run(scenario+" "+model, func(t *testing.T) {
		g.t = t
		got := g.script(file, scenario, "SAY hi", "DRAGOMAN_WIRE="+wire, "DRAGOMAN_MODEL="+model)
		if got.Error == nil || got.Error.Status != status || !strings.Contains(got.Error.Message, says) {
			t.Errorf("the client got %+v", got.Error)
		}
	})
}

// TestOpenAIResponses: the openai package, whose accumulator throws at every event that is
// out of place.
func TestOpenAIResponses(t *testing.T) {
	t.Parallel()
	g, up, log := toolsGateway(t)
	own := []string{"multiply"}
	g.plays(t, up, log, "responses.mjs", "responses", streamsToo("-stream",
		wireScenario{name: "unseen", prompt: hidden, local: -1, ran: []string{"echo", "again", "echo"}, names: []string{}},
		wireScenario{name: "mixed-kept", names: own},
		wireScenario{name: "mixed-sent", names: own, model: "rehearsal:reasoning"},
		wireScenario{name: "named", names: own},
		wireScenario{name: "approved", names: own},
		wireScenario{name: "approved-sent", names: own},
		wireScenario{name: "denied", names: own, ran: []string{}, fails: true},
		wireScenario{name: "image", names: own, images: 1},
		wireScenario{name: "background", names: own},
		wireScenario{name: "background-approved", names: own},
	))
	g.plays(t, up, log, "responses.mjs", "responses", streamsToo("-stream",
		wireScenario{name: "unseen", prompt: "CALL tools__broken\nSAY All done.", local: -1, ran: []string{"broken"}, fails: true},
	))
	g.plays(t, up, log, "responses.mjs", "responses", []wireScenario{
		{name: "socket-kept", names: own}, {name: "socket-unstored", names: own}, {name: "socket-approved", names: own},
	})
	t.Run("conversation", func(t *testing.T) {
		g.t = t
		got := g.script("responses.mjs", "conversation", mixed)
		want := []string{
			"message", "message", "message", "mcp_call", "function_call", "function_call_output", "mcp_call", "message", // of the conversation
			"message", "compaction", "other", "true", "Still here.",
		}
		if got.Error != nil || !strings.HasSuffix(got.Content, "All done.") || !slices.Equal(got.Roles, want) {
			t.Errorf("the client got %+v, %+v\nwant %s", got, got.Error, want)
		}
	})
	for _, suffix := range []string{"", "-stream"} {
		g.refused(t, "responses.mjs", "nowhere"+suffix, "rehearsal", "responses", 400, "nowhere")
		g.refused(t, "responses.mjs", "elsewhere"+suffix, "rehearsal", "responses", 400, "server_url")
		g.refused(t, "responses.mjs", "mixed-kept"+suffix, "rehearsal:500", "responses", 500, "")
		t.Run("parse"+suffix, func(t *testing.T) {
			g.t = t
			if got := g.script("responses.mjs", "parse"+suffix, "SAY fine"); string(got.Parsed) != `{"answer":"fine"}` {
				t.Errorf("the client parsed %s", got.Parsed)
			}
		})
	}
}

// TestOpenAIAgentsResponses: the Agents SDK with hosted MCP tools, whose approvals it asks
// of a function, or of whoever it was interrupted for.
func TestOpenAIAgentsResponses(t *testing.T) {
	t.Parallel()
	g, up, log := toolsGateway(t)
	asked := []string{"mcp_list_tools", "mcp_approval_request", "multiply", "mcp_approval_response", "mcp_call", "mcp_approval_request", "mcp_approval_response", "mcp_call"}
	g.plays(t, up, log, "agents.mjs", "responses", append(streamsToo("-stream",
		wireScenario{name: "named", names: []string{"mcp_list_tools", "mcp_call", "multiply", "mcp_call"}},
		wireScenario{name: "approved", names: []string{"mcp_list_tools", "mcp_approval_request", "multiply", "mcp_approval_response", "mcp_call", "mcp_call"}},
		wireScenario{name: "interrupted", names: asked},
		wireScenario{name: "rejected", names: asked, ran: []string{}},
		wireScenario{name: "image", images: 1},
	), wireScenario{name: "run"}, wireScenario{name: "stream"}))
	g.t = t
	for _, scenario := range []string{"machine", "machine-stream"} { // what the client runs itself
		got := g.script("agents.mjs", scenario, "CALL shell {\"commands\":[\"echo hi\"]}\nTHEN\nCALL apply_patch {\"type\":\"delete_file\",\"path\":\"a.txt\"}\nTHEN\n"+
			"CALL computer {\"actions\":[{\"type\":\"move\",\"x\":1,\"y\":2}]}\nTHEN\nSAY Done.", "DRAGOMAN_WIRE=responses")
		want := []string{`shell [{"commands":["echo hi"]}]`, `delete [{"type":"delete_file","path":"a.txt"}]`, "move [1,2]"}
		if got.Content != "Done." || !slices.Equal(got.Names, want) || !strings.Contains(string(up.last().Raw), "data:image/") {
			t.Errorf("%s: the client got %+v, %+v", scenario, got, got.Error)
		}
	}
	for _, scenario := range []string{"run", "stream"} {
		g.refused(t, "agents.mjs", scenario, "rehearsal:500", "responses", 500, "")
	}
}

// TestVercelAIResponses: the AI SDK with createOpenAI() as it comes, which speaks
// Responses.
func TestVercelAIResponses(t *testing.T) {
	t.Parallel()
	g, up, log := toolsGateway(t)
	seen := []string{"mcp.echo", "multiply", "mcp.again"}
	asked := []string{"mcp.echo", "mcp.echo", "mcp.again", "mcp.again", "multiply"}
	g.plays(t, up, log, "ai.mjs", "responses", []wireScenario{
		{name: "generate-tools", names: seen}, {name: "stream-tools", names: seen, model: "rehearsal:reasoning"},
		{name: "generate-named", names: seen}, {name: "stream-named", names: seen},
		{name: "generate-image", names: seen, images: 1}, {name: "stream-image", names: seen, images: 1},
		{name: "generate-approved", prompt: alone, names: asked}, {name: "stream-approved", prompt: alone, names: asked},
		{name: "generate-denied", prompt: alone, names: asked, ran: []string{}},
	})
	for _, scenario := range []string{"generate", "stream"} {
		g.refused(t, "ai.mjs", scenario, "rehearsal:500", "responses", 500, "")
	}
}

// TestLangChainResponses: LangChain with useResponsesApi.
func TestLangChainResponses(t *testing.T) {
	t.Parallel()
	g, up, log := toolsGateway(t)
	g.plays(t, up, log, "langchain.mjs", "responses", []wireScenario{
		{name: "invoke-tools"}, {name: "stream-tools", model: "rehearsal:reasoning"},
		{name: "invoke-named"}, {name: "stream-named"},
		{name: "invoke-image", images: 1}, {name: "stream-image", images: 1},
		{name: "invoke-approved"}, {name: "stream-approved"},
	})
	for _, scenario := range []string{"invoke", "stream"} {
		g.refused(t, "langchain.mjs", scenario, "rehearsal:500", "responses", 500, "")
	}
}

// TestOpenAIGoResponses: the official client for Go.
func TestOpenAIGoResponses(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling openai-go takes more than a minute")
	}
	t.Parallel()
	program := must(t, buildOpenAIGo)
	g, up, log := toolsGateway(t)
	for _, suffix := range []string{"", "-stream"} {
		for scenario, kinds := range map[string]string{
			"responses":          "message mcp_call function_call mcp_call message",
			"responses-image":    "message mcp_call function_call mcp_call message",
			"responses-approved": "mcp_list_tools message mcp_approval_request function_call mcp_call mcp_approval_request mcp_call message",
		} {
			before := len(ran(t, log))
			got := g.openAIGo(program, scenario+suffix, mixed)
			if got.Finish != "completed" || !strings.HasSuffix(got.Content, "All done.") || strings.Join(got.Kinds, " ") != kinds || !slices.Equal(got.Local, []string{"multiply 42"}) {
				t.Errorf("%s: the client got %+v", scenario+suffix, got)
			}
			if now := ran(t, log)[before:]; !slices.Equal(now, []string{"echo", "again"}) {
				t.Errorf("%s: of ours ran %s", scenario+suffix, now)
			}
			if seen := strings.Contains(string(up.last().Raw), "data:image/"); seen != (scenario == "responses-image") {
				t.Errorf("%s: the model sees a picture: %v", scenario+suffix, seen)
			}
		}
		if got := g.openAIGo(program, "responses-nowhere"+suffix, "SAY hi"); got.Error["code"] != "unknown_server" || got.Error["status"] != 400.0 {
			t.Errorf("an unknown server gets %+v", got.Error)
		}
	}
}
