package dialect

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// Members that a schema declares in a keyword which a dialect does not take can be sent
// in every dialect: no form that closes objects keeps them out.
func TestMembersOfWhatIsLeftOutCanBeSent(t *testing.T) {
	const mode = `"properties":{"mode":{"type":"string","enum":["a","b"]}},"required":["mode"]`
	const when = `"if":{"properties":{"mode":{"const":"a"}}},"then":{"properties":{"x":{"type":"string"}},"required":["x"]}`
	for _, c := range []struct{ schema, arguments string }{
		{`{"type":"object",` + mode + `,` + when + `}`, `{"mode":"a","x":"1"}`},
		{`{"type":"object",` + mode + `,` + when + `,"unevaluatedProperties":false}`, `{"mode":"a","x":"1"}`},
		{`{"type":"object","properties":{"o":{"type":"object",` + mode + `,` + when + `}}}`, `{"o":{"mode":"a","x":"1"}}`},
		{`{"type":"object","properties":{"o":{"type":"object",` + mode + `,"allOf":[{` + when + `}],"unevaluatedProperties":false}}}`, `{"o":{"mode":"a","x":"1"}}`},
		{`{"type":"object","properties":{"o":{"$ref":"#/$defs/O"},"p":{"$ref":"#/$defs/O"}},"$defs":{"O":{"type":"object",` + mode + `,` + when + `}}}`, `{"p":{"mode":"a","x":"1"}}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"dependentSchemas":{"a":{"properties":{"b":{"type":"string"}},"required":["b"]}}}`, `{"a":"1","b":"2"}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"dependentRequired":{"a":["b"]}}`, `{"a":"1","b":"2"}`},
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}},"allOf":[{"properties":{"a":{"pattern":"y$"},"b":{"type":"string"}},"required":["b"]}]}`, `{"a":"xy","b":"2"}`},
		{`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}},"unevaluatedProperties":true}}}}`, `{"l":[{"a":"1","b":2}]}`},
	} {
		for _, name := range Names() {
			d, err := For(name)
			if err != nil {
				t.Fatal(err)
			}
			plan, problem := d.Plan(dragoman.Tool{Name: "t", InputSchema: json.RawMessage(c.schema)})
			if problem != nil {
				t.Fatalf("%s: %s: %v", name, c.schema, problem)
			}
			sent, err := plan.Encode(json.RawMessage(c.arguments))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.schema, err)
				continue
			}
			if wrong := schema.NewOpenAPIValidator(plan.Meaning()).Validate(sent); len(wrong) > 0 {
				t.Errorf("%s: %s: %s cannot be sent: %v\nsent %s", name, c.schema, c.arguments, wrong, plan.Parameters())
			}
			if !d.spec.Rules.ClosedBySilence {
				continue
			}
			silent := plan.meant.Clone()
			closeSilent(silent)
			if wrong := schema.NewOpenAPIValidator(silent.Bytes()).Validate(sent); len(wrong) > 0 {
				t.Errorf("%s: %s: the engine, which closes by silence, cannot write %s: %v\nsent %s", name, c.schema, c.arguments, wrong, plan.Parameters())
			}
		}
	}
}

// closeSilent closes the objects that declare properties and say nothing of others.
func closeSilent(n *schema.Node) {
	for sub := range n.Subschemas() {
		closeSilent(sub.Node)
	}
	if len(n.Get("properties").Members()) > 0 && !n.Has("additionalProperties") && !n.Has("unevaluatedProperties") && isObject(n) {
		n.Set("additionalProperties", schema.NewBool(false))
	}
}
