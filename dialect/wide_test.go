package dialect

import (
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// sayable are schemas of a property that every dialect can be told in some way.
var sayable = []string{
	`{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}`,
	`{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`,
	`{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":false}`,
	`{"type":"array","prefixItems":[{"type":"number"}],"items":false,"minItems":1,"maxItems":1}`,
	`{"type":"array","prefixItems":[],"items":false}`,
	`{"type":"array","items":false}`,
	`{"type":"array","items":true}`,
	`{"type":"array","items":{"const":null}}`,
	`{"type":"array","items":{"enum":[null]}}`,
	`{"const":null}`,
	`{"enum":[null,null]}`,
	`{"type":"null"}`,
	`{"enum":[1,"a",null,true]}`,
	`{"enum":[{"a":1},[2]]}`,
	`{"const":{"a":1}}`,
	`{"const":[1,2]}`,
	`{"type":["array","null"],"enum":[[1],null]}`,
	`{"properties":{},"additionalProperties":false}`,
	`{"type":"object","properties":{},"additionalProperties":false}`,
	`{"type":"object","additionalProperties":false}`,
	`{"type":["object","null"],"properties":{},"additionalProperties":false}`,
	`{"type":"object","additionalProperties":true}`,
	`{"type":"object","additionalProperties":{"type":"object","properties":{},"additionalProperties":false}}`,
	`{"type":"object","maxProperties":0}`,
	`{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`,
	`{"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"type":"integer"}}`,
	`{"anyOf":[{"type":"object","properties":{},"additionalProperties":false},{"type":"string"}]}`,
	`{"anyOf":[{"type":"array","prefixItems":[{"type":"string"}],"items":false},{"const":null}]}`,
	`{"allOf":[{"$ref":"#/$defs/S"}],"default":"a","title":"S"}`,
	`{"allOf":[{"$ref":"#/$defs/N"}],"description":"The first."}`,
	`{"$ref":"#/$defs/S","description":"Another."}`,
	`{"oneOf":[{"const":1},{"const":"a"},{"const":null}]}`,
	`{"allOf":[{"type":"object","properties":{"a":{"const":null}}},{"additionalProperties":true}]}`,
	`{"type":["string","number","boolean","object","array","null"]}`,
	`{"anyOf":[{},{"type":"null"}]}`, // Optional[Any] of pydantic
	`{"type":"array","items":{"anyOf":[{},{"type":"null"}]}}`,
	`{"oneOf":[{"oneOf":[{"type":"string"},{}]},{"type":"null"}]}`,
	`{"type":"array","prefixItems":[{"type":"string"},{}],"items":false}`,
	`{"type":"array","prefixItems":[{"type":"string"},{"type":"array","items":{"type":"number"}}],"items":false}`,
	`{"type":"array","prefixItems":[{"type":"string"},{"enum":[1,"1"]}],"items":false}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"required":["a"]},"then":{"not":{"required":["b"]}}}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"required":["a"]},"then":{},"else":false}`,
	`{"type":"object","properties":{"a":{"type":"string"}},"dependentSchemas":{"a":{}},"propertyNames":{},"not":false}`,
	`{"type":"object","additionalProperties":{"minimum":1}}`,
	`{"type":"object","properties":{"a":{"type":"string"}},"patternProperties":{"^x-":false}}`,
	`{"allOf":[false]}`,
	`{"anyOf":[{"allOf":[true,false]},{"type":"string"}]}`,
	`{"type":"array","items":{"allOf":[false]}}`,
	`{"not":{"allOf":[false]}}`,
	`{"$ref":"#/$defs/F"}`,
	`{"type":"object","properties":{"a":{},"b":{}},"dependentSchemas":{"a":false}}`,
	`{"type":"object","propertyNames":false}`,
	`{"else":{"required":["a"]}}`,
	`{"contains":{}}`,
	`{"type":"array","contains":true,"minContains":2,"maxContains":3,"unevaluatedItems":false}`,
	`{"type":"array","contains":false}`,
	`{"contains":false,"minContains":0}`,
	`{"contains":true,"maxItems":0}`,
	`{"prefixItems":[false]}`,
	`{"type":"array","items":{},"prefixItems":[{"type":"string"},false]}`,
	`{"type":"array","items":{},"prefixItems":[{"type":"string"},false],"minItems":2}`,
	`{"type":"string","pattern":"a|b","anyOf":[{"enum":["a",1]}]}`,
	`{"type":"integer","exclusiveMaximum":10,"oneOf":[{"enum":[1,"1"]},{"const":2}]}`,
	`{"enum":["a",1],"minLength":1}`,
	`{"type":["string","null"],"enum":[null]}`,
	`{"allOf":[{"type":["array","null"]},{"const":null}]}`,
	`{"type":"array","items":{"anyOf":[{"type":"object","additionalProperties":{"type":"string"}},{"type":"integer"}]}}`,
	`{"type":"array","items":{"oneOf":[{"type":"object","additionalProperties":{"type":"string"}}]}}`,
	`{"type":"array","items":{"type":["object","integer"],"additionalProperties":{"type":"string"}}}`,
	`{"not":{"const":3}}`,
	`{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"integer"}}`,
	`{"type":"string","pattern":"(?<!x)y","minLength":1,"format":"x-y"}`,
	`{}`,
	`true`,
}

// sayableDefinitions are what sayable schemas refer to.
const sayableDefinitions = `"$defs":{"S":{"type":"string","enum":["a","b"]},"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}},"F":false}`

// TestNothingIsLostToOurOwnChecker converts what can be said in every dialect:
// none of it may go out as an object without a schema.
func TestNothingIsLostToOurOwnChecker(t *testing.T) {
	for _, name := range Names() {
		d, err := For(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sayable {
			for _, required := range []string{``, `,"required":["p"]`} {
				input := `{"type":"object","properties":{"p":` + s + `}` + required + `,` + sayableDefinitions + `}`
				plan, problem := d.convert(dragoman.Tool{Name: "t", InputSchema: []byte(input)})
				if problem != nil {
					t.Errorf("%s: %s: %s", name, input, problem.Message)
				} else if plan.Wide() {
					t.Errorf("%s: %s: %s", name, input, plan.Report()[len(plan.Report())-1].Why)
				}
			}
		}
	}
}
