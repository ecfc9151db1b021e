package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func withDefaults(c servers.Config) servers.Config {
	c.SetDefaults()
	c.Complete()
	return c
}

func TestReadMCP(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             map[string]servers.Config
		warnings         []string
	}{
		{"the usual form", "mcp.json", `{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "${KEY}", "N": null, "P": 80}}}}`,
			map[string]servers.Config{"a": {Command: "npx", Args: []string{"-y", "x"}, Env: secret.Map(map[string]string{"K": "v", "P": "80"})}}, nil},
		{"an editor's form", "mcp.json", "{\n  // servers\n  \"inputs\": [{\"id\": \"key\"}],\n  \"servers\": {\"a\": {\"type\": \"http\", \"url\": \"https://a.test/mcp\", \"headers\": {\"X\": \"${env:KEY}\"}},},\n}",
			map[string]servers.Config{"a": {URL: "https://a.test/mcp", Transport: servers.StreamableHTTP, Headers: secret.Map(map[string]string{"X": "v"})}}, nil},
		{"settings of an editor", "settings.json", `{"editor.fontSize": 12, "mcp": {"servers": {"a": {"type": "sse", "url": "http://a.test/sse"}}}}`,
			map[string]servers.Config{"a": {URL: "http://a.test/sse", Transport: servers.SSE}}, nil},
		{"bare entries", "mcp.json", `{"a": {"command": "x"}, "b": {"url": "http://b.test"}}`,
			map[string]servers.Config{"a": {Command: "x"}, "b": {URL: "http://b.test"}}, nil},
		{"YAML", "servers.yaml", "mcpServers:\n  a:\n    command: x\n",
			map[string]servers.Config{"a": {Command: "x"}}, nil},
		{"none", "mcp.json", `{"mcpServers": {}}`, map[string]servers.Config{}, nil},
		{"keys without meaning", "mcp.json", `{"mcpServers": {"a": {"command": "x", "autoApprove": ["t"], "gallery": true, "colour": {"round": 1}}}}`,
			map[string]servers.Config{"a": {Command: "x"}},
			[]string{
				"keys of other clients are ignored: autoApprove (a), gallery (a), colour (a)",
			}},
		{"sandboxes", "mcp.json", `{"mcpServers": {"a": {"command": "x", "sandbox": {"read": ["/a"], "network": true}}, "b": {"command": "x", "sandbox": true}, "c": {"command": "x", "sandbox": {"filesystem": {}}}, "d": {"command": "x", "sandbox": {"network": {}}}}}`,
			map[string]servers.Config{"a": {Command: "x", Sandbox: servers.Sandbox{Read: []string{"/a"}, Network: true, Enforce: servers.Strict}}, "b": {Command: "x"}, "c": {Command: "x"}, "d": {Command: "x"}},
			[]string{"keys of other clients are ignored: sandbox (b, c, d)"}},
		{"pins are no looser", "mcp.json", `{"mcpServers": {"a": {"command": "x", "pins": "off"}, "b": {"command": "x", "pins": "first"}, "c": {"command": "x", "pins": "explicit"}}}`,
			map[string]servers.Config{"a": {Command: "x"}, "b": {Command: "x"}, "c": {Command: "x", Pins: pin.Explicit}},
			[]string{"keys of other clients are ignored: pins (a, b)"}},
		{"tools that are switched off stay off", "mcp.json", `{"mcpServers": {"a": {"command": "x", "tools": ["get_*"], "disabledTools": ["get_b"]}, "b": {"command": "x", "includeTools": ["a"], "excludeTools": ["b"]}}}`,
			map[string]servers.Config{
				"a": {Command: "x", Tools: servers.Filter{Include: []string{"get_*"}, Exclude: []string{"get_b"}}},
				"b": {Command: "x", Tools: servers.Filter{Include: []string{"a"}, Exclude: []string{"b"}}},
			}, nil},
		{"servers that are switched off stay off", "mcp.json", `{"mcpServers": {"a": {"command": "x", "enabled": false}, "b": {"command": "x", "isActive": true}, "c": {"command": "${NONE}", "disabled": true}}}`,
			map[string]servers.Config{"a": {Command: "x", Disabled: true}, "b": {Command: "x"}, "c": {Command: "${NONE}", Disabled: true}}, nil},
		{"other names for keys", "mcp.json", `{"mcpServers": {"a": {"httpUrl": "http://a.test"}, "b": {"serverUrl": "http://b.test"}, "c": {"type": "local", "command": ["x", "y"], "environment": {"A": "b"}}, "d": {"type": "streamableHttp", "url": "http://d.test"}}}`,
			map[string]servers.Config{
				"a": {URL: "http://a.test", Transport: servers.StreamableHTTP},
				"b": {URL: "http://b.test"},
				"c": {Command: "x", Args: []string{"y"}, Env: secret.Map(map[string]string{"A": "b"}), Transport: servers.Stdio},
				"d": {URL: "http://d.test", Transport: servers.StreamableHTTP},
			}, nil},
		{"Goose's extensions", "config.yaml", "GOOSE_MODEL: m\nextensions:\n  a:\n    type: stdio\n    cmd: npx\n    args: [-y, x]\n    env_keys: [KEY, NONE]\n    envs: {A: b}\n    bundled: null\n    enabled: true\n    available_tools: []\n  b:\n    type: streamable_http\n    uri: http://b.test/mcp\n    available_tools: [get]\n    enabled: false\n  developer:\n    type: builtin\n    enabled: true\n",
			map[string]servers.Config{
				"a": {Command: "npx", Args: []string{"-y", "x"}, Env: secret.Map(map[string]string{"A": "b", "KEY": "v"}), Transport: servers.Stdio},
				"b": {URL: "http://b.test/mcp", Transport: servers.StreamableHTTP, Tools: servers.Filter{Include: []string{"get"}}, Disabled: true},
			}, nil},
		{"variables that Codex passes and sets", "config.toml", "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"KEY\"]\n[mcp_servers.a.env]\nA = \"b\"\n",
			map[string]servers.Config{"a": {Command: "x", Env: secret.Map(map[string]string{"A": "b", "KEY": "v"})}}, nil},
		{"servers that Gemini CLI excludes", "settings.json", `{"mcp": {"excluded": ["b"]}, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "enabled": true}}}`,
			map[string]servers.Config{"a": {Command: "x"}, "b": {Command: "x", Disabled: true}}, nil},
		{"servers that Gemini CLI allows", "settings.json", `{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}`,
			map[string]servers.Config{"a": {Command: "x"}, "b": {Command: "x", Disabled: true}}, nil},
		{"opencode", "opencode.json", `{"mcp": {"allowed": {"type": "local", "command": ["x", "{env:KEY}{env:KEY}", "{env:}", "{file:a}"]}, "b": {"type": "remote", "url": "http://b.test", "oauth": false, "headers": {"A": "Bearer {env:KEY}"}}}}`,
			map[string]servers.Config{
				"allowed": {Command: "x", Args: []string{"vv", "{env:}", "{file:a}"}, Transport: servers.Stdio},
				"b":       {URL: "http://b.test", Headers: secret.Map(map[string]string{"A": "Bearer v"})},
			},
			[]string{"keys of other clients are ignored: oauth (b)"}},
		{"how other clients log in", "mcp.json", `{"mcpServers": {"a": {"url": "http://a.test", "oauth": {"enabled": true, "scopes": ["s"]}}, "b": {"url": "http://b.test", "auth": {"CLIENT_ID": "c"}}, "c": {"url": "http://c.test", "oauth": {"clientId": "c", "callbackPort": 1}}, "d": {"url": "http://d.test", "oauth": {"client_id": "c"}}}}`,
			map[string]servers.Config{
				"a": {URL: "http://a.test"}, "b": {URL: "http://b.test"}, "c": {URL: "http://c.test"},
				"d": {URL: "http://d.test", OAuth: credential.Config{ClientID: "c"}},
			},
			[]string{"keys of other clients are ignored: oauth (a, c), auth (b)"}},
		{"times without unit", "mcp.json", `{"mcpServers": {"a": {"command": "x", "timeout": 60}, "b": {"command": "x", "timeout": 30000}, "c": {"command": "x", "timeout": "5s"}}}`,
			map[string]servers.Config{"a": {Command: "x", Timeout: time.Minute}, "b": {Command: "x", Timeout: 30 * time.Second}, "c": {Command: "x", Timeout: 5 * time.Second}},
			[]string{"mcpServers.a.timeout has no unit and is taken for 60s", "mcpServers.b.timeout has no unit and is taken for 30000ms"}},
		{"labels", "mcp.json", `{"mcpServers": {"my server": {"command": "a"}, "my-server": {"command": "b"}, "@org/some__thing": {"command": "c"}, "语": {"command": "d"}, "` + strings.Repeat("x", 40) + `": {"command": "e"}}}`,
			map[string]servers.Config{
				"my-server-2": {Command: "a"}, "my-server": {Command: "b"}, "org-some_thing": {Command: "c"}, "server": {Command: "d"}, strings.Repeat("x", 32): {Command: "e"},
			},
			[]string{
				`the server "my server" is called my-server-2 here`,
				`the server "@org/some__thing" is called org-some_thing here`,
				`the server "语" is called server here`,
				`the server "` + strings.Repeat("x", 40) + `" is called ` + strings.Repeat("x", 32) + ` here`,
			}},
		{"dollars", "mcp.json", `{"mcpServers": {"a": {"command": "x", "args": ["$$", "$KEY", "${KEY}", "${NONE:-a b}", "$"]}}}`,
			map[string]servers.Config{"a": {Command: "x", Args: []string{"$$", "$KEY", "v", "a b", "$"}}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := config.ReadMCP(write(t, tt.file, tt.text, 0o600), env("KEY", "v"))
			if err != nil {
				t.Fatal(err)
			}
			want := make(map[string]servers.Config)
			for label, server := range tt.want {
				want[label] = withDefaults(server)
			}
			if diff := cmp.Diff(want, f.MCPServers); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			var warnings []string
			for _, w := range f.Warnings {
				warnings = append(warnings, w.Message)
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadMCPErrors(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"no servers", "mcp.json", `{"theme": "dark"}`, `
PATH:1:1: there are no MCP servers in this file
  1 | {"theme": "dark"}
    | ^
  They are expected under "mcpServers", "servers", "mcp", "context_servers" or "mcp_servers".`},
		{"not JSON", "mcp.json", `{"mcpServers": {"a": {"command": x}}}`, `
PATH:1:34: this is not valid JSON
  1 | {"mcpServers": {"a": {"command": x}}}
    |                                  ^`},
		{"TOML that is none", "config.toml", "[mcp_servers.a]\nhttp_headers = { key = \"canary\" }\nurl = x\n", `
PATH:3:7: this is not valid TOML`},
		{"TOML without servers", "config.toml", "model = \"x\"\n", `
PATH:1:1: there are no MCP servers in this file
  They are expected under "mcpServers", "servers", "mcp", "context_servers" or "mcp_servers".`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.file, tt.text, 0o600)
			_, err := config.ReadMCP(path, env())
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), path, "PATH")
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, got)
			}
		})
	}
}
