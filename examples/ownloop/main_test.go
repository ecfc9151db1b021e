package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/demo"
	"github.com/dragoman-mcp/dragoman/mcp"
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
