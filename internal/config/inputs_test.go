package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// What an editor keeps, as it is.
const editorFile = `{
  // asked for at the first start
  "inputs": [
    {"type": "promptString", "id": "token", "description": "Token", "password": true},
    {"type": "pickString", "id": "region", "options": ["eu", {"label": "America", "value": "us"}], "default": "eu"},
    {"type": "command", "id": "branch", "command": "git.branch", "args": {"x": 1}},
  ],
  "servers": {
    "My Search": {"type": "http", "url": "https://${input:region}.example.com/mcp", "headers": {"Authorization": "Bearer ${input:token}"}, "gallery": "g"},
    "files": {"type": "stdio", "command": "x", "args": ["--token", "${input:token}"], "autoApprove": ["*"]},
    "off": {"command": "${input:branch}", "disabled": true},
  }
}`

func ask(t *testing.T, asked *[]string, answers map[string]string) func(config.Input) (string, error) {
	return func(in config.Input) (string, error) {
		t.Helper()
		*asked = append(*asked, in.ID)
		if answer, ok := answers[in.ID]; ok {
			return answer, nil
		}
		return "", errors.New("interrupted")
	}
}

func TestBlockWorksAsItIs(t *testing.T) {
	want := map[string]servers.Config{
		"My-Search": withDefaults(servers.Config{URL: "https://us.example.com/mcp", Transport: servers.StreamableHTTP, Headers: secret.Map(map[string]string{"Authorization": "Bearer canary"})}),
		"files":     withDefaults(servers.Config{Command: "x", Args: []string{"--token", "canary"}, Transport: servers.Stdio}),
		"off":       withDefaults(servers.Config{Command: "${input:branch}", Disabled: true}),
	}
	for name, read := range map[string]func(config.Reader) (*config.File, error){
		"config.yaml":  func(r config.Reader) (*config.File, error) { return r.Parse("config.yaml", []byte(editorFile)) },
		"--mcp-config": func(r config.Reader) (*config.File, error) { return r.ReadMCP(write(t, "mcp.json", editorFile, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			f, err := read(config.Reader{Lookup: env("DRAGOMAN_INPUT_REGION", "us"), Ask: ask(t, &asked, map[string]string{"token": "canary"})})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, f.MCPServers); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if !slices.Equal(asked, []string{"token"}) {
				t.Errorf("asked for %v", asked)
			}
			var warnings []string
			for _, w := range f.Warnings {
				warnings = append(warnings, w.Message)
				if strings.Contains(w.Error(), "\n") {
					t.Errorf("a warning of several lines:\n%v", w)
				}
			}
			if diff := cmp.Diff([]string{
				`the server "My Search" is called My-Search here`,
				"keys of other clients are ignored: command (inputs[2]), args (inputs[2]), gallery (My-Search), autoApprove (files)",
			}, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			text := string(config.Effective(f))
			if strings.Contains(text, "canary") || !strings.Contains(text, `url: "https://${input:region}.example.com/mcp"`) {
				t.Errorf("what was answered shows:\n%s", text)
			}
			again, err := config.Parse("again.yaml", []byte(text), env("DRAGOMAN_INPUT_REGION", "us", "DRAGOMAN_INPUT_TOKEN", "canary"))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if again.MCPServers["My-Search"].URL != "https://us.example.com/mcp" {
				t.Errorf("read back as %v", again.MCPServers)
			}
		})
	}
}

func TestInputsThatNobodyAnswers(t *testing.T) {
	const file = "inputs: [{id: api.key, description: Key}, {id: mode, type: pickString, options: [a, b], default: b}, {id: run, type: command}]\nmcpServers: {a: {command: x, args: [\"${input:"
	tests := []struct{ id, variable, value, want string }{
		{"api.key", "", "", "${input:api.key} asks a person for a value, and nobody is at a terminal\nSet DRAGOMAN_INPUT_API_KEY in the environment."},
		{"api.key", "DRAGOMAN_INPUT_API_KEY", "k", ""},
		{"mode", "", "", ""},
		{"mode", "DRAGOMAN_INPUT_MODE", "c", "DRAGOMAN_INPUT_MODE is none of the options of ${input:mode}\nThey are a, b."},
		{"run", "", "", "${input:run} is answered by a command of an editor\nSet DRAGOMAN_INPUT_RUN in the environment."},
		{"run", "DRAGOMAN_INPUT_RUN", "r", ""},
		{"other", "", "", "${input:other} asks a person for a value, and nobody is at a terminal\nSet DRAGOMAN_INPUT_OTHER in the environment."},
		{"a:-b", "", "", "${input:a:-b} is not a reference to a variable\nWrite $$ for a plain $."},
	}
	for _, tt := range tests {
		_, err := config.Parse("test.yaml", []byte(file+tt.id+"}\"]}}\n"), env(tt.variable, tt.value))
		got := ""
		if e, ok := errors.AsType[*config.Error](err); ok {
			got = strings.TrimPrefix(e.Message, "mcpServers.a.args[0]: ") + "\n" + e.Hint
		}
		if got != tt.want {
			t.Errorf("%s with %s=%s: got %q, want %q", tt.id, tt.variable, tt.value, got, tt.want)
		}
	}
}

func TestAskingIsNotInVain(t *testing.T) {
	var asked []string
	r := config.Reader{Lookup: env(), Ask: ask(t, &asked, nil)}
	if _, err := r.Parse("test.yaml", []byte("log: {level: loud}\nmcpServers: {a: {command: \"${input:a}\"}}\n")); err == nil || len(asked) > 0 {
		t.Errorf("asked for %v although the file is wrong: %v", asked, err)
	}
	_, err := r.Parse("test.yaml", []byte("mcpServers: {a: {command: \"${input:a}\"}, b: {command: \"${input:b}\"}}\n"))
	if err == nil || !strings.Contains(err.Error(), "${input:a} was not answered: interrupted") || !slices.Equal(asked, []string{"a"}) {
		t.Errorf("asked for %v: %v", asked, err)
	}
}

func TestWrongInputs(t *testing.T) {
	for text, want := range map[string]string{
		"inputs: [{id: a b}]":                                                "inputs[0].id: an input needs an id",
		"inputs: [{id: a}, {id: a}]":                                         `inputs: two inputs have the id "a"`,
		"inputs: [{id: a-b}, {id: a.b}]":                                     "would both be answered by DRAGOMAN_INPUT_A_B",
		"inputs: [{id: a, type: pickString}]":                                "nothing to choose from",
		"inputs: [{id: a, type: pickString, options: [x], default: y}]":      `"y" is none of the options`,
		"inputs: {a: b}":                                                     "inputs must be a list",
		"inputs: [{id: a, pasword: true}]":                                   "Did you mean password?",
		"inputs: [{id: a, type: promptString, options: [{value: [1]}]}]":     "must be text",
		"servers: [a]":                                                       "mcpServers must be a mapping",
		"mcp: {servers: {a: {command: x}}, inputs: []}\nmcpServers: {b: {}}": `"mcpServers" stands twice`,
	} {
		if _, err := config.Parse("test.yaml", []byte(text), env()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestNamesServers(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                  false,
		"log: {level: info}":                false,
		"mcpServers: {}":                    true,
		"mcpServers:\n#  a: {command: x}\n": true,
		`{"servers": {}}`:                   true,
		"mcpServers: {a: {command: x}}":     true,
	} {
		f := parse(t, text)
		if f.NamesServers() != want {
			t.Errorf("%q: got %v", text, !want)
		}
		if again := parse(t, string(config.Effective(f))); again.NamesServers() != want {
			t.Errorf("%q: read back as %v", text, !want)
		}
	}
}

func TestAdvise(t *testing.T) {
	tests := []struct {
		command string
		args    []string
		want    string
	}{
		{"npx -y some-server", nil, `Did you mean command: npx with args: ["-y", "some-server"]?`},
		{"/usr/bin/npx -y x", nil, `Did you mean command: /usr/bin/npx with args: ["-y", "x"]?`},
		{`C:\Program Files\nodejs\node.exe`, []string{"x"}, ""},
		{"/opt/my tools/server", nil, ""},
		{"npx", []string{"-y", "@modelcontextprotocol/server-filesytem@1.2.3", "."}, "Did you mean @modelcontextprotocol/server-filesystem?"},
		{"npx", []string{"-y", "@modelcontextprotocol/server-filesystem@latest", "."}, ""},
		{"npx", []string{"--package=@playwrigth/mcp", "mcp"}, "Did you mean @playwright/mcp?"},
		{"npx.cmd", []string{"-y", "mcp-remot"}, "Did you mean mcp-remote?"},
		{"uvx", []string{"--from", "mcp-server-gitt==2", "mcp-server-git"}, "Did you mean mcp-server-git?"},
		{"uv", []string{"tool", "run", "mcp_server-fetch"}, "Did you mean mcp-server-fetch?"},
		{"uvx", []string{"mcp-server-of-my-own"}, ""},
		{"node", []string{"mcp-remot"}, ""},
		{"C:\nodejs\npx.cmd", nil, `Between double quotes \ begins an escape; write it twice: "C:\\folder".`}, // "C:\nodejs\npx.cmd"
		{"C:\u2029rogram Files\node.exe", nil, `Between double quotes \ begins an escape; write it twice: "C:\\folder".`},
		{"node", []string{"server.js", "D:\tools"}, `Between double quotes \ begins an escape; write it twice: "C:\\folder".`},
		{`C:\nodejs\npx.cmd`, []string{`D:\tools`, "a:b\nc"}, ""},
	}
	for _, tt := range tests {
		var got string
		for _, a := range config.Advise(servers.Config{Command: tt.command, Args: tt.args}) {
			got += a.Hint
		}
		if got != tt.want {
			t.Errorf("%s %q: got %q, want %q", tt.command, tt.args, got, tt.want)
		}
	}
	f := parse(t, "mcpServers:\n  a: {command: npx -y x}\n  b: {command: npx -y x, disabled: true}\n")
	want := `test.yaml:2:16: mcpServers.a.command: this is the name of one program, spaces included
  2 |   a: {command: npx -y x}
    |                ^
  Did you mean command: npx with args: ["-y", "x"]?`
	if diff := cmp.Diff(want, f.Warnings.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
