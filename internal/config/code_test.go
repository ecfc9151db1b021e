package config_test

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

// Code in arguments is the business of whoever writes our configuration, and of
// nobody else.
func TestCodeArguments(t *testing.T) {
	lookup := env("C", "-c", "SHELL", "/bin/sh", "YES", "--yes", "NODE", "node", "IMPORT", "data:text/javascript,x", "DRAGOMAN_INPUT_FLAG", "-e", "TEXT", "-c", "HOME", "/root")
	for _, tt := range []struct{ server, want string }{
		{`{command: sh, args: [-c, "x $HOME"]}`, ""},
		{`{command: sh, args: [-c, "${TEXT}"]}`, ""},
		{`{command: "${HOME}/bin/node", args: ["--eval=${TEXT}"]}`, ""},
		{`{command: npx, args: [-y, "${TEXT}"], disabled: true}`, ""},
		{`{command: npx, args: [-y, server, "${TEXT}"]}`, ""},
		{`{command: npx, args: [-y, "${TEXT}", x]}`, "mcpServers.a.args[1]: this argument makes the command run code from its arguments, and that is so because of what a variable holds"},
		{`{command: npx, args: ["${YES}", "${TEXT}", x]}`, "mcpServers.a.args[1]: "},
		{`{command: npx, args: ["${YES}", -c, x]}`, "mcpServers.a.args[1]: "}, // written, -c is the server's
		{`{command: npx, args: ["${SERVER:---yes}", -c, x]}`, "mcpServers.a.args[1]: "},
		{`{command: npx, args: [server, "${C}"]}`, ""},                     // the server's, either way
		{`{command: "${SHELL}", args: [-c, x]}`, "mcpServers.a.args[0]: "}, // written, it would be nobody's
		{`{command: "${NODE}", args: ["${input:flag}", x]}`, "mcpServers.a.args[0]: "},
		{`{command: node, args: ["${input:flag}", x]}`, "mcpServers.a.args[0]: "},
		{`{command: node, args: [--import, "${IMPORT}", x]}`, "mcpServers.a.args[0]: "},
		{`{command: env, args: ["${SHELL}", "${C}", sh, -c, x]}`, "mcpServers.a.args[1]: "},
	} {
		_, err := config.Parse("test.yaml", []byte("mcpServers:\n  a: "+tt.server+"\n"), lookup)
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "without ${…}"):
			t.Errorf("%s: got %v, want %q", tt.server, err, tt.want)
		}
	}
	for _, tt := range []struct{ server, want string }{
		{`{"command": "npx", "args": ["-y", "server", "-c", "x"]}`, ""},
		{`{"command": "cmd", "args": ["/c", "npx", "-y", "server"]}`, ""},
		{`{"command": "npx", "args": ["-c", "x"], "disabled": true}`, ""},
		{`{"command": "npx", "args": ["-c", "x"]}`, "mcpServers.a.args[0]: this argument makes the command run code from its arguments, and the file is another client's"},
		{`{"command": ["bash", "-lc", "x"]}`, "mcpServers.a.args[0]: "},
		{`{"command": "uvx", "args": ["--from", "a", "sh", "-c", "x"]}`, "mcpServers.a.args[3]: "},
		{`{"command": "x", "env": {"NODE_OPTIONS": "--max-old-space-size=4096", "ENV": "production"}}`, ""},
		{`{"command": "x", "env": {"BASH_ENV": "$(x)"}, "disabled": true}`, ""},
		{`{"command": "bash", "args": ["a.sh"], "env": {"K": "v", "BASH_ENV": "$(x)"}}`, "mcpServers.a.env.BASH_ENV: this variable makes programs run code from its value, and the file is another client's"},
	} {
		f, err := config.ReadMCP(write(t, "mcp.json", `{"mcpServers": {"a": `+tt.server+`}}`, 0o600), lookup)
		if err != nil {
			t.Errorf("%s: %v", tt.server, err)
			continue
		}
		switch _, there := f.MCPServers["a"]; {
		case tt.want == "" && there && f.LeftOut == nil:
		case tt.want == "" || there || len(f.LeftOut) != 1 || !strings.Contains(f.LeftOut[0].Reason.Error(), tt.want) || !strings.Contains(f.LeftOut[0].Reason.Error(), "write this server into the configuration"):
			t.Errorf("%s: got %v, left out %v, want %q", tt.server, f.MCPServers, f.LeftOut, tt.want)
		}
	}
}
