package e2e

import (
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakeresponses"
)

// A native gateway has a model whose API speaks Responses and says what it is told to.
type native struct {
	*gateway
	api *fakeresponses.API
	log string
}

func startNative(t *testing.T) *native {
	t.Helper()
	api := &fakeresponses.API{}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	entry, log := fake(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "again"}}})
	g := start(t, nil, servers{"tools": entry, "other": idle(t)}, func(file map[string]any, _ *exec.Cmd) {
		file["models"] = []any{map[string]any{"match": "*", "base_url": server.URL + "/v1", "wires": []string{"responses"}, "dialect": "openai"}}
	}).ready()
	return &native{g, api, log}
}

// say tells the API what [mixed] tells rehearsal, with a thought before it.
func (n *native) say() {
	answer := func(items ...string) fakeresponses.Answer {
		return fakeresponses.Answer{Items: fakeresponses.Items(items...)}
	}
	call := func(id, name, arguments string) string {
		return `{"id":"fc_` + id + `","type":"function_call","status":"completed","arguments":"` + arguments + `","call_id":"call_` + id + `","name":"` + name + `"}`
	}
	text := func(id, said string) string {
		return `{"id":"msg_` + id + `","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"` + said + `"}]}`
	}
	n.api.Say(
		answer(`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA1"}`, text("1", "Let me look."), call("1", "tools__echo", `{\"message\":\"one\"}`), call("2", "multiply", `{\"a\":6,\"b\":7}`)),
		answer(call("3", "tools__again", `{\"message\":\"two\"}`)),
		answer(text("2", "All done.")),
	)
}

// played checks what came of [native.say] in a scenario.
func (n *native) played(t *testing.T, file, scenario string, names []string) {
	t.Run(scenario, func(t *testing.T) {
		n.t = t
		before, refused := len(ran(t, n.log)), len(n.api.Refused())
		n.say()
		got := n.script(file, scenario, mixed, "DRAGOMAN_WIRE=responses", "DRAGOMAN_MODEL=m")
		if got.Error != nil || !strings.HasSuffix(got.Content, "All done.") || !slices.Equal(got.Names, names) {
			t.Errorf("the client got %+v, %+v", got, got.Error)
		}
		if len(got.Local) != 1 || got.Local[0].A != 6 || got.Local[0].B != 7 {
			t.Errorf("the client's tool got %+v", got.Local)
		}
		if now := ran(t, n.log)[before:]; !slices.Equal(now, []string{"echo", "again"}) {
			t.Errorf("of ours ran %s", now)
		}
		if why := n.api.Refused()[refused:]; len(why) > 0 || n.api.Left() > 0 {
			t.Errorf("the API refused %q and has %d answers left", why, n.api.Left())
		}
	})
}

// TestOpenAIOverResponses: the openai package in front of a model whose API speaks Responses,
// which reads strictly: by POST, streamed, in the background and over a WebSocket; and how
// large a request is, and what it is compacted to. What its accumulator of streams adds to
// items (parsed_arguments) no strict API takes back, so that streams are gone on from by id.
func TestOpenAIOverResponses(t *testing.T) {
	t.Parallel()
	n := startNative(t)
	own := []string{"multiply"}
	for _, scenario := range []string{
		"mixed-kept", "mixed-kept-stream", "mixed-sent", "named", "named-stream", "approved", "approved-stream", "approved-sent",
		"socket-kept", "socket-unstored", "socket-approved", "background", "background-stream", "background-approved",
	} {
		n.played(t, "responses.mjs", scenario, own)
	}
	t.Run("sized", func(t *testing.T) {
		n.t = t
		n.api.Say(fakeresponses.Answer{Items: fakeresponses.Items(`{"id":"msg_3","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Still here."}]}`)})
		got := n.script("responses.mjs", "sized", "Hello again", "DRAGOMAN_MODEL=m")
		if want := []string{"message", "compaction", "true", "Still here."}; got.Error != nil || !slices.Equal(got.Roles, want) {
			t.Errorf("the client got %q, %+v", got.Roles, got.Error)
		}
	})
}

// TestOpenAIAgentsOverResponses: the Agents SDK in front of the same.
func TestOpenAIAgentsOverResponses(t *testing.T) {
	t.Parallel()
	n := startNative(t)
	listed := []string{"mcp_list_tools", "mcp_call", "multiply", "mcp_call"}
	for _, scenario := range []string{"named", "named-stream"} {
		n.played(t, "agents.mjs", scenario, listed)
	}
	for _, scenario := range []string{"run", "stream"} {
		n.played(t, "agents.mjs", scenario, []string{"mcp_call", "multiply", "mcp_call"})
	}
}
