package dialect

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// What a model can write and the server refuses is never called lossless.
func TestWhatIsWiderIsSaid(t *testing.T) {
	for _, c := range []struct{ dialects, schema, written string }{
		{"xai vllm sglang llamacpp lmstudio", `{"type":"object","properties":{"p":{"additionalProperties":false}}}`, `{"p":{"k":1}}`},
		{"openai gemini conservative vllm sglang xai", `{"type":"object","properties":{"p":{"type":"object","properties":{"a":false}}}}`, `{"p":{"a":1}}`},
		{"openai gemini conservative", `{"type":"object","properties":{"p":{"type":"object","properties":{"a":false,"b":{"type":"string"}}}}}`, `{"p":{"a":1}}`},
		{"sglang", `{"type":"object","required":["z"],"unevaluatedProperties":{"type":"integer"}}`, `{"z":"x"}`},
		{"groq", `{"type":"object","properties":{"a":{"type":"boolean"}},"minProperties":1}`, `{"a":null}`},
		{"groq", `{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}},"dependentRequired":{"a":["b"]}}`, `{"a":true,"b":null}`},
		{"groq", `{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"boolean"}},"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":true,"b":null}`},
	} {
		for name := range strings.FieldsSeq(c.dialects) {
			plan := planFor(t, name, c.schema)
			said := false
			for _, change := range plan.Report() {
				said = said || !change.Lossless && !change.Narrows
			}
			fits := len(schema.NewOpenAPIValidator(plan.Meaning()).Validate([]byte(c.written))) == 0
			if _, _, problem := plan.Decode(c.written, ""); problem == nil {
				t.Errorf("%s: %s: %s is taken", name, c.schema, c.written)
			}
			if fits && !said {
				t.Errorf("%s: %s: %s can be written, and nothing is said: %v\nsent %s", name, c.schema, c.written, plan.Report(), plan.Parameters())
			}
		}
	}
}

// A property that no value fits is lossless to leave out where the object takes no other.
func TestImpossiblePropertyOfAClosedObject(t *testing.T) {
	plan := planFor(t, "vllm", `{"type":"object","properties":{"p":{"type":"object","properties":{"a":false,"b":{"type":"string"}},"additionalProperties":false}}}`)
	for _, change := range plan.Report() {
		if !change.Lossless {
			t.Errorf("%+v", change)
		}
	}
}

// An engine that closes by silence must not read in unevaluatedProperties that an object is
// open, which additionalProperties, left to silence, has closed.
func TestUnevaluatedBesideAdditional(t *testing.T) {
	for _, name := range Names() {
		plan := planFor(t, name, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"unevaluatedItems":false}},"additionalProperties":false,"unevaluatedProperties":true}`)
		if sent := string(plan.Parameters()); strings.Contains(sent, "unevaluated") {
			t.Errorf("%s: %s", name, sent)
		}
	}
}
