package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A condition of which a part cannot be sent must not hold for more values than the
// server's, nor exclude more.
func TestConditionsThatBecameWider(t *testing.T) {
	for _, c := range []struct{ schema, arguments string }{
		{`{"type":"object","properties":{"p":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"not":{"required":["a"]}},"then":{"required":["b"]}}}}`, `{"p":{"a":"x"}}`},
		{`{"type":"object","properties":{"p":{"if":{"additionalProperties":false},"then":{"required":["b"]}}}}`, `{"p":{"k":1}}`},
		{`{"type":"object","properties":{"p":{"not":{"additionalProperties":false}}}}`, `{"p":{"k":1}}`},
		{`{"type":"object","properties":{"p":{"type":"array","items":{},"contains":{"not":{"type":"string"}},"maxContains":1}}}`, `{"p":["a","b",1]}`},
	} {
		for _, name := range Names() {
			plan := planFor(t, name, c.schema)
			arguments, err := plan.Encode(json.RawMessage(c.arguments))
			narrows := false
			for _, change := range plan.Report() {
				narrows = narrows || change.Narrows
			}
			if narrows {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.schema, err)
			} else if wrong := schema.NewOpenAPIValidator(plan.Meaning()).Validate(arguments); len(wrong) > 0 {
				t.Errorf("%s: %s cannot be sent: %v\nsent %s", name, c.arguments, wrong, plan.Parameters())
			}
		}
	}
}
