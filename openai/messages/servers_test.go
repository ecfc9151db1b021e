package messages

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/openai/chat"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A toolset is that of the server that it names, whatever order they stand in, and wins
// over what mcp_servers says of it.
func TestToolsets(t *testing.T) {
	for request, want := range map[string]string{
		`"mcp_servers":[{"name":"a","tool_configuration":{"allowed_tools":["x"]}},{"name":"b"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"b"},{"type":"mcp_toolset","mcp_server_name":"a"}]`: `a ["x"] false, b null false`,
		`"mcp_servers":[{"name":"a","tool_configuration":{"allowed_tools":["x"]}},{"name":"b"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"c","default_config":{"defer_loading":true}}]`:      `a ["x"] false, b null false, c null true`,
		`"mcp_servers":[{"name":"a"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","default_config":{"enabled":false},"configs":{"y":{"enabled":true}}}]`:                                    `a ["y"] false`,
		`"mcp_servers":[{"name":"a","tool_configuration":{"enabled":false}}],"tools":[]`:                                                                                                             ``,
		`"tools":[{"type":"mcp_toolset","mcp_server_name":"a","default_config":{"defer_loading":true},"configs":{"y":{"defer_loading":false}}}]`:                                                     `a null false`,
		`"tools":[{"type":"mcp_toolset","mcp_server_name":"a","default_config":{"enabled":false}}]`:                                                                                                  `a [] false`,
	} {
		r, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],` + request + `}`))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range r.Servers {
			allowed, _ := json.Marshal(s.AllowedTools)
			deferred, _ := json.Marshal(s.DeferLoading)
			if got != "" {
				got += ", "
			}
			got += s.Label + " " + string(allowed) + " " + string(deferred)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// What a server's choice says wrongly is refused, with the member that says it.
func TestServersRefused(t *testing.T) {
	for servers, param := range map[string]string{
		`{}`:                          "mcp_servers",
		`["a"]`:                       "mcp_servers.0",
		`[{"name":""}]`:               "mcp_servers.0.name",
		`[{"name":"a"},{"name":"a"}]`: "mcp_servers.1.name",
		`[{"name":"a","url":"https://elsewhere.example"}]`:                        "mcp_servers.0.url",
		`[{"name":"a","authorization_token":"t"}]`:                                "mcp_servers.0.authorization_token",
		`[{"name":"a","tool_configuration":[]}]`:                                  "mcp_servers.0.tool_configuration",
		`[{"name":"a","tool_configuration":{"enabled":"no"}}]`:                    "mcp_servers.0.tool_configuration.enabled",
		`[{"name":"a","tool_configuration":{"allowed_tools":"x"}}]`:               "mcp_servers.0.tool_configuration.allowed_tools",
		`[{"name":"a","tool_configuration":{"allowed_tools":[1]}}]`:               "mcp_servers.0.tool_configuration.allowed_tools",
		`[{"name":"a","tool_configuration":{"enabled":true,"allowed_tools":{}}}]`: "mcp_servers.0.tool_configuration.allowed_tools",
	} {
		_, err := Parse([]byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"mcp_servers":` + servers + `}`))
		refused, ok := model.AsError(err)
		if !ok || refused.Param != param || !strings.HasPrefix(refused.Message, param+":") {
			t.Errorf("%s: %v, want a refusal of %s", servers, err, param)
		}
	}
}

// one is a toolset of one tool, which nobody calls.
type one struct{ tool dragoman.Tool }

func (o one) List(context.Context) (*dragoman.List, error) {
	return &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{o.tool})}, nil
}

func (one) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Failure(dragoman.CodeInternal, ""), nil
}

// A tool that has no schema of its arguments is listed as one that takes an object.
func TestListingWithoutSchema(t *testing.T) {
	tool := dragoman.ReadTool("clock", json.RawMessage(`{"name":"now"}`))
	tool.Name = "clock__now"
	for _, stream := range []string{"false", "true"} {
		r, err := Parse([]byte(`{"model":"m","max_tokens":9,"stream":` + stream + `,"messages":[{"role":"user","content":"x"}],"mcp_servers":[{"name":"clock"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Flags([]string{listFlag})
		w := httptest.NewRecorder()
		c, err := New(r, w, Options{Options: chat.Options{Model: &model.Client{Post: func(context.Context, [][]byte) (*http.Response, error) {
			body := `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&dragoman.Loop{Tools: one{tool}}).Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := w.Body.String(); !strings.Contains(got, `"tools":[{"name":"now","description":"","input_schema":{"type":"object"}}]`) {
			t.Errorf("stream %s: %s", stream, got)
		}
	}
}
