package schema

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// plainSchema has every keyword that Plainly judges, and some that it does not.
const plainSchema = `{"type":"object","properties":{
	"text":{"type":"string","minLength":1,"maxLength":3,"description":"Text"},
	"word":{"type":"string","enum":["a","b"],"default":"a"},
	"code":{"type":"string","pattern":"^[a-z]+$"},
	"small":{"type":"integer","minimum":-128,"maximum":127},
	"whole":{"type":["integer","null"],"minimum":-1,"maximum":2},
	"number":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":2},
	"step":{"type":"number","multipleOf":0.5},
	"flag":{"type":["boolean","null"]},
	"choice":{"anyOf":[{"type":"string","maxLength":1},{"const":2},{"type":"null"}]},
	"one":{"oneOf":[{"type":"string"},{"const":"a"}]},
	"at":{"type":"string","format":"date-time"},
	"list":{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b"]}},
	"pair":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer"}},
	"dict":{"type":"object","minProperties":1,"maxProperties":1,"additionalProperties":{"type":"integer","maximum":1}},
	"set":{"type":"array","items":{"type":"integer"},"uniqueItems":true},
	"part":{"type":"object","properties":{"name":{"type":"string"},"grade":{"type":"integer"}},"required":["name"],"additionalProperties":false},
	"self":{"$ref":"#"},
	"any":true, "none":false},
	"required":["text"],"additionalProperties":false}`

// TestPlainlyAgrees holds the quick judgement to that of the validator: where it
// is sure, it is right; and it is sure of ordinary values.
func TestPlainlyAgrees(t *testing.T) {
	s, err := Parse([]byte(plainSchema))
	if err != nil {
		t.Fatal(err)
	}
	v := NewValidator([]byte(plainSchema))
	if u := v.Unchecked(); len(u) > 0 {
		t.Fatal(u)
	}
	names := []string{"other"}
	for _, m := range s.Get("properties").Members() {
		names = append(names, m.Name)
	}
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "ab", "abcd", "A", "ü"}), func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]string{"0", "-1", "1", "2", "2.0", "0.5", "1.5", "1e2", "-129", "1e40"}), func(s string) any { return json.Number(s) }),
	)
	value := rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"name", "grade", "x"}), leaf, 0, 3), func(m map[string]any) any { return m }),
	)
	sure := 0
	rapid.Check(t, func(t *rapid.T) {
		given := map[string]any{"text": "a"}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "names") {
			given[name] = value.Draw(t, name)
		}
		data, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if Plainly(s, n) {
			sure++
			if bad := v.ValidateNode(n); len(bad) > 0 {
				t.Fatalf("%s: taken for right, and %v", data, bad)
			}
		}
	})
	if sure == 0 {
		t.Error("never sure")
	}
}

func TestPlainlyIsSureOfOrdinaryValues(t *testing.T) {
	for _, tt := range [][2]string{
		{`{"type":"string","enum":["a","b"],"description":"x"}`, `"b"`},
		{`{"type":"integer","minimum":1,"maximum":50,"default":20}`, `20`},
		{`{"type":"array","items":{"type":"string","minLength":1},"maxItems":3}`, `["a","b"]`},
		{`{"type":"object","properties":{"a":{"type":["number","null"]}},"required":["a"],"additionalProperties":false}`, `{"a":1.5}`},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `null`},
	} {
		s, err := Parse([]byte(tt[0]))
		if err != nil {
			t.Fatal(err)
		}
		v, err := Parse([]byte(tt[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !Plainly(s, v) {
			t.Errorf("not sure that %s fits %s", tt[1], tt[0])
		}
	}
}
