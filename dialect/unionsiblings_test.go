package dialect

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// An engine that reads nothing beside a union reads nothing beside oneOf either: XGrammar
// 0.1.27 writes the alternatives of p below without kind, which the server requires.
func TestKeywordsBesideOneOf(t *testing.T) {
	const beside = `{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"],"oneOf":[
		{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`
	for _, c := range []struct{ p, value string }{
		{beside, `{"kind":"x","a":"y"}`},
		{beside, `{"kind":"x","b":"y"}`},
		{`{"type":"object","oneOf":[{"oneOf":[{"required":["a"]},{"required":["b"]}]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, `{"b":"y"}`},
		{`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],"oneOf":[{"required":["c"]},{"required":["d"]}],"properties":{
			"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"}}}`, `{"a":"x","d":"y"}`},
	} {
		for _, name := range Names() {
			d, err := For(name)
			if err != nil {
				t.Fatal(err)
			}
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+c.p+`},"required":["p"]}`)
			if plan.Wide() {
				t.Errorf("%s: %s is sent without a schema: %v", name, c.p, plan.Report())
				continue
			}
			arguments, err := plan.Encode(json.RawMessage(`{"p":` + c.value + `}`))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.value, err)
				continue
			}
			read := plan.meant.Clone()
			if d.spec.Rules.bad(UnionSiblings) {
				dropBesideUnions(read)
			}
			if d.spec.Rules.ClosedBySilence {
				closeSilent(read)
			}
			if wrong := schema.NewOpenAPIValidator(read.Bytes()).Validate(arguments); len(wrong) > 0 {
				t.Errorf("%s: %s cannot be written: %v\nsent %s", name, arguments, wrong, plan.Parameters())
			}
		}
	}
}

// dropBesideUnions takes away what an engine does not read that reads nothing beside a
// union.
func dropBesideUnions(n *schema.Node) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if union := n.Get(keyword); union != nil {
			n.Become(schema.NewObject(schema.Member{Name: keyword, Value: union}))
			break
		}
	}
	for sub := range n.Subschemas() {
		dropBesideUnions(sub.Node)
	}
}

// A type that no alternative of a union fits is sent without the union, which says more
// than the server takes.
func TestNoAlternativeFits(t *testing.T) {
	for _, name := range Names() {
		plan := planFor(t, name, `{"type":"object","properties":{"p":{"type":"object","anyOf":[{"type":"string"},{"type":"number"}]}},"required":["p"]}`)
		said := false
		for _, change := range plan.Report() {
			said = said || !change.Lossless
		}
		if _, _, problem := plan.Decode(`{"p":{}}`, ""); problem == nil {
			t.Errorf("%s: {} is taken", name)
		}
		if wrong := schema.NewOpenAPIValidator(plan.Meaning()).Validate(json.RawMessage(`{"p":{}}`)); len(wrong) == 0 && !said {
			t.Errorf("%s: {} can be written, and nothing is said: %v", name, plan.Report())
		}
	}
}
