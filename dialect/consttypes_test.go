package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A const beside a list of types goes to the alternative of its own type: in that of
// another, nothing could fit.
func TestConstBesideListOfTypes(t *testing.T) {
	for _, c := range []struct{ property, valid, wrong string }{
		{`{"type":["number","boolean"],"const":false}`, `false`, `true`},
		{`{"type":["number","boolean","null"],"const":null}`, `null`, `true`},
		{`{"type":["string","number"],"const":2}`, `2`, `"a"`},
		{`{"type":["object","array"],"const":[1]}`, `[1]`, `{"a":1}`},
	} {
		input := `{"type":"object","properties":{"p":` + c.property + `},"required":["p"]}`
		for _, name := range Names() {
			plan := planFor(t, name, input)
			if _, refused := schema.Admit(plan.Parameters()); refused != nil {
				t.Errorf("%s: %s: %v\nsent %s", name, c.property, refused, plan.Parameters())
			}
			sent := schema.NewOpenAPIValidator(plan.Meaning())
			if arguments, err := plan.Encode(json.RawMessage(`{"p":` + c.valid + `}`)); err != nil || len(sent.Validate(arguments)) > 0 {
				t.Errorf("%s: %s: %s cannot be sent: %v\nsent %s", name, c.property, c.valid, err, plan.Parameters())
			}
			lossless := true
			for _, change := range plan.Report() {
				lossless = lossless && (change.Lossless || change.Pass == "closeObjects")
			}
			if lossless && len(sent.Validate([]byte(`{"p":`+c.wrong+`}`))) == 0 {
				t.Errorf("%s: %s: %s is offered\nsent %s", name, c.property, c.wrong, plan.Parameters())
			}
		}
	}
}
