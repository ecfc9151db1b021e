package lint_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/dragoman-mcp/dragoman/lint"
)

// A saved answer to tools/list, and a rule of one's own beside the built-in ones.
func Example() {
	saved := []byte(`{"tools": [{
		"name": "notes_update_note", "title": "Update a note",
		"description": "Replaces the text of one note by its title. Returns the text.",
		"inputSchema": {"type": "object", "properties": {"title": {"type": "string", "description": "Title of the note"}}, "required": ["title"], "additionalProperties": false},
		"outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
		"annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
	}]}`)
	own := lint.Rule{ID: "Z001", Severity: lint.Warning, Title: "not one of ours", Tool: func(t *lint.Tool, say lint.Say) {
		if !strings.HasPrefix(t.Name, "acme_") {
			say(lint.At{Pointer: "/name"}, "the name %q does not begin with acme_", t.Name)
		}
	}}
	report, err := lint.Run(context.Background(), []lint.Target{{Label: "notes", List: saved}}, lint.Options{Rules: append(lint.Rules(), own)})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		fmt.Println(f.Severity, f.Rule, f.Message)
	}
	// Output:
	// error A002 readOnlyHint is true, and the name and the description say "update"
	// warning Z001 the name "notes_update_note" does not begin with acme_
}
