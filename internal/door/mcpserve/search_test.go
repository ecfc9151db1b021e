package mcpserve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// large is a toolset of two servers with many tools, some of them with views, and one
// whose name is that of a tool of ours.
func large() *two {
	var tools []dragoman.Tool
	add := func(server, entry string) { tools = append(tools, dragoman.ReadTool(server, json.RawMessage(entry))) }
	for i := range 40 {
		add("desk", fmt.Sprintf(`{"name":"ticket_%02d","description":"Works on tickets.","inputSchema":{"type":"object","properties":{"id":{"type":"integer"}}}}`, i))
	}
	add("desk", `{"name":"board","description":"Shows the board.","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://board"}}}`)
	add("desk", `{"name":"refresh_board","description":"Loads the board again.","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}`)
	add("desk", `{"name":"call_tool","description":"Rings somebody up about a tool.","inputSchema":{"type":"object"}}`)
	add("post", `{"name":"send_letter","description":"Sends a letter.","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]},"outputSchema":{"type":"object"}}`)
	return &two{list: &dragoman.List{Tools: dragoman.NewTools(tools), Servers: []dragoman.Server{{Label: "desk", State: dragoman.Connected}, {Label: "post", State: dragoman.Connected}}}}
}

// searched opens a door at which the configuration says when to search.
func searched(t *testing.T, inner dragoman.Toolset, clients model.SearchWhen, always ...string) string {
	t.Helper()
	return open(t, inner, func(o *Options) {
		opener := session.New(session.Options{
			Tools: session.Shared(catalog.New(inner, catalog.Config{})), Servers: map[string]bool{"desk": true, "post": true}, Dialects: dialect.Builtin(),
			Sets:      map[string]catalog.Selection{"office": {{Server: "desk", Match: []string{"desk__ticket_0*"}}, {Server: "post"}}, "plain": {{Server: "post"}}},
			SetSearch: map[string]model.SearchWhen{"office": model.Always},
			Search:    model.Search{When: model.Never, Tokens: 1000, Always: model.Keep(always...)}, Clients: clients,
		})
		o.Sessions = func() *session.Opener { return opener }
	})
}

