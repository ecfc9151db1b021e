package servers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		want   string
	}{
		{"nothing", Config{}, "a server needs a command or a url"},
		{"both", Config{Command: "x", URL: "http://a"}, "url: a server has a command or a url, not both"},
		{"command", Config{Command: "npx", Args: []string{"-y"}, Env: secret.Map(map[string]string{"A": "b"}), Dir: "/tmp"}, ""},
		{"command over sse", Config{Command: "npx", Transport: SSE}, "transport: a command speaks stdio, not sse"},
		{"command with headers", Config{Command: "npx", Headers: secret.Map(map[string]string{"A": "b"})}, "headers: headers are for servers with a url"},
		{"NUL in args", Config{Command: "npx", Args: []string{"a\x00b"}}, "args: a NUL character cannot be passed to a program"},
		{"bad variable", Config{Command: "npx", Env: secret.Map(map[string]string{"A=B": "c"})}, `env: "A=B" cannot be an environment variable`},
		{"url", Config{URL: "https://example.com/mcp", Headers: secret.Map(map[string]string{"Authorization": "Bearer x"})}, ""},
		{"url over stdio", Config{URL: "https://example.com", Transport: Stdio}, "transport: a url speaks streamable-http or sse, not stdio"},
		{"url with args", Config{URL: "https://example.com", Args: []string{"a"}}, "args: this is for servers with a command"},
		{"url with env", Config{URL: "https://example.com", Env: secret.Map(map[string]string{"A": "b"})}, "env: this is for servers with a command"},
		{"url with sandbox", Config{URL: "https://example.com", Sandbox: Sandbox{Enforce: Strict}}, "sandbox: this is for servers with a command"},
		{"url with cwd", Config{URL: "https://example.com", Dir: "/tmp"}, "cwd: this is for servers with a command"},
		{"not a url", Config{URL: "http://a b/secret"}, "url: not a valid URL"},
		{"tokens of callers", Config{URL: "https://a.example", Share: ShareSession, OAuth: credential.Config{Whose: credential.WhoseCaller}}, ""},
		{"tokens of callers, shared", Config{URL: "https://a.example", OAuth: credential.Config{Whose: credential.WhoseCaller}}, "share: with tokens of each caller's own (oauth) each has a connection of its own: write share: caller, or session"},
		{"tokens of callers and one for all", Config{URL: "https://a.example", Share: ShareCaller, Headers: secret.Map(map[string]string{"authorization": "Bearer x"}), OAuth: credential.Config{Whose: credential.WhoseCaller}}, "headers: with an Authorization here all callers would be one: take it out, or oauth"},
		{"exchange, shared", Config{URL: "https://a.example", Share: ShareAll, OAuth: credential.Config{Grant: credential.TokenExchangeGrant}}, "share: with tokens of each caller's own (oauth) each has a connection of its own: write share: caller, or session"},
		{"login at a command", Config{Command: "npx", OAuth: credential.Config{Scopes: []string{"x"}}}, "oauth: logins are for servers with a url"},
		{"other scheme", Config{URL: "file:///etc/passwd"}, "url: a URL here begins with http:// or https://"},
		{"no scheme", Config{URL: "example.com/mcp"}, "url: a URL here begins with http:// or https://"},
		{"no host", Config{URL: "http:///mcp"}, "url: the URL has no host"},
		{"bad header", Config{URL: "http://a", Headers: secret.Map(map[string]string{"A B": "c"})}, `headers: "A B" cannot be the name of a header`},
		{"header injection", Config{URL: "http://a", Headers: secret.Map(map[string]string{"A": "secret\r\nB: d"})}, "headers: the value of A has a line break or a control character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.config.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestCheckLabel(t *testing.T) {
	for _, good := range []string{"a", "files", "GitHub-2", "a.b_c", strings.Repeat("x", MaxLabel), "7zip"} {
		if err := CheckLabel(good); err != nil {
			t.Errorf("CheckLabel(%q) = %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"":                      "a server label cannot be empty",
		"a__b":                  `the server label "a__b" has two underscores in a row, which separate a label from a tool name`,
		"a_":                    `the server label "a_" ends with an underscore: with the two that follow it, nobody could tell it from a shorter label`,
		"-a":                    `the server label "-a" is not allowed: a label has the letters a-z and A-Z, digits, and after the first character also _ . -`,
		"my server":             `the server label "my server" is not allowed: a label has the letters a-z and A-Z, digits, and after the first character also _ . -`,
		strings.Repeat("x", 33): `the server label "` + strings.Repeat("x", 33) + `" has 33 characters; 32 are allowed`,
	} {
		if err := CheckLabel(bad); err == nil || err.Error() != want {
			t.Errorf("CheckLabel(%q) = %v, want %s", bad, err, want)
		}
	}
}

func TestEffects(t *testing.T) {
	e := Effects{ReadOnly: []string{"get_*", "list_*"}, Idempotent: []string{"set_*", "get_or_create_*"}}
	for name, want := range map[string]dragoman.Effect{
		"get_file":         dragoman.ReadOnly,
		"set_file":         dragoman.Idempotent,
		"get_or_create_it": dragoman.Idempotent,
		"delete_file":      dragoman.MayChange,
	} {
		if got := e.Of(name); got != want {
			t.Errorf("Of(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestFilter(t *testing.T) {
	tests := []struct {
		filter Filter
		name   string
		want   bool
	}{
		{Filter{}, "a", true},
		{Filter{Include: []string{"get_*"}}, "get_a", true},
		{Filter{Include: []string{"get_*"}}, "set_a", false},
		{Filter{Exclude: []string{"set_*"}}, "set_a", false},
		{Filter{Include: []string{"*"}, Exclude: []string{"a"}}, "a", false},
	}
	for _, tt := range tests {
		if got := tt.filter.Allows(tt.name); got != tt.want {
			t.Errorf("%+v.Allows(%q) = %v", tt.filter, tt.name, got)
		}
	}
}

func TestConfigPrintsNoSecret(t *testing.T) {
	c := Config{URL: "https://user:canary@example.com/canary?key=canary", Headers: secret.Map(map[string]string{"Authorization": "Bearer canary"})}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, c); strings.Contains(got, "canary") {
			t.Errorf("%s shows a secret: %s", format, got)
		}
	}
}

func TestSetDefaultsKeepsWhatIsSet(t *testing.T) {
	c := Config{Timeout: 1, Transport: SSE}
	c.SetDefaults()
	c.Complete()
	if c.Timeout != 1 || c.Transport != SSE || c.StartupTimeout != DefaultStartupTimeout || c.MaxInFlight != DefaultMaxInFlight {
		t.Errorf("got transport %s, timeouts %v %v, in flight %d", c.Transport, c.Timeout, c.StartupTimeout, c.MaxInFlight)
	}
}

// What may have to be downloaded first has more time for its start.
func TestDownloads(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		want    bool
	}{
		{"npx", []string{"-y", "server"}, true},
		{"/usr/local/bin/npx", nil, true},
		{"npx.cmd", nil, true},
		{"uvx", nil, true},
		{"docker", []string{"run", "image"}, true},
		{"pnpm", []string{"dlx", "server"}, true},
		{"pnpm", []string{"start"}, false},
		{"uv", []string{"tool", "run", "server"}, true},
		{"node", []string{"server.js"}, false},
		{"", nil, false},
	} {
		c := Config{Command: tt.command, Args: tt.args}
		if got := c.Downloads(); got != tt.want {
			t.Errorf("%s %q: %v", tt.command, tt.args, got)
		}
		c.Complete()
		if long := c.StartupTimeout == DownloadTimeout; long != tt.want {
			t.Errorf("%s %q: %s", tt.command, tt.args, c.StartupTimeout)
		}
		own := Config{Command: tt.command, Args: tt.args, StartupTimeout: time.Second}
		if own.Complete(); own.StartupTimeout != time.Second {
			t.Errorf("%s: its own time is gone", tt.command)
		}
	}
}

// TestOrigin: a server stays the same one with another version, other options, other
// secrets.
func TestOrigin(t *testing.T) {
	for _, tt := range []struct {
		config Config
		want   string
	}{
		{Config{Command: "npx", Args: []string{"-y", "@acme/server-notes@1.2.3", "./docs"}}, "npx @acme/server-notes"},
		{Config{Command: "/usr/bin/npx", Args: []string{"@acme/server-notes"}}, "npx @acme/server-notes"},
		{Config{Command: "uvx", Args: []string{"server-notes==1.2", "--key", "secret"}}, "uvx server-notes"},
		{Config{Command: "uv", Args: []string{"tool", "run", "server-notes@1.2"}}, "uv server-notes"},
		{Config{Command: "node", Args: []string{"--no-warnings", "dist/index.js"}}, "node dist/index.js"},
		{Config{Command: "docker", Args: []string{"run", "-e", "TOKEN=secret", "acme/notes:1.2"}}, "docker acme/notes"},
		{Config{Command: "cmd", Args: []string{"/c", "npx", "-y", "@acme/server-notes@1.2.3"}}, "npx @acme/server-notes"},
		{Config{Command: "/opt/notes", Args: []string{"secret"}}, "notes"},
		{Config{Command: "npx"}, "npx"},
		{Config{URL: "https://user:secret@notes.example:8443/mcp?key=secret#x"}, "https://notes.example:8443/mcp"},
	} {
		if got := tt.config.identity(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.config, got, tt.want)
		}
	}
}
