package dialect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// What is sent takes all that the server takes, with the members that it declares, unless the
// report says that it narrows; and nothing else, unless it says that it is wider.
func TestNothingIsNarrowerOrWiderUntold(t *testing.T) {
	for _, c := range []struct{ schema, good, evil string }{
		{schema: `{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}}},{}]}`, good: `{"a":2}`},
		{schema: `{"type":"object","anyOf":[{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false},{"properties":{"a":{}},"additionalProperties":false}]}`, good: `{"x1":"s"}`},
		{schema: `{"type":"object","oneOf":[{"patternProperties":{"a":{}}}],"unevaluatedProperties":{"const":false}}`, good: `{"a":2}`},
		{schema: `{"type":"object","properties":{"b":{}},"unevaluatedProperties":{"type":"object"},"patternProperties":{"^a$":{"required":["b"]}}}`, good: `{"c":{}}`},
		{schema: `{"type":"object","if":{"properties":{"b":{}}},"patternProperties":{"^x":{"type":"array"}}}`, good: `{"b":2}`},
		{schema: p(`{"anyOf":[{}],"oneOf":[{"type":"object"},{"additionalProperties":false}]}`), good: `{"p":{"b":1}}`},
		{schema: p(`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"integer"}}}],"unevaluatedProperties":false}`), good: `{"p":{"a":"x","b":1}}`, evil: `{"p":{"c":1}}`},
		{schema: p(`{"oneOf":[{"allOf":[{"pattern":"a"},{"pattern":"b"}]},{"maxLength":1}]}`), good: `{"p":"a"}`},
		{schema: p(`{"type":"string","oneOf":[{"allOf":[{"pattern":"a"},{"pattern":"b"}]},{"maxLength":1}]}`), good: `{"p":"a"}`},
		{schema: p(`{"type":"string","oneOf":[{"allOf":[{"allOf":[{"pattern":"b"},{"pattern":"a"}]}]},{"maxLength":1}]}`), good: `{"p":"b"}`},
		{schema: p(`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"unevaluatedProperties":false}],"properties":{"b":{"type":"integer"}}}`), good: `{"p":{"a":"x"}}`, evil: `{"p":{"a":"x","b":1}}`},
		{schema: p(`{"type":"array","items":{},"allOf":[{"items":{"type":"string"}},{"prefixItems":[{"maxLength":1}]}]}`), good: `{"p":["x","yy"]}`, evil: `{"p":[1]}`},
		{schema: p(`{"type":"array","items":{},"allOf":[{"contains":{"type":"integer"}},{"minContains":0}]}`), good: `{"p":[1]}`, evil: `{"p":[]}`},
		{schema: p(`{"type":"array","items":{},"allOf":[{"contains":{"type":"integer"},"minContains":2},{"contains":{"type":"integer"}}]}`), good: `{"p":[1,2]}`, evil: `{"p":[1]}`},
		{schema: p(`{"type":"string","allOf":[{"if":{"minLength":2}},{"then":{"maxLength":1}}]}`), good: `{"p":"abc"}`},
		{schema: p(`{"type":"object","unevaluatedProperties":{"type":"integer"},"anyOf":[{"properties":{"a":{"type":"string"}}},{"required":["b"]}]}`), good: `{"p":{"b":1}}`, evil: `{"p":{"b":1,"c":"x"}}`},
		{schema: p(`{"type":"object","properties":{"b":{"type":"integer"}},"anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"],"unevaluatedProperties":false},{"properties":{"c":{"type":"string"}},"required":["c"],"unevaluatedProperties":false}]}`), good: `{"p":{"a":"x"}}`, evil: `{"p":{"a":"x","b":1}}`},
		{schema: p(`{"type":"object","properties":{"b":{"type":"integer"}},"anyOf":[false,{"properties":{"a":{"type":"string"}},"unevaluatedProperties":false}]}`), good: `{"p":{"a":"x"}}`, evil: `{"p":{"a":"x","b":1}}`},
		{schema: p(`{"type":"object","properties":{"c":{}},"oneOf":[{"properties":{"a":{}},"unevaluatedProperties":false},{"type":"object"}],"unevaluatedProperties":false}`), good: `{"p":{"c":1}}`, evil: `{"p":{"b":1}}`},
		{schema: p(`{"type":"object","properties":{"c":{}},"anyOf":[{"required":["c"]},{"minProperties":1}],"oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"unevaluatedProperties":false}`), good: `{"p":{"b":1}}`, evil: `{"p":{"b":1,"d":1}}`},
		{schema: p(`{"type":"array","prefixItems":[{"type":"string"}],"anyOf":[{"unevaluatedItems":false},{"minItems":3}]}`), good: `{"p":[]}`, evil: `{"p":["x"]}`},
		{schema: `{"type":"object","properties":{"p":{"$ref":"#/$defs/B","properties":{"b":{"type":"integer"}}}},"$defs":{"B":{"type":"object","properties":{"a":{"type":"string"}},"unevaluatedProperties":false}}}`, good: `{"p":{"a":"x"}}`, evil: `{"p":{"a":"x","b":1}}`},
		{schema: `{"$ref":"#/$defs/B","properties":{"b":{"type":"integer"}},"$defs":{"B":{"type":"object","properties":{"a":{"type":"string"}},"unevaluatedProperties":false}}}`, good: `{"a":"x"}`, evil: `{"a":"x","b":1}`},
		{schema: p(`{"allOf":[{"properties":{"q":{"type":"object","properties":{"a":{}},"unevaluatedProperties":false}}},{"properties":{"q":{"properties":{"b":{}}}}}]}`), good: `{"p":{"q":{"a":1}}}`, evil: `{"p":{"q":{"a":1,"b":1}}}`},
		{schema: `{"type":"object","properties":{"b":{},"c":{"allOf":[false]}}}`, good: `{}`, evil: `{"c":1}`},
		{schema: `{"type":"object","minProperties":1,"properties":{"a":{"enum":["x"]}}}`, good: `{"a":"x"}`, evil: `{"a":null}`},
		{schema: p(`{"type":"object","propertyNames":{"const":1}}`), good: `{"p":{}}`, evil: `{"p":{"a":1}}`},
		{schema: `{"type":"object","properties":{"p":{"type":"object","propertyNames":{"type":"number"},"required":["b"]}}}`, good: `{}`},
		{schema: `{"type":"object","properties":{"p":{"allOf":[{},{"const":[]}],"contains":true}}}`, good: `{}`},
	} {
		for _, name := range Names() {
			plan := planFor(t, name, c.schema)
			widens, narrows := plan.Wide(), false
			for _, change := range plan.Report() {
				widens, narrows = widens || !change.Lossless && !change.Narrows, narrows || change.Narrows
			}
			judge := schema.NewOpenAPIValidator(plan.Meaning())
			if unchecked := judge.Unchecked(); len(unchecked) > 0 {
				t.Errorf("%s: %s: %v\nsent %s", name, c.schema, unchecked, plan.Parameters())
			}
			if y, err := plan.Encode(json.RawMessage(c.good)); !narrows && (err != nil || len(judge.Validate(y)) > 0) {
				t.Errorf("%s: %s cannot be written for %s, and nothing is said: %v %v\nsent %s", name, c.good, c.schema, err, plan.Report(), plan.Parameters())
			}
			if d, _ := For(name); d.spec.Rules.ClosedBySilence {
				read := plan.meant.Clone()
				closeSilent(read)
				judge = schema.NewOpenAPIValidator(read.Bytes())
			}
			if c.evil == "" || widens || len(judge.Validate(json.RawMessage(c.evil))) > 0 {
				continue
			}
			if _, _, problem := plan.Decode(c.evil, ""); problem != nil {
				t.Errorf("%s: %s can be written for %s, and nothing is said: %v\nsent %s", name, c.evil, c.schema, plan.Report(), plan.Parameters())
			}
		}
	}
}

