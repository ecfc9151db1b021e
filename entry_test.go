package dragoman_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

func TestReadTool(t *testing.T) {
	const entry = `{"name":"get","title":"Get it","description":"Gets.","inputSchema":{ "type":"object" },"outputSchema":{"type":"object"},` +
		`"annotations":{"title":"Other","readOnlyHint":true,"destructiveHint":false,"openWorldHint":"yes"},"_meta":{"n":9007199254740993}}`
	tool := dragoman.ReadTool("s", []byte(entry))
	if tool.Quarantined != nil || tool.Name != "get" || tool.Original != "get" || tool.Title != "Get it" || tool.Description != "Gets." ||
		string(tool.InputSchema) != `{ "type":"object" }` || string(tool.OutputSchema) != `{"type":"object"}` || string(tool.Definition) != entry ||
		tool.Pin != dragoman.Pin("s", "get", []byte(entry)) {
		t.Errorf("ReadTool = %+v", tool)
	}
	if h := tool.Hints; h.ReadOnly == nil || !*h.ReadOnly || h.Destructive == nil || *h.Destructive || h.Idempotent != nil || h.OpenWorld != nil {
		t.Errorf("hints %+v", h)
	}
	if tool := dragoman.ReadTool("", []byte(`{"name":"x","annotations":{"title":"T"},"inputSchema":null}`)); tool.Title != "T" || tool.InputSchema != nil || string(tool.Input()) != `{"type":"object"}` {
		t.Errorf("ReadTool = %+v", tool)
	}
	for entry, reason := range map[string]string{
		`[]`:                            "not a JSON object",
		`{"name":"x"`:                   "not a JSON object",
		`{"inputSchema":{}}`:            "no name",
		`{"name":7}`:                    "no name",
		`{"name":"x","name":"y"}`:       "not valid JSON",
		`{"name":"x","inputSchema":[]}`: "not an object",
	} {
		if tool := dragoman.ReadTool("s", []byte(entry)); tool.Quarantined == nil || !strings.Contains(tool.Quarantined.Message, reason) {
			t.Errorf("%s: %v", entry, tool.Quarantined)
		}
	}
}

func ExampleReadTool() {
	tool := dragoman.ReadTool("files", []byte(`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`))
	fmt.Println(tool.Original, tool.Writes(), tool.Quarantined)
	// Output: read false <nil>
}
