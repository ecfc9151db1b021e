package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
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
			map[string]servers.Config{"a": {Command: "x"}, "b": {Command: "x"}, "c": {Command: "x", Pins: pinning.Explicit}},
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
  They are expected under "mcpServers", "servers" or "mcp".`},
		{"not JSON", "mcp.json", `{"mcpServers": {"a": {"command": x}}}`, `
PATH:1:34: this is not valid JSON
  1 | {"mcpServers": {"a": {"command": x}}}
    |                                  ^`},
		{"an editor's variables", "mcp.json", `{"servers": {
 "a": {"command": "x", "args": ["${workspaceFolder}"]},
 "b": {"command": "x", "args": ["${input:which}"]},
 "c": {"command": "${userHome}/x"},
 "d": {"command": "${NONE}"},
 "e": {"command": "${config:x.y}"}}}`, `
PATH:2:33: mcpServers.a.args[0]: ${workspaceFolder} is known to an editor only: there is no workspace here
  2 |  "a": {"command": "x", "args": ["${workspaceFolder}"]},
    |                                 ^
  Write the path.
PATH:3:33: mcpServers.b.args[0]: ${input:which} asks a person for a value, and nobody is at a terminal
  3 |  "b": {"command": "x", "args": ["${input:which}"]},
    |                                 ^
  Set DRAGOMAN_INPUT_WHICH in the environment.
PATH:4:19: mcpServers.c.command: ${userHome} is known to an editor only
  4 |  "c": {"command": "${userHome}/x"},
    |                   ^
  Write ${HOME}.
PATH:5:19: mcpServers.d.command: the environment variable NONE is not set
  5 |  "d": {"command": "${NONE}"},
    |                   ^
  Set it, or give a default: ${NONE:-default}.
PATH:6:19: mcpServers.e.command: ${config:x.y} is known to an editor only
  6 |  "e": {"command": "${config:x.y}"}}}
    |                   ^
  Write the value.`},
		{"wrong kind", "mcp.json", `{"mcpServers": {"a": {"command": "x", "args": "y"}}}`, `
PATH:1:47: mcpServers.a.args must be a list, not text
  1 | {"mcpServers": {"a": {"command": "x", "args": "y"}}}
    |                                               ^
  Write it as a list: [a, b].`},
		{"another word for a key", "mcp.json", `{"mcpServers": {"a": {"cmd": "npx", "icon": "x"}}}`, `
PATH:1:22: mcpServers.a: a server needs a command or a url
  1 | {"mcpServers": {"a": {"cmd": "npx", "icon": "x"}}}
    |                      ^
  "cmd" is not a key here. Did you mean command?`},
		{"twice", "mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}", `
PATH:2:1: "a" stands twice in mcpServers: here and in line 1
  2 | "a": {"command": "y"}}}
    | ^`},
		{"unknown transport", "mcp.json", `{"mcpServers": {"a": {"type": "ws", "url": "http://a.test"}}}`, `
PATH:1:31: mcpServers.a.transport must be one of auto, stdio, streamable-http, sse, not "ws"
  1 | {"mcpServers": {"a": {"type": "ws", "url": "http://a.test"}}}
    |                               ^`},
		{"TOML", "config.toml", "[mcp_servers.a]\ncommand = \"x\"\n", `
PATH: TOML is not read here
  Write the servers as JSON: {"mcpServers": {"label": {"command": …}}}.`},
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
