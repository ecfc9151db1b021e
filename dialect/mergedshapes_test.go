package dialect

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// A schema that was merged from two has not always the subschemas of both.
func TestMergedShapes(t *testing.T) {
	for _, part := range []string{
		`{"type":["string","array"],"items":{"type":"integer"}}`,
		`{"anyOf":[{"type":"string"},{"type":"object","properties":{"k":{}}}]}`,
		`{"enum":["a"],"items":{"items":{}}}`,
		`false`,
	} {
		input := `{"type":"object","properties":{"o":{"allOf":[{"properties":{"p":{"type":"string","enum":["a","b"]}}},{"properties":{"p":` + part + `}}]}}}`
		for _, name := range Names() {
			d, err := For(name)
			if err != nil {
				t.Fatal(err)
			}
			plan, problem := d.Plan(dragoman.Tool{Name: "merged", InputSchema: json.RawMessage(input)})
			if problem != nil {
				t.Errorf("%s: %s: %v", name, part, problem)
				continue
			}
			if _, _, problem := plan.Decode(`{"o":{}}`, ""); problem != nil {
				t.Errorf("%s: %s: %v", name, part, problem)
			}
		}
	}
}
