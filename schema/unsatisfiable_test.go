package schema

import (
	"strings"
	"testing"
)

// TestUnsatisfiable refuses what no value fits, as it does an empty enum, and keeps
// what some value does.
func TestUnsatisfiable(t *testing.T) {
	for _, tc := range []struct{ in, pointer, reason string }{
		{`{"type":"string","minLength":5,"maxLength":3}`, "/minLength", "wants a minLength of 5 and a maxLength of 3"},
		{`{"type":"array","minItems":2,"maxItems":1}`, "/minItems", "minItems"},
		{`{"type":"array","contains":{},"minContains":2,"maxContains":1}`, "/minContains", "minContains"},
		{`{"type":"array","prefixItems":[{}],"items":false,"minItems":2}`, "/minItems", "ends before"},
		{`{"type":"array","items":[{}],"additionalItems":false,"minItems":2}`, "/minItems", "ends before"},
		{`{"type":"object","minProperties":3,"maxProperties":2}`, "/minProperties", "minProperties"},
		{`{"type":"object","required":["a","b"],"maxProperties":1}`, "/required", "requires 2 members"},
		{`{"type":"object","required":["a"],"additionalProperties":false}`, "/required", `requires the member "a"`},
		{`{"type":"object","properties":{"a":{}},"minProperties":2,"additionalProperties":false}`, "/minProperties", "fewer properties"},
		{`{"type":"number","minimum":2,"maximum":1}`, "/minimum", "no number between its minimum of 2 and its maximum of 1"},
		{`{"type":"number","exclusiveMinimum":1,"maximum":1}`, "/exclusiveMinimum", "exclusiveMinimum"},
		{`{"type":"number","minimum":1,"exclusiveMaximum":1}`, "/minimum", "exclusiveMaximum"},
		{`{"type":"number","minimum":1,"maximum":1,"exclusiveMinimum":true}`, "/exclusiveMinimum", "exclusiveMinimum"},
		{`{"type":"integer","minimum":0.2,"maximum":0.8}`, "/minimum", "no number"},
		{`{"type":"integer","exclusiveMinimum":-2,"exclusiveMaximum":-1}`, "/exclusiveMinimum", "no number"},
		{`{"type":["integer","string"],"minimum":2,"maximum":1,"minLength":2,"maxLength":1}`, "", "so nothing would ever fit"},
		{`{"const":1,"enum":[2,3]}`, "/const", "not in its enum"},
		{`{"type":"string","const":1}`, "/const", "fits its type"},
		{`{"type":"integer","enum":["1","2"]}`, "/enum", "fits its type"},
		{`{"type":"integer","maximum":3,"enum":[4,5]}`, "/enum", "fits its maximum"},
		{`{"type":"string","maxLength":1,"enum":["aa",3]}`, "/enum", "fits its type and maxLength at once"},
		{`{"properties":{"p":{"anyOf":[{"type":"null"},{"type":"string","maxLength":0,"minLength":1}]}}}`, "/properties/p/anyOf/1/minLength", "minLength"},
	} {
		_, refusal := Admit([]byte(tc.in))
		if refusal == nil || !strings.HasSuffix(refusal.Pointer, tc.pointer) || !strings.Contains(refusal.Reason, tc.reason) || !strings.HasSuffix(refusal.Reason, "nothing would ever fit") {
			t.Errorf("%s: %v", tc.in, refusal)
		}
	}
	for in, want := range map[string]string{
		`{"type":"string","minLength":3,"maxLength":3}`:                                                "",
		`{"type":"integer","exclusiveMinimum":-2,"exclusiveMaximum":0}`:                                "",
		`{"type":"number","minimum":1,"maximum":1}`:                                                    "",
		`{"type":"string","enum":["a",null]}`:                                                          "",
		`{"type":"integer","enum":[1.0]}`:                                                              "",
		`{"required":["a"],"additionalProperties":false,"patternProperties":{"a":{}},"type":"object"}`: "",
		`{"minContains":2,"maxContains":1,"type":"array"}`:                                             "",
		`{"type":["string","null"],"minLength":5,"maxLength":3}`:                                       `{"type":"null"}`,
		`{"type":["string","number","null"],"minimum":5,"maximum":3}`:                                  `{"type":["string","null"]}`,
		`{"minLength":5,"maxLength":3,"description":"d"}`:                                              `{"description":"d","type":["null","boolean","object","array","number"]}`,
	} {
		d, refusal := Admit([]byte(in))
		if refusal != nil {
			t.Errorf("%s: %v", in, refusal)
			continue
		}
		if want == "" {
			want = in
		} else if len(d.Notes) == 0 {
			t.Errorf("%s: nothing is noted", in)
		}
		if got := string(d.Root.Bytes()); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
