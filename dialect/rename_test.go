package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A property that is sent by another name has that name wherever the schema that is
// sent speaks of it.
func TestRenamedEverywhere(t *testing.T) {
	const properties = `"properties":{"a b":{"type":"string"},"größe":{"type":"string"},"c":{"type":"string"}}`
	for _, c := range []struct{ schema, arguments string }{
		{`{"type":"object",` + properties + `,"required":["a b"],"anyOf":[{"required":["größe"]},{"required":["c"]}]}`, `{"a b":"1","größe":"2"}`},
		{`{"type":"object",` + properties + `,"oneOf":[{"required":["a b"]},{"allOf":[{"required":["größe"]}],"not":{"required":["a b"]}}]}`, `{"größe":"2"}`},
		{`{"type":"object",` + properties + `,"dependentRequired":{"a b":["c"],"c":["a b"]}}`, `{"a b":"1","c":"2"}`},
		{`{"type":"object",` + properties + `,"dependentSchemas":{"größe":{"required":["a b"]}}}`, `{"a b":"1","größe":"2"}`},
		{`{"type":"object","properties":{"a b":{"type":"string"},"a_b":{"type":"string"}},"anyOf":[{"properties":{"a b":{"minLength":1}},"required":["a b"]},{"required":["a_b"]}]}`, `{"a b":"1"}`},
		{`{"type":"object","properties":{"a b":{"type":"string"},"a_b":{"type":"string"}},"dependentSchemas":{"a b":{"properties":{"a b":{"minLength":1}},"required":["a b"]}}}`, `{"a b":"1"}`},
		{`{"type":"object","properties":{"a b":{"type":"string"},"a_b":{"type":"string"}},"oneOf":[{"properties":{"a b":{"minLength":1},"c d":{"type":"string"}},"required":["a b","c d"]},{"required":["a_b"]}]}`, `{"a b":"1","c d":"2"}`},
		{`{"type":"object",` + properties + `,"propertyNames":{"pattern":"^[^_]*$"}}`, `{"a b":"1","größe":"2"}`},
	} {
		for _, name := range Names() {
			plan := planFor(t, name, `{"type":"object","properties":{"o":`+c.schema+`}}`)
			sent, err := plan.Encode(json.RawMessage(`{"o":` + c.arguments + `}`))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.schema, err)
				continue
			}
			if wrong := schema.NewOpenAPIValidator(plan.Meaning()).Validate(sent); len(wrong) > 0 {
				t.Errorf("%s: %s: %s cannot be sent: %v\nsent %s", name, c.schema, sent, wrong, plan.Parameters())
			}
			back, _, problem := plan.Decode(string(sent), "")
			if problem != nil || string(back) != `{"o":`+c.arguments+`}` {
				t.Errorf("%s: %s: %s came back as %s, %v", name, c.schema, sent, back, problem)
			}
		}
	}
}
