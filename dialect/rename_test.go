package dialect

import (
	"encoding/json"
	"regexp"
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

// TestNamesForAnthropicsModels: wherever they are served, one name of a property that
// Anthropic does not take fails the whole request.
func TestNamesForAnthropicsModels(t *testing.T) {
	const input = `{"type":"object","properties":{"$top":{"type":"integer"},"filter[id]":{"type":"string"},
		"sort by":{"type":"object","properties":{"@key":{"type":"string"}}}},"required":["$top"]}`
	const arguments = `{"$top":1,"filter[id]":"a","sort by":{"@key":"b"}}`
	taken := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	for _, name := range []string{"anthropic", "anthropic-strict", "bedrock", "openrouter", "conservative"} {
		plan := planFor(t, name, input)
		sent, err := schema.Parse(plan.Parameters())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sent.Get("properties").Members() {
			if !taken.MatchString(m.Name) {
				t.Errorf("%s: %q is sent", name, m.Name)
			}
		}
		written, err := plan.Encode(json.RawMessage(arguments))
		if err != nil {
			t.Fatal(err)
		}
		if back, _, problem := plan.Decode(string(written), "tool_calls"); problem != nil || string(back) != arguments {
			t.Errorf("%s: %s comes back as %s, %v", name, written, back, problem)
		}
	}
}

// A property is sent by a name of which no patternProperties speaks that did not speak of
// its own: the model could write no value that both take.
func TestRenamedPastPatterns(t *testing.T) {
	for _, c := range []struct{ schema, arguments string }{
		{`{"type":"object","properties":{"日本":{"type":"string"}},"required":["日本"],"patternProperties":{"^[a-z]+$":{"type":"integer"}}}`, `{"日本":"x"}`},
		{`{"type":"object","properties":{"":{"type":"object"},"a\"b":{"type":"string"}},"patternProperties":{"^[a-z]+$":{"type":"string"},".*":{}}}`, `{"":{},"a\"b":"y","z":"1"}`},
	} {
		for _, name := range Names() {
			plan := planFor(t, name, c.schema)
			sent, err := plan.Encode(json.RawMessage(c.arguments))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.schema, err)
				continue
			}
			if wrong := schema.NewOpenAPIValidator(plan.Meaning()).Validate(sent); len(wrong) > 0 {
				t.Errorf("%s: %s: %s cannot be sent: %v\nsent %s", name, c.schema, sent, wrong, plan.Parameters())
			}
			if back, _, problem := plan.Decode(string(sent), ""); problem != nil || string(back) != c.arguments {
				t.Errorf("%s: %s: %s came back as %s, %v", name, c.schema, sent, back, problem)
			}
		}
	}
}
