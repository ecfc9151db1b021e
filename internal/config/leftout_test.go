package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Issue 17, D4: one bad entry of another client's file is left out with one line, and
// harms no other.
func TestOneBadEntryIsLeftOut(t *testing.T) {
	const good = `"good": {"command": "x"}`
	tests := []struct{ name, text, label, want string }{
		{"a workspace that is not there", `{"mcpServers": {` + good + `,
 "bad": {"command": "x", "args": ["${workspaceFolder}/a"]}}}`, "bad",
			`PATH:2:35: the server "bad" is left out: mcpServers.bad.args[0]: ${workspaceFolder} is known to an editor only: there is no workspace here. Write the path.`},
		{"a variable that is not set", `{"mcpServers": {"bad": {"command": "x", "env": {"A": "${NONE}"}}, ` + good + `}}`, "bad",
			`PATH:1:54: the server "bad" is left out: mcpServers.bad.env.A: the environment variable NONE is not set. Set it, or give a default: ${NONE:-default}.`},
		{"an editor's setting", `{"mcpServers": {"bad": {"command": "${config:x.y}"}, ` + good + `}}`, "bad",
			`PATH:1:36: the server "bad" is left out: mcpServers.bad.command: ${config:x.y} is known to an editor only. Write the value.`},
		{"a question, and nobody there", `{"mcpServers": {"bad": {"command": "x", "args": ["${input:which}"]}, ` + good + `}}`, "bad",
			`PATH:1:50: the server "bad" is left out: mcpServers.bad.args[0]: ${input:which} asks a person for a value, and nobody is at a terminal. Set DRAGOMAN_INPUT_WHICH in the environment.`},
		{"a file of variables that is not there", `{"mcpServers": {"bad": {"command": "x", "envFile": "none.env"}, ` + good + `}}`, "bad",
			`PATH:1:52: the server "bad" is left out: mcpServers.bad.envFile: the file of variables cannot be read: no such file or directory`},
		{"an extension of an editor", `{"context_servers": {"bad": {"source": "extension", "settings": {}}, ` + good + `}}`, "bad",
			`PATH:1:22: the server "bad" is left out: mcpServers.bad: an extension of the editor starts this server. Write its command here.`},
		{"code in an argument", `{"mcpServers": {"bad": {"command": "sh", "args": ["-c", "x"]}, ` + good + `}}`, "bad",
			`PATH:1:51: the server "bad" is left out: mcpServers.bad.args[0]: this argument makes the command run code from its arguments, and the file is another client's. If you know the code and want it, write this server into the configuration of dragoman.`},
		{"a value of the wrong kind", `{"mcpServers": {"bad": {"command": "x", "args": "y"}, ` + good + `}}`, "bad",
			`PATH:1:49: the server "bad" is left out: mcpServers.bad.args must be a list, not text. Write it as a list: [a, b].`},
		{"several things", `{"mcpServers": {"bad": {"command": "${NONE}", "args": "y", "cwd": 1}, ` + good + `}}`, "bad",
			`PATH:1:36: the server "bad" is left out: mcpServers.bad.command: the environment variable NONE is not set. Set it, or give a default: ${NONE:-default}. (and 2 more)`},
		{"another word for a key", `{"mcpServers": {"bad": {"cmd": "npx"}, ` + good + `}}`, "bad",
			`PATH:1:24: the server "bad" is left out: mcpServers.bad: a server needs a command or a url. "cmd" is not a key here. Did you mean command?`},
		{"an unknown transport", `{"mcpServers": {"bad": {"type": "ws", "url": "http://a.test"}, ` + good + `}}`, "bad",
			`PATH:1:33: the server "bad" is left out: mcpServers.bad.transport must be one of auto, stdio, streamable-http, sse, not "ws"`},
		{"no mapping", `{"mcpServers": {"bad": "npx", ` + good + `}}`, "bad",
			`PATH:1:24: the server "bad" is left out: mcpServers.bad must be a mapping, not text`},
		{"a name twice", `{"mcpServers": {"bad": {"command": "x"}, ` + good + `, "bad": {"command": "y"}}}`, "bad",
			`PATH:1:17: the server "bad" is left out: there are several servers of this name in mcpServers`},
		{"bare entries", `{"bad": {"cmd": "x"}, ` + good + `}`, "bad",
			`PATH:1:9: the server "bad" is left out: mcpServers.bad: a server needs a command or a url. "cmd" is not a key here. Did you mean command?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "mcp.json", tt.text, 0o600)
			f, err := config.ReadMCP(path, env())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]servers.Config{"good": withDefaults(servers.Config{Command: "x"})}, f.MCPServers); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if len(f.LeftOut) != 1 || f.LeftOut[0].Label != tt.label {
				t.Fatalf("left out: %v", f.LeftOut)
			}
			if got := strings.ReplaceAll(f.LeftOut[0].Reason.Error(), path, "PATH"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(f.Warnings) > 0 {
				t.Errorf("warnings of a server that is left out: %v", f.Warnings)
			}
		})
	}
}

// What is asked for a server that works is asked, whatever stands before it.
func TestBadEntryAsksNobodyElse(t *testing.T) {
	asked := 0
	r := config.Reader{Lookup: env(), Ask: func(config.Input) (string, error) { asked++; return "answer", nil }}
	f, err := r.ReadMCP(write(t, "mcp.json", `{"inputs": [{"id": "a"}, {"id": "b", "type": "oddString"}, {"id": "a"}],
		"servers": {"bad": {"command": "${NONE}", "args": ["${input:c}"]}, "good": {"command": "${input:a}"}, "other": {"command": "${input:b}"}}}`, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if f.MCPServers["good"].Command != "answer" || f.MCPServers["other"].Command != "answer" || len(f.LeftOut) != 1 || asked != 2 {
		t.Errorf("asked %d times, servers %v, left out %v", asked, f.MCPServers, f.LeftOut)
	}
	if len(f.Inputs) != 1 || len(f.Warnings) != 2 {
		t.Errorf("inputs %v, warnings %v", f.Inputs, f.Warnings)
	}
}

// A file of an editor in a workspace says where that is.
func TestWorkspaceOfAnEditorsFile(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}/a", "${workspaceFolderBasename}", "${userHome}", "${pathSeparator}${/}"], "envFile": "${workspaceFolder}/.env", "env": {"B": "own"}}}}`
	for path, works := range map[string]bool{
		".vscode/mcp.json": true, ".cursor/mcp.json": true, ".continue/mcpServers/a.json": true, "other/mcp.json": false, "../.cursor/mcp.json": false,
	} {
		path = filepath.Join(project, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{path: text, filepath.Join(project, ".env"): "A=1 # one\nexport B='two'\nC=\"$HOME ${NONE}\\n\"\n"} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := config.ReadMCP(path, env("HOME", home))
		if err != nil {
			t.Fatal(err)
		}
		if !works {
			if len(f.LeftOut) != 1 {
				t.Errorf("%s has a workspace: %v", path, f.MCPServers)
			}
			continue
		}
		want := withDefaults(servers.Config{
			Command: "x", Args: []string{project + "/a", "project", home, "//"},
			Env: secret.Map(map[string]string{"A": "1", "B": "own", "C": "$HOME ${NONE}\n"}),
		})
		if diff := cmp.Diff(want, f.MCPServers["a"]); diff != "" || f.LeftOut != nil {
			t.Errorf("%s (-want +got):\n%s\n%v", path, diff, f.LeftOut)
		}
	}
}

// Issue 17, D4: the files of Codex, Continue and Zed are read as they are.
func TestReadMCPOfOtherForms(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             map[string]servers.Config
		left             []string
		warnings         []string
	}{
		{"Codex", "config.toml", `model = "gpt-5"
[mcp_servers.files]
command = "npx"
args = ["-y", "server-files", '${HOME}']
env = { "A" = "$B", C = "c" }
env_vars = ["KEY", "NONE", { name = "OTHER", source = "local" }]
cwd = "/tmp"
startup_timeout_sec = 20
tool_timeout_sec = 1.5
enabled_tools = ["read"]
disabled_tools = ["write"]
default_tools_approval_mode = "prompt"
[mcp_servers.files.tools.read]
approval_mode = "approve"
[mcp_servers."a b"]
url = "https://a.test/mcp"
bearer_token_env_var = "KEY"
http_headers = { X-A = "a" }
env_http_headers = { X-B = "OTHER" }
required = true
[mcp_servers.off]
command = "off"
enabled = false
[mcp_servers.unset]
url = "https://b.test/mcp"
bearer_token_env_var = "NONE"
`, map[string]servers.Config{
			"files": {
				Command: "npx", Args: []string{"-y", "server-files", "${HOME}"}, Env: secret.Map(map[string]string{"A": "$B", "C": "c", "KEY": "v", "OTHER": "o"}), Dir: "/tmp",
				StartupTimeout: 20 * time.Second, Timeout: 1500 * time.Millisecond, Tools: servers.Filter{Include: []string{"read"}, Exclude: []string{"write"}},
			},
			"a-b": {URL: "https://a.test/mcp", Headers: secret.Map(map[string]string{"Authorization": "Bearer v", "X-A": "a", "X-B": "o"})},
			"off": {Command: "off", Disabled: true},
		}, []string{`PATH:26:24: the server "unset" is left out: mcpServers.unset.headers.Authorization: the environment variable NONE is not set. Set it, or give a default: ${NONE:-default}.`},
			[]string{`the server "a b" is called a-b here`, "keys of other clients are ignored: default_tools_approval_mode (files), tools (files), required (a-b)"}},
		{"Codex, in one line", "config.toml", `mcp_servers.a.command = "x"` + "\n" + `mcp_servers = 1`, nil, nil, nil},
		{"Continue", "config.yaml", `name: mine
mcpServers:
  - name: Files
    command: npx
    args: ["-y", server-files]
    env: {TOKEN: "${{ secrets.KEY }}"}
  - name: remote
    type: streamable-http
    url: https://a.test/mcp
    requestOptions: {headers: {X: "${{ secrets.KEY }}"}, timeout: 5}
    connectionTimeout: 5000
  - name: unset
    command: x
    env: {TOKEN: "${{ secrets.NONE }}"}
  - command: unnamed
`, map[string]servers.Config{
			"Files":    {Command: "npx", Args: []string{"-y", "server-files"}, Env: secret.Map(map[string]string{"TOKEN": "v"})},
			"remote":   {URL: "https://a.test/mcp", Transport: servers.StreamableHTTP, Headers: secret.Map(map[string]string{"X": "v"}), StartupTimeout: 5 * time.Second},
			"server-4": {Command: "unnamed"},
		}, []string{`PATH:14:18: the server "unset" is left out: mcpServers.unset.env.TOKEN: the environment variable NONE is not set. Set it, or give a default: ${NONE:-default}.`},
			[]string{"keys of other clients are ignored: name (Files, remote)"}},
		{"Continue, as it was", "config.json", `{"experimental": {"modelContextProtocolServers": [{"transport": {"type": "stdio", "command": "npx", "args": ["x"], "env": {"A": "b"}}}]}}`,
			map[string]servers.Config{"server-1": {Command: "npx", Args: []string{"x"}, Transport: servers.Stdio, Env: secret.Map(map[string]string{"A": "b"})}}, nil, nil},
		{"Zed", "settings.json", `{"context_servers": {
			// an older form, and the newer one
			"old": {"command": {"path": "x", "args": ["a"], "env": {"A": "b"}}, "settings": {}},
			"new": {"source": "custom", "enabled": true, "command": "y", "args": ["b"], "env": {}},
			"remote": {"url": "https://a.test/mcp", "headers": {"X": "y"}},
			"off": {"source": "extension", "enabled": false, "settings": {}},}}`,
			map[string]servers.Config{
				"old":    {Command: "x", Args: []string{"a"}, Env: secret.Map(map[string]string{"A": "b"})},
				"new":    {Command: "y", Args: []string{"b"}, Env: secret.Map(map[string]string{})},
				"remote": {URL: "https://a.test/mcp", Headers: secret.Map(map[string]string{"X": "y"})},
			}, []string{}, []string{"keys of other clients are ignored: settings (old), source (new)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.file, tt.text, 0o600)
			f, err := config.ReadMCP(path, env("KEY", "v", "OTHER", "o"))
			if tt.want == nil {
				if err == nil {
					t.Fatal("no error")
				}
				return
			}
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
			left, warnings := []string{}, []string{}
			for _, l := range f.LeftOut {
				left = append(left, strings.ReplaceAll(l.Reason.Error(), path, "PATH"))
			}
			for _, w := range f.Warnings {
				warnings = append(warnings, w.Message)
			}
			if diff := cmp.Diff(append([]string{}, tt.left...), left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{}, tt.warnings...), warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
