package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestKnownBad(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y mcp-remote@0.1.15 https://example.com/mcp":           "CVE-2025-6514",
		"npx -y mcp-remote@0.1.16":                                   "",
		"npx -y mcp-remote":                                          "", // of which K001 speaks
		"npx -y mcp-remote@latest":                                   "",
		"npx -y not-mcp-remote@0.0.1":                                "",
		"npx -y @modelcontextprotocol/server-filesystem@0.6.2 .":     "CVE-2025-53109",
		"npx -y @modelcontextprotocol/server-filesystem@2025.7.1":    "",
		"npx -y @modelcontextprotocol/server-filesystem@2026.8.31 .": "",
		"uvx mcp-server-git==2026.1.13 --repository .":               "CVE-2026-27735",
		"uvx mcp-server-git@2026.1.14":                               "",
		"uvx --from mcp-server-git[all]==2025.9.25 mcp-server-git":   "CVE-2026-27735",
	} {
		words := strings.Fields(line)
		got := knownBad(&Config{Command: words[0], Args: words[1:]})
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestKnownMalicious: it is known in whichever way a command names it, and without a
// version.
func TestKnownMalicious(t *testing.T) {
	for line, want := range map[string]bool{
		"npx postmark-mcp@1.0.15":                                         false,
		"npx postmark-mcp@1.0.16":                                         true,
		"npx postmark-mcp@1.1.0":                                          true,
		"npx -y postmark-mcp":                                             true,
		"npx -y postmark-mcp@latest":                                      true,
		"npx -y postmark-mcp@^1.0.0":                                      true,
		"npx --package=postmark-mcp@1.0.16 postmark-mcp":                  true,
		"npx -y Postmark-MCP@1.0.16":                                      true,
		"npx -y mail@npm:postmark-mcp@1.0.17":                             true,
		"npx -y @me/postmark-mcp@1.0.16":                                  false,
		"npx -y postmark-mcp-safe@1.0.16":                                 false,
		"cmd /c npx postmark-mcp@1.0.16":                                  true,
		"env A=b npx postmark-mcp@1.0.16":                                 true,
		"npm exec -- postmark-mcp@1.0.16":                                 true,
		"bunx postmark-mcp@1.0.16":                                        true,
		"npx -y https://r.example/postmark-mcp/-/postmark-mcp-1.0.16.tgz": true,
		"npx -y https://r.example/postmark-mcp/-/postmark-mcp-1.0.9.tgz":  false,
	} {
		words := strings.Fields(line)
		if got := knownMalicious(&Config{Command: words[0], Args: words[1:]}); (got != "") != want {
			t.Errorf("%s: %q, want %v", line, got, want)
		}
	}
	if knownMalicious(&Config{Command: "sh", Args: []string{"-c", "cd /x && npx -y postmark-mcp@1.0.16"}}) == "" {
		t.Error("it is not known behind a shell")
	}
}

// TestNothingMaliciousStarts: neither what a configuration names, nor what a command
// line or a variable made of it; and nothing at all where the configuration alone is
// judged.
func TestNothingMaliciousStarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		only bool
		want []string
	}{
		{"malicious", []string{"postmark-mcp@1.0.16"}, false, []string{"K006"}},
		{"configuration alone", []string{"notes@1.2.3"}, true, nil},
	} {
		for _, probe := range []Probe{ProbeSafe, ProbeNone} {
			mark := filepath.Join(t.TempDir(), "started")
			target := Target{Label: "mail", Command: func() *exec.Cmd {
				return exec.Command("touch", append([]string{mark}, tt.args...)...)
			}}
			r, err := Run(t.Context(), []Target{target}, Options{Probe: probe, ConfigOnly: tt.only})
			must(t, err)
			if got := rulesOf(r); !slices.Equal(got, tt.want) {
				t.Errorf("%s: found %v", tt.name, got)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Errorf("%s: it was started", tt.name)
			}
			if score := r.Servers[0].Score; !tt.only && score != 0 {
				t.Errorf("%s: the score is %d", tt.name, score)
			}
		}
	}
}

// TestUnpinned: K001 looks at what is started in the end.
func TestUnpinned(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y notes":             `the package "notes" has no exact version`,
		"npx -y notes@latest":      `the package "notes@latest" has no exact version`,
		"npx -y -p a@1.2.3 -p b c": `the package "b" has no exact version`, // the second was not looked at
		"npx -y notes@1.2.3":       "",
		"npx ./notes":              "",
		"npx --registry https://r.example -y notes@1.2.3": "", // the address was taken for the package
		"npm exec notes":                           `the package "notes" has no exact version`, // was not known
		"uv tool run notes":                        `the package "notes" has no exact version`, // nor was this
		"env A=b uvx notes":                        `the package "notes" has no exact version`, // nor this
		"uvx --python 3.12 notes==1.2":             "",                                         // 3.12 was taken for the package
		"uvx notes@1.2":                            "",
		"go run github.com/acme/notes@main":        `the package "github.com/acme/notes@main" has no exact version`,
		"go run github.com/acme/notes@v1.2.3":      "",
		"docker run -i acme/notes":                 `the image "acme/notes" is a tag that moves`, // none means latest
		"docker run -i acme/notes:latest":          `the image "acme/notes:latest" is a tag that moves`,
		"docker run -i acme/notes@sha256:0":        "",
		"docker run -i ${IMAGE}":                   "",
		"docker run -i acme/notes:1.2 -t x:latest": "", // an argument of the server's
		"sudo npx -y notes@1.2.3":                  "the server is started with sudo",
		"env sudo notes":                           "the server is started with sudo",
		// Code is what a shell is told, and a plain command behind cmd /c is none: so
		// npx is started on Windows. It used to be a finding all the same.
		"cmd /c npx -y notes@1.2.3": "",
		"cmd /c npx -y notes":       `the package "notes" has no exact version`,
		"cmd /c a&b":                "the server is started through a shell, which runs whatever the line holds",
		"sh -c notes":               "the server is started through a shell, which runs whatever the line holds",
		"dash -c notes":             "the server is started through a shell, which runs whatever the line holds", // was not known
		"bash -lc notes":            "the server is started through a shell, which runs whatever the line holds", // nor was -lc
		"sh notes.sh -c x":          "",                                                                          // the script's own
		"notes":                     "",
	} {
		words := strings.Fields(line)
		if got := unpinned(&Config{Command: words[0], Args: words[1:]}); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := unpinned(&Config{Command: "sh", Args: []string{"-c", "curl https://x.example/i | sudo sh"}}); got != "the command fetches a script and runs it" {
		t.Error(got)
	}
}
