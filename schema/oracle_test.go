package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestJudgesAsTheLibraryDoes: on every pair of these schemas and values the answer is
// that of a validator that shares no code with ours.
func TestJudgesAsTheLibraryDoes(t *testing.T) {
	schemas := []string{
		`true`, `false`, `{}`, `{"type":"integer"}`, `{"type":["string","null"]}`, `{"const":{"a":[1.0]}}`, `{"enum":[1,"1",null,[],{}]}`,
		`{"minimum":1}`, `{"maximum":1.5}`, `{"exclusiveMinimum":1}`, `{"exclusiveMaximum":2}`, `{"multipleOf":0.5}`, `{"multipleOf":2}`, `{"minimum":0,"multipleOf":1e-3}`,
		`{"minLength":2}`, `{"maxLength":1}`, `{"pattern":"^a"}`, `{"format":"date"}`, `{"format":"email"}`,
		`{"required":["a"]}`, `{"minProperties":2}`, `{"maxProperties":1}`, `{"properties":{"a":{"type":"integer"}},"additionalProperties":false}`,
		`{"patternProperties":{"^a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `{"propertyNames":{"maxLength":1}}`,
		`{"dependentRequired":{"a":["b"]}}`, `{"dependentSchemas":{"a":{"required":["b"]}}}`,
		`{"items":{"type":"integer"}}`, `{"prefixItems":[{"type":"integer"}],"items":false}`, `{"minItems":2}`, `{"maxItems":1}`, `{"uniqueItems":true}`,
		`{"contains":{"type":"integer"}}`, `{"contains":{"type":"integer"},"minContains":2}`, `{"contains":{"type":"integer"},"minContains":0,"maxContains":1}`,
		`{"not":{"type":"object"}}`, `{"allOf":[{"minimum":1},{"maximum":5}]}`, `{"anyOf":[{"type":"string"},{"minimum":2}]}`, `{"oneOf":[{"minimum":1},{"maximum":2}]}`,
		`{"if":{"type":"integer"},"then":{"minimum":2},"else":{"type":"string"}}`,
		`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"anyOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}],"unevaluatedProperties":false}`,
		`{"if":{"required":["a"]},"then":{"properties":{"a":{}}},"unevaluatedProperties":{"type":"integer"}}`,
		`{"prefixItems":[{}],"unevaluatedItems":{"type":"string"}}`, `{"contains":{"type":"integer"},"unevaluatedItems":false}`,
		`{"$ref":"#/$defs/t","$defs":{"t":{"type":["object","array","integer"],"additionalProperties":{"$ref":"#/$defs/t"},"items":{"$ref":"#/$defs/t"}}}}`,
		`{"$ref":"#/$defs/p","unevaluatedProperties":false,"$defs":{"p":{"properties":{"a":{}}}}}`, `{"not":{"$ref":"#/$defs/p"},"$defs":{"p":{"properties":{"a":{"type":"string"}}}}}`,
	}
	values := []string{
		`null`, `true`, `0`, `1`, `1.0`, `1.5`, `2`, `-0`, `1e2`, `0.001`, `12345678901234567890`, `"a"`, `"ab"`, `""`, `"1"`, `"2024-01-15"`, `"a@b.example"`, `"€"`,
		`[]`, `[1]`, `[1,1.0]`, `[1,"a"]`, `["a","b"]`, `[[],[]]`, `[{"a":1},{"a":1.0}]`, `[1,2,"a"]`, `[{"a":{}}]`,
		`{}`, `{"a":1}`, `{"a":[1]}`, `{"a":"x"}`, `{"b":2}`, `{"a":1,"b":2}`, `{"a":1,"c":"x"}`, `{"ab":1}`, `{"":1}`, `{"a":{"a":{"a":[]}}}`, `{"c":1,"b":"x"}`,
	}
	for i, s := range schemas {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		n, err := Parse([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("https://schema.invalid/%d", i)
		if err := c.AddResource(at, decoded(n)); err != nil {
			t.Fatal(err)
		}
		oracle, v := c.MustCompile(at), NewValidator([]byte(s))
		for _, value := range values {
			parsed, err := Parse([]byte(value))
			if err != nil {
				t.Fatal(err)
			}
			wrong := oracle.Validate(decoded(parsed))
			if found := v.ValidateNode(parsed); (len(found) == 0) != (wrong == nil) {
				t.Errorf("%s by %s: %v; the library says %v", value, s, found, wrong)
			}
		}
	}
}

// decoded returns n as encoding/json would decode it, with json.Number.
func decoded(n *Node) any {
	d := json.NewDecoder(bytes.NewReader(n.Bytes()))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err) // n was parsed
	}
	return v
}