// What the model can say as the server takes it is not said to be narrower.
func TestNothingIsSaidToBeNarrowerThatIsNot(t *testing.T) {
	for _, s := range []string{
		p(`{"type":"object","properties":{"k":{"type":"string"}},"oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}],"unevaluatedProperties":false}`),
		p(`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"null"}],"unevaluatedProperties":false}`),
		p(`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"type":"object","properties":{"b":{"type":"string"}}},{"type":"object","required":["a"]}],"unevaluatedProperties":false}`),
		`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}],"unevaluatedProperties":false}`,
		`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"],"unevaluatedProperties":false},{"properties":{"b":{"type":"integer"}},"required":["b"],"unevaluatedProperties":false}]}`,
	} {
		for _, name := range Names() {
			for _, change := range planFor(t, name, s).Report() {
				if change.Narrows && (change.Pass == "pushIntoBranches" || change.Pass == "mergeRoot") {
					t.Errorf("%s: %s: %v", name, s, change)
				}
			}
		}
	}
}

// A schema that is closed, around one that says the same, or that says something of items alone,
// is merged whole.
func TestClosedSchemasMergeWhole(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"unevaluatedProperties":false}`
	const other = `{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"],"unevaluatedProperties":false}`
	for _, s := range []string{
		p(`{"type":"object","allOf":[` + closed + `],"unevaluatedProperties":false}`),
		p(`{"anyOf":[` + closed + `,{"type":"null"}],"unevaluatedProperties":false}`),
		p(`{"anyOf":[` + closed + `,` + other + `],"unevaluatedProperties":false}`),
		p(`{"oneOf":[` + closed + `,` + other + `],"unevaluatedProperties":false}`),
		p(`{"type":"object","allOf":[` + closed + `],"items":{"type":"string"}}`),
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/A","unevaluatedProperties":false}},"$defs":{"A":` + closed + `}}`,
		`{"$ref":"#/$defs/A","unevaluatedProperties":false,"$defs":{"A":` + closed + `}}`,
	} {
		for _, name := range Names() {
			plan := planFor(t, name, s)
			for _, change := range plan.Report() {
				if !change.Lossless && slices.Contains([]string{"mergeAllOf", "inlineRefs", "pushIntoBranches", "nullableUnions"}, change.Pass) {
					t.Errorf("%s: %s: %v\nsent %s", name, s, change, plan.Parameters())
				}
			}
		}
	}
}

