package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// What the server takes fits what is sent, also where an alternative of a oneOf became
// wider, so that two of them fit.
func TestOneOfWithWiderAlternatives(t *testing.T) {
	const path = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`
	const line = `{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path","line"],"additionalProperties":false}`
	for _, c := range []struct{ schema, arguments string }{
		{`{"type":"object","properties":{"p":{"oneOf":[` + path + `,` + line + `]}},"required":["p"]}`, `{"p":{"path":"x","line":1}}`},
		{`{"type":"object","properties":{"p":{"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}},"required":["p"],"$defs":{"A":` + path + `,"B":` + line + `}}`, `{"p":{"path":"x","line":1}}`},
		{`{"type":"object","properties":{"p":{"oneOf":[{"type":"array","items":` + path + `},{"type":"array","items":` + line + `,"minItems":1}]}},"required":["p"]}`, `{"p":[{"path":"x","line":1}]}`},
	} {
		for _, name := range Names() {
			plan := planFor(t, name, c.schema)
			arguments, err := plan.Encode(json.RawMessage(c.arguments))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.schema, err)
			} else if wrong := schema.NewOpenAPIValidator(plan.Meaning()).Validate(arguments); len(wrong) > 0 {
				t.Errorf("%s: %s cannot be sent: %v\nsent %s", name, c.arguments, wrong, plan.Parameters())
			}
		}
	}
}
