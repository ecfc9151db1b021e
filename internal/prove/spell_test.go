package prove

import (
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

func parse(t *testing.T, text string) *schema.Node {
	t.Helper()
	n, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSpellings(t *testing.T) {
	root := parse(t, `{"type":"object","properties":{"b":{"type":"integer"},"a":{"anyOf":[{"type":"object","properties":{"k":{"const":1},"z":{}}},
		{"type":"object","properties":{"z":{},"k":{"const":2}}}]}},"required":["a"]}`)
	got := spellings(root, parse(t, `{"free":"é","a":{"k":2,"z":"\""},"b":1.0}`))
	for _, want := range []string{
		`{"b":1,"a":{"z":"\"","k":2},"free":"é"}`,
		`{"a":{"z":"\"","k":2},"b":1,"free":"é"}`,
		`{"b":1,"a":{"z":"\u0022","k":2},"free":"\u00e9"}`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}

func TestStrays(t *testing.T) {
	for _, test := range []struct {
		schema, value string
		want          bool
	}{
		{`{"properties":{"a":{}}}`, `{"a":1}`, false},
		{`{"properties":{"a":{}}}`, `{"b":1}`, true},
		{`{"type":"object"}`, `{"b":1}`, true},
		{`{"type":"object","properties":{}}`, `{"b":1}`, true},
		{`{"type":"object","additionalProperties":true}`, `{"b":1}`, false},
		{`{"properties":{"a":{"type":"object"}}}`, `{"a":{"b":1}}`, false},
		{`{"properties":{"a":{"properties":{}}}}`, `{"a":{"b":1}}`, true},
		{`{"properties":{"a":{}},"anyOf":[{"properties":{"b":{}}}]}`, `{"a":1,"b":1}`, false},
		{`{"properties":{"a":{"items":{"properties":{"x":{}}}}}}`, `{"a":[{"x":1},{"y":1}]}`, true},
		{`{"properties":{"a":{}},"patternProperties":{"^x-":{}}}`, `{"x-1":1}`, false},
		{`{"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"k":{}}}}}`, `{"a":{"z":0}}`, true},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, `{"z":"s"}`, false},
	} {
		root := parse(t, test.schema)
		if got := strays(root, parse(t, test.value)); got != test.want {
			t.Errorf("%s by %s: %v", test.value, test.schema, got)
		}
	}
}

// Whatever a schema asks for, the values that are made up come to an end.
func FuzzCandidates(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/properties/a"},"minItems":9,"uniqueItems":true}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"(a{9}){9}","minLength":3}},"minProperties":3}`,
		`{"allOf":[{"anyOf":[{"properties":{"x":{"contains":{"const":1}}}}]}],"type":"object"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2000 {
			return
		}
		doc, refusal := schema.Admit(b)
		if refusal != nil || doc.Root.Kind() != schema.Object {
			return
		}
		p := &Prover{Dialect: in(t, "openai")}
		proof := proveTool(t, p, string(b))
		if proof.Unusable == "" && proof.Looked.Candidates == 0 {
			t.Errorf("no candidates for %s", b)
		}
	})
}