// What stands beside the same condition, or beside the same contains, is merged whole.
func TestHeadsMergeWhole(t *testing.T) {
	for _, c := range []struct{ schema, good, evil string }{
		{`{"type":"object","allOf":[{"if":{"required":["k"]},"then":{"required":["a"]}},{"if":{"required":["k"]},"else":{"required":["b"]}}],"properties":{"k":{},"a":{},"b":{}}}`, `{"p":{"k":1,"a":1}}`, `{"p":{"a":1}}`},
		{`{"type":"array","items":{"type":"string"},"allOf":[{"contains":{"const":"x"}},{"contains":{"const":"x"},"maxContains":1}]}`, `{"p":["x","y"]}`, `{"p":["x","x"]}`},
		{`{"type":"array","items":{"type":"string"},"allOf":[{"contains":{"const":"x"},"minContains":2},{"contains":{"const":"x"}}]}`, `{"p":["x","x"]}`, `{"p":["x"]}`},
		{`{"type":"array","items":{"type":"string"},"allOf":[{"contains":{"const":"x"},"minContains":0},{"contains":{"const":"x"}}]}`, `{"p":["x"]}`, ``},
	} {
		for _, name := range Names() {
			plan, wide := planFor(t, name, p(c.schema)), false
			for _, change := range plan.Report() {
				wide = wide || !change.Lossless && !change.Narrows
				if change.Pass == "mergeAllOf" && change.Lossless != (c.evil != "") {
					t.Errorf("%s: %s: %v", name, c.schema, change)
				}
			}
			judge := schema.NewOpenAPIValidator(plan.Meaning())
			if y, err := plan.Encode(json.RawMessage(c.good)); err != nil || len(judge.Validate(y)) > 0 || !wide && len(judge.Validate(json.RawMessage(c.evil))) == 0 {
				t.Errorf("%s: %s is sent as %s: %v", name, c.schema, plan.Parameters(), err)
			}
		}
	}
}

// What could not be merged is told to the model, also where what holds it is merged in turn.
func TestWhatIsLeftOutIsToldFurther(t *testing.T) {
	for _, s := range []string{
		`{"allOf":[{"allOf":[{"pattern":"a"},{"pattern":"b"}]}]}`,
		`{"type":"string","anyOf":[{"allOf":[{"pattern":"a"},{"pattern":"b"}]},{"maxLength":1}]}`,
	} {
		for _, name := range Names() {
			plan := planFor(t, name, p(s))
			if sent := string(plan.Parameters()); !strings.Contains(sent, `"pattern":"b"`) && !strings.Contains(sent, `\"pattern\":\"b\"`) && !strings.Contains(sent, "matches b") {
				t.Errorf("%s: nothing says pattern b of %s: %s", name, s, sent)
			}
		}
	}
}

// p is a schema of arguments of which one, p, is required.
func p(s string) string {
	return `{"type":"object","properties":{"p":` + s + `},"required":["p"]}`
}
