package servers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		want   string
	}{
		{"nothing", Config{}, "a server needs a command or a url"},
		{"both", Config{Command: "x", URL: "http://a"}, "url: a server has a command or a url, not both"},
		{"command", Config{Command: "npx", Args: []string{"-y"}, Env: map[string]string{"A": "b"}, Dir: "/tmp"}, ""},
		{"command over sse", Config{Command: "npx", Transport: SSE}, "transport: a command speaks stdio, not sse"},
		{"command with headers", Config{Command: "npx", Headers: map[string]string{"A": "b"}}, "headers: headers are for servers with a url"},
		{"NUL in args", Config{Command: "npx", Args: []string{"a\x00b"}}, "args: a NUL character cannot be passed to a program"},
		{"bad variable", Config{Command: "npx", Env: map[string]string{"A=B": "c"}}, `env: "A=B" cannot be an environment variable`},
		{"url", Config{URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer x"}}, ""},
		{"url over stdio", Config{URL: "https://example.com", Transport: Stdio}, "transport: a url speaks streamable-http or sse, not stdio"},
		{"url with args", Config{URL: "https://example.com", Args: []string{"a"}}, "args: this is for servers with a command"},
		{"url with env", Config{URL: "https://example.com", Env: map[string]string{"A": "b"}}, "env: this is for servers with a command"},
		{"url with cwd", Config{URL: "https://example.com", Dir: "/tmp"}, "cwd: this is for servers with a command"},
		{"not a url", Config{URL: "http://a b/secret"}, "url: not a valid URL"},
		{"other scheme", Config{URL: "file:///etc/passwd"}, "url: a URL here begins with http:// or https://"},
		{"no scheme", Config{URL: "example.com/mcp"}, "url: a URL here begins with http:// or https://"},
		{"no host", Config{URL: "http:///mcp"}, "url: the URL has no host"},
		{"bad header", Config{URL: "http://a", Headers: map[string]string{"A B": "c"}}, `headers: "A B" cannot be the name of a header`},
		{"header injection", Config{URL: "http://a", Headers: map[string]string{"A": "secret\r\nB: d"}}, "headers: the value of A has a line break or a control character"},
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
	c := Config{URL: "https://user:canary@example.com/canary?key=canary", Headers: map[string]string{"Authorization": "Bearer canary"}}
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
