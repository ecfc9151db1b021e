package mcpserve

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// withViews are two servers with views and one without, and tools of the same names.
func withViews() *two {
	var tools []dragoman.Tool
	for label, definitions := range map[string][]string{
		"charts": {
			`{"name":"show_chart","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://charts/v"}}}`,
			`{"name":"refresh","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}`,
			`{"name":"zoom","inputSchema":{"type":"object"}}`,
			`{"name":"forget","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["model"]}}}`,
			`{"name":"close","inputSchema":{"type":"object"}}`,
		},
		"maps": {
			`{"name":"show_map","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://maps/v"}}}`,
			`{"name":"close","inputSchema":{"type":"object"}}`,
		},
		"plain": {
			`{"name":"refresh","inputSchema":{"type":"object"}}`,
			`{"name":"only_here","inputSchema":{"type":"object"}}`,
		},
	} {
		for _, d := range definitions {
			tools = append(tools, dragoman.ReadTool(label, json.RawMessage(d)))
		}
	}
	list := &dragoman.List{Tools: dragoman.NewTools(tools)}
	for _, label := range []string{"charts", "maps", "plain"} {
		list.Servers = append(list.Servers, dragoman.Server{Label: label, State: dragoman.Connected, Capabilities: json.RawMessage(`{"tools":{}}`)})
	}
	return &two{list: list}
}

// TestViewsCallByTheirOwnNames: a name that we gave to nobody is the tool of the one
// server with views that has it for views; nothing is guessed.
func TestViewsCallByTheirOwnNames(t *testing.T) {
	inner := withViews()
	url := open(t, inner, nil, "charts", "maps", "plain")
	for _, tt := range []struct{ path, name, server, problem string }{
		{"/mcp", "refresh", "charts", ""},
		{"/mcp", "zoom", "charts", ""},
		{"/mcp", "show_map", "maps", ""},
		{"/mcp", "charts__refresh", "charts", ""},
		{"/mcp", "plain__refresh", "plain", ""},
		{"/mcp", "close", "", "call charts__close or maps__close"},
		{"/mcp", "forget", "", "unknown tool"},    // not for views
		{"/mcp", "only_here", "", "unknown tool"}, // no view calls it
		{"/mcp", "nobody", "", "unknown tool"},
		{"/mcp/maps", "refresh", "", "unknown tool"},
		{"/mcp/maps", "close", "maps", ""},
	} {
		inner.calls = nil
		_, problem := post(t, url+tt.path, "tools/call", `,"name":"`+tt.name+`"`)
		switch {
		case tt.problem != "":
			if !strings.Contains(string(problem), tt.problem) || len(inner.calls) != 0 {
				t.Errorf("%s at %s: %s, %d calls, want %s", tt.name, tt.path, problem, len(inner.calls), tt.problem)
			}
		case len(inner.calls) != 1 || inner.calls[0].Tool.Server != tt.server:
			t.Errorf("%s at %s: %s, %+v, want %s", tt.name, tt.path, problem, inner.calls, tt.server)
		}
	}
}

// TestServerThatIsDownSaysSo: a call of a tool of a server that has nothing to offer is
// answered with its state, for the model, and is no unknown tool.
func TestServerThatIsDownSaysSo(t *testing.T) {
	inner := newTwo()
	inner.list.Servers = append(inner.list.Servers, dragoman.Server{
		Label: "the.lost", State: dragoman.Failed, Since: time.Now().Add(-time.Minute), Retry: time.Now().Add(20 * time.Second),
		Problem: &dragoman.Problem{Code: dragoman.CodeServerUnavailable, Message: "It does not start."},
	})
	url := open(t, inner, nil, "a", "b", "the.lost") + "/mcp"
	got, problem := post(t, url, "tools/call", `,"name":"the_lost__find"`)
	for _, want := range []string{`"isError":true`, dragoman.CodeServerUnavailable, `the MCP server \\\"the.lost\\\" is not available: it is failed for 1m0s`, `\"retry_after\":`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s %s, want %s", got, problem, want)
		}
	}
	_, problem = post(t, url, "tools/call", `,"name":"find"`)
	if !strings.Contains(string(problem), `unknown tool: \"find\"; the MCP server \"the.lost\" is not available`) {
		t.Errorf("a name without a label: %s", problem)
	}
}

