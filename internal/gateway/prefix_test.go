package gateway

import (
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

// TestUnprefixed: tools have no prefix where the configuration names one server, whose
// label a second one would put before them; not where nothing is named, where labels are
// not what stands before names, or where there are two, one of which may be disabled now.
func TestUnprefixed(t *testing.T) {
	const one, two = "  a: {url: \"http://127.0.0.1:9/mcp\"}\n", "  b: {url: \"http://127.0.0.1:9/mcp\"}\n"
	for text, want := range map[string]bool{
		"mcpServers:\n" + one:                            true,
		"mcpServers:\n" + one + two:                      false,
		"names: {strategy: none}\nmcpServers:\n" + one:   false,
		"names: {strategy: label}\nmcpServers:\n" + one:  true,
		"names: {strategy: random}\nmcpServers:\n" + one: false,
		"mcpServers: {}\n":                               false,
		"listen: 127.0.0.1:0\n":                          false,
		"mcpServers:\n  a: {url: \"http://127.0.0.1:9/mcp\", disabled: true}\n" + two: false,
	} {
		file, err := config.Reader{Lookup: func(string) (string, bool) { return "", false }}.Parse("file", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Unprefixed(); got != want {
			t.Errorf("%s: %v", text, got)
		}
		g.Close()
	}
}
