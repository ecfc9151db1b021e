package lint

import (
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
		"npx postmark-mcp@1.0.15":                                    "",
		"npx postmark-mcp@1.0.16":                                    "postmark-mcp 1.0.16",
		"npx postmark-mcp@1.1.0":                                     "postmark-mcp 1.0.16",
	} {
		words := strings.Fields(line)
		got := knownBad(&Config{Command: words[0], Args: words[1:]})
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
