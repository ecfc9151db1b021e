package telemetry

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// Of what is clipped no part of a secret is told, nor half a character.
func TestContentIsHiddenBeforeItIsClipped(t *testing.T) {
	const password = "correct-horse-battery-staple"
	config := Config{Endpoint: "http://127.0.0.1:9", Metrics: Metrics{Off: true}, Traces: Traces{Sample: 100, Content: true}}
	m, err := New(config, Options{Hide: secret.NewMask(secret.New(password)).Hide})
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{password, "日本語日本語日本語"} {
		for before := range len(end) + 1 {
			_, span := observe.Begin(observe.With(t.Context(), m), observe.Tool)
			span.Content(observe.ToolResult, []byte(strings.Repeat("x", maxContent-before)+end))
			told := span.Value(observe.ToolResult)
			if said := strings.TrimLeft(told, "x"); strings.Contains(said, password[:1]) || !utf8.ValidString(told) || len(told) > maxContent+len("…") {
				t.Errorf("%d bytes before its end %q is told as %q", before, end, said)
			}
		}
	}
}
