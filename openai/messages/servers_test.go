package messages

import (
	"encoding/json"
	"testing"
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
