package dialect

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// TestErrorPathsAreThere writes maps in all forms with something wrong in them: what
// the model is told about is a place in what it wrote, or a member missing there.
func TestErrorPathsAreThere(t *testing.T) {
	for _, p := range []string{
		`{"type":"object","additionalProperties":{"type":"integer"}}`,
		`{"$ref":"#/$defs/map"}`,
		`{"anyOf":[{"type":"object","additionalProperties":{"type":"integer"}},{"type":"null"}]}`,
		`{"type":["object","null"],"additionalProperties":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}`,
		`{"type":"array","items":{"$ref":"#/$defs/map"}}`,
		`{"type":"object","properties":{"deep":{"$ref":"#/$defs/map"}},"required":["deep"],"additionalProperties":false}`,
	} {
		for _, v := range []string{
			`{"a":{}}`, `{"a":[1]}`, `[{"key":"a","value":{}}]`, `[{"key":"a","value":[{}]}]`, `["a",1]`, `[["a",1]]`, `[{"a":{}}]`, `[[{"key":"a","value":{}}]]`,
			`"[{\"key\":\"a\",\"value\":{}}]"`, `{"deep":[{"key":"a","value":{}}]}`, `{"deep":{"a":{}}}`, `{"deep":"{\"a\":{}}"}`, `"{\"a\":{}}"`, `7`,
			`[{"key":"a"}]`, `[{"key":"a","value":1,"more":2}]`, `[{"key":"a","value":1},{"key":"b","value":{}}]`,
		} {
			for _, name := range Names() {
				plan := planFor(t, name, `{"type":"object","properties":{"m":`+p+`},"$defs":{"map":{"type":"object","additionalProperties":{"type":"integer"}}}}`)
				written, err := schema.Parse([]byte(`{"m":` + v + `}`))
				if err != nil {
					t.Fatal(err)
				}
				_, _, problem := plan.Decode(string(written.Bytes()), "")
				if problem == nil {
					continue
				}
				for _, f := range problem.Fields {
					at := f.Path
					if f.Missing {
						at = at[:strings.LastIndexByte(at, '/')]
					}
					if _, ok := placeOf(written, at); !ok {
						t.Errorf("%s: %s of %s: %q is not there: %s", name, written.Bytes(), p, f.Path, problem.Message)
					}
				}
			}
		}
	}
}