func toolNames(t *testing.T, raw json.RawMessage) (names []string) {
	t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// Issue 17, A 4: a client that wants it is listed two tools in place of many, by the
// configuration, by its address, or by a set.
func TestClientsSearchWhereTheyWantTo(t *testing.T) {
	views := []string{"desk__board", "desk__refresh_board"}
	two := []string{"find_tools", "call_tool", "read_more"}
	for _, tc := range []struct {
		clients model.SearchWhen
		always  []string
		path    string
		want    []string // nil: all of them
	}{
		{"", nil, "/mcp", nil},
		{"", nil, "/mcp?search=never", nil},
		{"", nil, "/mcp?search", slices.Concat(views, two)},
		{"", nil, "/mcp?search=", slices.Concat(views, two)},
		{"", nil, "/mcp?search=always&x=y", slices.Concat(views, two)},
		{"", nil, "/mcp?search=auto", slices.Concat(views, two)},
		{"", nil, "/mcp/post?search=auto", nil}, // one tool costs less than 1,000 tokens
		{"", nil, "/mcp/post?search", two},
		{"", nil, "/mcp/desk?search", []string{"board", "refresh_board", "find_tools", "call_tool_mcp", "read_more"}},
		{"", nil, "/mcp/set/office", two},
		{"", nil, "/mcp/set/office?search=never", nil},
		{"", nil, "/mcp/set/plain", nil},
		{model.Auto, nil, "/mcp", slices.Concat(views, two)},
		{model.Auto, nil, "/mcp/set/plain", nil},
		{model.Always, nil, "/mcp/set/plain", two},
		{model.Always, nil, "/mcp?search=never", nil},
		{model.Always, []string{"desk__ticket_*7", "post__*"}, "/mcp", slices.Concat(views, []string{"desk__ticket_07", "desk__ticket_17", "desk__ticket_27", "desk__ticket_37", "post__send_letter"}, two)},
		{model.Always, []string{"post__*"}, "/mcp/post", nil}, // nothing to search for
	} {
		t.Run(fmt.Sprintf("%s %s %v", tc.clients, tc.path, tc.always), func(t *testing.T) {
			got, problem := post(t, searched(t, large(), tc.clients, tc.always...)+tc.path, "tools/list", "")
			if problem != nil {
				t.Fatal(string(problem))
			}
			names := toolNames(t, got)
			if tc.want == nil {
				if slices.Contains(names, "find_tools") || !slices.Contains(names, "read_more") {
					t.Errorf("listed are %v", names)
				}
				return
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
	url := searched(t, large(), "")
	for _, path := range []string{"/mcp?search=yes", "/mcp?search&search", "/mcp/post?search=Always"} {
		if got, problem := post(t, url+path, "tools/list", ""); got != nil || !strings.Contains(string(problem), "always, auto and never") {
			t.Errorf("%s: %s %s", path, got, problem)
		}
	}
	if got, problem := post(t, url+"/mcp", "tools/call", `,"name":"find_tools","arguments":{"query":"letter"}`); got != nil || problem == nil {
		t.Errorf("find_tools is there though nobody searches: %s", got)
	}
}

// answer is the text of a result.
func answer(t *testing.T, raw json.RawMessage) (text string, failed bool) {
	t.Helper()
	var res struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &res); err != nil || len(res.Content) != 1 {
		t.Fatalf("%s: %v", raw, err)
	}
	return res.Content[0].Text, res.IsError
}

// What is found has the schema of its server, under the name that the client knows it
// by; what is for views alone is not found.
func TestFoundTools(t *testing.T) {
	url := searched(t, large(), model.Always)
	for _, tc := range []struct{ path, query, want, not string }{
		{"/mcp", "send a letter", `{"tools":[{"name":"post__send_letter","description":"Sends a letter.","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]}`, ""},
		{"/mcp/post", "send a letter", `"name":"send_letter"`, "post__"},
		{"/mcp/desk", "call_tool", `{"tools":[{"name":"call_tool","description":"Rings`, "desk__"},
		{"/mcp", "board again", `"name":"desk__board"`, "refresh_board"},
		{"/mcp/desk", "letter", "No tool matches.", "post"},
		{"/mcp/set/office", "desk__ticket_11", `"name":"desk__ticket_0`, "desk__ticket_11"},
	} {
		got, problem := post(t, url+tc.path, "tools/call", `,"name":"find_tools","arguments":{"query":"`+tc.query+`"}`)
		if problem != nil {
			t.Errorf("%s %q: %s", tc.path, tc.query, problem)
			continue
		}
		if text, failed := answer(t, got); failed || !strings.Contains(text, tc.want) || tc.not != "" && strings.Contains(text, tc.not) {
			t.Errorf("%s %q: %s, want %s", tc.path, tc.query, text, tc.want)
		}
		if strings.Contains(string(got), "structuredContent") {
			t.Errorf("what is found is said twice: %s", got)
		}
	}
	if got, _ := post(t, url+"/mcp", "tools/call", `,"name":"find_tools","arguments":{}`); !strings.Contains(string(got), "invalid_arguments") {
		t.Errorf("no query: %s", got)
	}
}

// A call of call_tool is that of the tool which it names, and what is no such call is
// said in a result, which models read.
func TestCallTool(t *testing.T) {
	inner := large()
	url := searched(t, inner, model.Always)
	for _, tc := range []struct{ path, name, arguments, server, original, args, problem string }{
		{"/mcp", "call_tool", `{"name":"post__send_letter","arguments":{"to":"ann","n":1.0}}`, "post", "send_letter", `{"to":"ann","n":1.0}`, ""},
		{"/mcp", "call_tool", `{"name":"post__send_letter","arguments":" {\"to\":\"ann\"}"}`, "post", "send_letter", `{"to":"ann"}`, ""},
		{"/mcp", "call_tool", `{"name":"desk__ticket_00"}`, "desk", "ticket_00", `{}`, ""},
		{"/mcp/post", "call_tool", `{"name":"send_letter","arguments":{"to":"ann"}}`, "post", "send_letter", `{"to":"ann"}`, ""},
		{"/mcp/desk", "call_tool_mcp", `{"name":"call_tool","arguments":{}}`, "desk", "call_tool", `{}`, ""},
		{"/mcp/desk", "call_tool", `{"name":"x"}`, "desk", "call_tool", `{"name":"x"}`, ""}, // the server's own
		{"/mcp", "post__send_letter", `{"to":"ann"}`, "post", "send_letter", `{"to":"ann"}`, ""},
		{"/mcp", "desk__refresh_board", `{}`, "desk", "refresh_board", `{}`, ""}, // a view calls it
		{"/mcp", "call_tool", `{"name":"desk__refresh_board"}`, "", "", "", "There is no tool named"},
		{"/mcp", "call_tool", `{"name":"send_letter"}`, "", "", "", `Did you mean \"post__send_letter\"?`},
		{"/mcp", "call_tool", `{"name":"send_parcel"}`, "", "", "", "Search for one with find_tools."},
		{"/mcp", "call_tool", `{"name":"POST__send_letter"}`, "", "", "", `Did you mean \"post__send_letter\"?`},
		{"/mcp", "call_tool", `{"name":"call_tool","arguments":{"name":"post__send_letter"}}`, "", "", "", "There is no tool named"},
		{"/mcp", "call_tool", `{"name":"post__send_letter","to":"ann"}`, "", "", "", `There is no argument \"to\" here`},
		{"/mcp", "call_tool", `{"name":"post__send_letter","arguments":[1]}`, "", "", "", "has to be an object"},
		{"/mcp", "call_tool", `{"name":"post__send_letter","arguments":"to ann"}`, "", "", "", "no JSON object"},
		{"/mcp", "call_tool", `{"arguments":{}}`, "", "", "", "the name of a tool"},
		{"/mcp/set/office", "call_tool", `{"name":"desk__ticket_11"}`, "", "", "", "There is no tool named"},
	} {
		inner.calls = nil
		got, problem := post(t, url+tc.path, "tools/call", `,"name":"`+tc.name+`","arguments":`+tc.arguments)
		switch {
		case problem != nil:
			t.Errorf("%s %s %s: %s", tc.path, tc.name, tc.arguments, problem)
		case tc.problem != "":
			if text, failed := answer(t, got); !failed || len(inner.calls) > 0 || !strings.Contains(string(got), tc.problem) && !strings.Contains(text, tc.problem) {
				t.Errorf("%s %s: %s, %d calls; want %s", tc.path, tc.arguments, got, len(inner.calls), tc.problem)
			}
		case len(inner.calls) != 1 || inner.calls[0].Tool.Server != tc.server || inner.calls[0].Tool.Original != tc.original || string(inner.calls[0].Arguments) != tc.args:
			t.Errorf("%s %s %s: %d calls %+v", tc.path, tc.name, tc.arguments, len(inner.calls), inner.calls)
		}
	}
}

// Scopes are asked for the tool that is meant, and none for searching.
func TestStepUpForSearchedTools(t *testing.T) {
	inner := large()
	var asked []string
	url := open(t, inner, func(o *Options) {
		opener := session.New(session.Options{
			Tools: session.Shared(catalog.New(inner, catalog.Config{})), Servers: map[string]bool{"desk": true, "post": true},
			Dialects: dialect.Builtin(), Clients: model.Always,
		})
		o.Sessions = always(opener)
		o.StepUp = func(_ caller.Caller, _, right string) *caller.Refusal {
			asked = append(asked, right)
			return nil
		}
	})
	for _, tc := range []struct{ path, name, arguments, want string }{
		{"/mcp", "call_tool", `{"name":"post__send_letter"}`, "tool:post__send_letter"},
		{"/mcp/post", "call_tool", `{"name":"send_letter"}`, "tool:post__send_letter"},
		{"/mcp/desk", "call_tool", `{}`, "tool:desk__call_tool"},
		{"/mcp", "call_tool", `{}`, ""},
		{"/mcp/post", "find_tools", `{"query":"x"}`, ""},
		{"/mcp", "find_tools", `{"query":"x"}`, ""},
	} {
		asked = nil
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tc.name + `","arguments":` + tc.arguments +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+tc.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "X-Test-Issuer": "https://login.example", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tc.name} {
			r.Header.Set(name, value)
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := strings.Join(asked, " "); got != tc.want || res.StatusCode != http.StatusOK {
			t.Errorf("%s %s %s: %d, asked for %q, want %q", tc.path, tc.name, tc.arguments, res.StatusCode, got, tc.want)
		}
	}
}

// A legacy client searches as well, in its session and over HTTP+SSE.
func TestLegacyClientsSearch(t *testing.T) {
	inner := large()
	url := searched(t, inner, "")
	for name, transport := range map[string]func(*http.Client) mcp.Transport{
		"http": func(c *http.Client) mcp.Transport { return &mcp.HTTP{URL: url + "/mcp?search", Client: c} },
		"sse":  func(c *http.Client) mcp.Transport { return &mcp.HTTP{URL: url + "/sse?search", SSE: true, Client: c} },
	} {
		t.Run(name, func(t *testing.T) {
			inner.calls = nil
			pool := &http.Transport{}
			c, err := mcp.Connect(t.Context(), transport(&http.Client{Transport: pool}), &mcp.ClientOptions{Label: "us", Era: mcp.Legacy})
			if err != nil {
				t.Fatal(err)
			}
			defer pool.CloseIdleConnections()
			defer c.Close()
			list, err := c.List(t.Context())
			if err != nil || list.Tools.Len() != 5 {
				t.Fatalf("%d tools, %v", list.Tools.Len(), err)
			}
			call := &list.Tools.All()[slices.IndexFunc(list.Tools.All(), func(t dragoman.Tool) bool { return t.Original == "call_tool" })]
			res, err := c.Call(t.Context(), dragoman.Call{Tool: call, Arguments: json.RawMessage(`{"name":"post__send_letter","arguments":{"to":"ann"}}`)})
			if err != nil || res.Failed || len(inner.calls) != 1 || inner.calls[0].Tool.Original != "send_letter" {
				t.Errorf("%s %v, %d calls", res.Content, err, len(inner.calls))
			}
		})
	}
}