// TestServerSaysWhoItIs: at its own address a server is who it says it is, and we stand
// beside it; at /mcp we are who answers.
func TestServerSaysWhoItIs(t *testing.T) {
	const own = `{"name":"a-server","title":"The A","version":"7.1","icons":[{"src":"https://a.example/i.png"}],"x":1.0}`
	const ours = `{"name":"test","version":"1"}`
	inner := newTwo()
	inner.list.Servers[0].Info = json.RawMessage(own)
	inner.list.Servers[1].Info = json.RawMessage(`{"title":"No name"}`)
	url := open(t, inner, nil, "a", "b")
	for path, want := range map[string]string{
		"/mcp/a": `"_meta":{"io.github.dragoman-mcp/gateway":` + ours + `,"io.modelcontextprotocol/serverInfo":` + own + `}`,
		"/mcp/b": `"_meta":{"io.modelcontextprotocol/serverInfo":` + ours + `}`,
		"/mcp":   `"_meta":{"io.modelcontextprotocol/serverInfo":` + ours + `}`,
	} {
		if got, problem := post(t, url+path, "server/discover", ""); !strings.Contains(string(got), want) {
			t.Errorf("%s: %s %s, want %s", path, got, problem, want)
		}
	}
	for path, want := range map[string]string{
		"/mcp/a": `"serverInfo":` + own + `,"instructions":"Use a.","_meta":{"io.github.dragoman-mcp/gateway":` + ours + `}`,
		"/mcp":   `"serverInfo":` + ours,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestUnexpectedAnswersAreIgnored: answers under keys that nobody asked for mean
// nothing, with the state of a question or without, and those that come along with the
// first request answer what is asked.
func TestUnexpectedAnswersAreIgnored(t *testing.T) {
	inner := toolsettest.NewInner()
	url := open(t, inner, nil, toolsettest.Server) + "/mcp/" + toolsettest.Server
	call := func(more string) string {
		t.Helper()
		got, problem := postCan(t, "", url, "tools/call", `,"name":"`+toolsettest.Ask+`","arguments":{}`+more, `{"elicitation":{}}`)
		if problem != nil {
			t.Fatalf("%s: %s", more, problem)
		}
		return string(got)
	}
	const reply = `"how many":{"action":"accept","content":{"n":3}}`
	const stray = `"nobody asked":{"action":"accept","content":{}}`
	asked := call("")
	var state struct{ RequestState json.RawMessage }
	if err := json.Unmarshal([]byte(asked), &state); err != nil || state.RequestState == nil {
		t.Fatalf("%v %s", err, asked)
	}
	for more, want := range map[string]string{
		`,"inputResponses":{` + stray + `,` + reply + `},"requestState":` + string(state.RequestState): `"complete"`,
		`,"inputResponses":{` + reply + `,` + stray + `}`:                                              `"complete"`,
		`,"inputResponses":{` + stray + `}`:                                                            `"input_required"`,
		`,"inputResponses":{}`:                                                                         `"input_required"`,
		`,"inputResponses":null`:                                                                       `"input_required"`,
	} {
		if got := call(more); !strings.Contains(got, `"resultType":`+want) {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

// TestNoAnswerComesEarlyForAnOperator: what only an operator may answer is not answered
// by what a client brings along.
func TestNoAnswerComesEarlyForAnOperator(t *testing.T) {
	ran := 0
	s := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return operated{&ran}, nil }}
	defer s.Close()
	w := httptest.NewRecorder()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","inputResponses":{"ok":{"action":"accept"}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://h/mcp", strings.NewReader(body))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "x"} {
		r.Header.Set(name, value)
	}
	s.ServeHTTP(w, r)
	if ran != 1 || !strings.Contains(w.Body.String(), "input_required") {
		t.Errorf("%d legs: %s", ran, w.Body.String())
	}
}

// operated asks what only an operator may answer.
type operated struct{ ran *int }

func (operated) Owner() string                            { return "" }
func (operated) Describe(context.Context) mcp.Description { return mcp.Description{} }
func (o operated) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	*o.ran++
	return dragoman.Result{Asks: &dragoman.Asks{State: []byte("s"), Questions: []dragoman.Question{{Key: "ok", Kind: dragoman.AskForm, Operator: true}}}}, nil
}
