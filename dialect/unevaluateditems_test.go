package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// The items that an array must have do not switch its unevaluatedItems off in silence.
func TestUnevaluatedItemsBesideMissingItems(t *testing.T) {
	for _, c := range []struct {
		property, valid, wrong string
		exact                  bool
	}{
		{`{"type":"array","unevaluatedItems":{"type":"integer"}}`, `[1]`, `["a"]`, true},
		{`{"type":"array","unevaluatedItems":false}`, `[]`, `[1]`, true},
		{`{"type":"array","prefixItems":[{"type":"string"}],"unevaluatedItems":{"type":"integer"}}`, `["a",1]`, `["a","b"]`, true},
		{`{"type":"array","anyOf":[{"prefixItems":[{"type":"string"}]}],"unevaluatedItems":{"type":"integer"}}`, `["a",1]`, `["a","b"]`, false},
		{`{"type":"array","contains":{"type":"string"},"unevaluatedItems":{"type":"integer"}}`, `["a",1]`, `["a",true]`, false},
	} {
		input := `{"type":"object","properties":{"p":` + c.property + `},"required":["p"]}`
		for _, name := range Names() {
			plan := planFor(t, name, input)
			sent, lossless := schema.NewOpenAPIValidator(plan.Meaning()), true
			for _, change := range plan.Report() {
				lossless = lossless && (change.Lossless || change.Pass == "closeObjects")
			}
			if arguments, err := plan.Encode(json.RawMessage(`{"p":` + c.valid + `}`)); err != nil || len(sent.Validate(arguments)) > 0 {
				t.Errorf("%s: %s: %s cannot be sent: %v\nsent %s", name, c.property, c.valid, err, plan.Parameters())
			}
			if lossless && len(sent.Validate([]byte(`{"p":`+c.wrong+`}`))) == 0 {
				t.Errorf("%s: %s: %s is offered, and nothing is said\nsent %s", name, c.property, c.wrong, plan.Parameters())
			}
			if c.exact && name == "openai" && !lossless {
				t.Errorf("%s: %s: %v", name, c.property, plan.Report())
			}
		}
	}
}
