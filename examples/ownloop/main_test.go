package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/demo"
	"github.com/dragoman-mcp/dragoman/mcp"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

func TestRun(t *testing.T) {
	d := demo.New(demo.Options{})
	defer d.Close()
	for written, want := range map[string]string{
		`{"a": "1", "b": 2.5,}`: `\"sum\":3.5`,           // repaired
		`{"a": 1}`:              `invalid_arguments`,     // told to the model
		`{"a": 1, "b":`:         `\"error\":\"truncated`, // never completed
	} {
		var out bytes.Buffer
		r, w := d.Pipe(t.Context())
		if err := run(t.Context(), &out, &mcp.Pipe{Reader: r, Writer: w}, "gemini", "calculate_sum", written); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"name":"calculate_sum"`) || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", written, out.String())
		}
	}
}

// TestMessageIsJSON has a result with a character that Go spells otherwise than JSON.
func TestMessageIsJSON(t *testing.T) {
	s := toolkit.NewServer(toolkit.Options{Service: "icons"})
	defer s.Close()
	toolkit.Add(s, toolkit.Tool{
		Name: "icons_get_one", Description: "An icon of a font.",
		Hints: toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
	}, func(context.Context, struct{}) (toolkit.Text, error) { return "\U000f0219", nil })
	var out bytes.Buffer
	r, w := s.Pipe(t.Context())
	if err := run(t.Context(), &out, &mcp.Pipe{Reader: r, Writer: w}, "openai", "icons_get_one", `{}`); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out.Bytes()) {
		if !json.Valid(line) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
