package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
)

func TestAdmitRefuses(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"items":`, n) + `{}` + strings.Repeat(`}`, n)
	}
	wide := `{"type":"object","properties":{"p":{}`
	for i := range MaxSubschemas {
		wide += fmt.Sprintf(`,"p%d":{}`, i)
	}
	wide += `}}`
	for _, tc := range []struct{ in, pointer, reason string }{
		{`5`, "", "an object or a boolean"},
		{`{"a":1,"a":2}`, "/a", "duplicate"},
		{`{`, "", "ends before"},
		{`{"type":"unknown"}`, "/type", "does not know"},
		{`{"properties":{"a":{"type":["string",5]}}}`, "/properties/a/type", "does not know"},
		{`{"type":[]}`, "/type", "empty list"},
		{`{"type":null}`, "/type", "null"},
		{`{"properties":{"a":{"$ref":"https://example.com/a"}}}`, "/properties/a/$ref", "nothing is fetched"},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "/properties/a/$ref", "nothing is fetched"},
		{`{"properties":{"a":{"$ref":"#/nowhere"}}}`, "/properties/a/$ref", "not in the schema"},
		{`{"properties":{"a":{"$ref":"#anchor"}}}`, "/properties/a/$ref", "not in the schema"},
		{`{"properties":{"a":{"$ref":5}}}`, "/properties/a/$ref", "not a string"},
		{`{"properties":{"a":{"$ref":"#/properties/a/title"}},"title":"t"}`, "/properties/a/$ref", "not in the schema"},
		{`{"title":"t","properties":{"a":{"$ref":"#/title"}}}`, "/properties/a/$ref", "not a schema"},
		{`{"properties":{"a":{"$ref":"#/properties/a"}}}`, "/properties/a", "without consuming"},
		{`{"$ref":"#"}`, "", "without consuming"},
		{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, "/$defs/a", "without consuming"},
		{`{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"},"d":{"$id":"d","$dynamicAnchor":"n"}}}`, "/properties/c/$dynamicRef", "several schemas"},
		{`{"$recursiveAnchor":true,"properties":{"c":{"$recursiveRef":"#"},"d":{"$id":"d","$recursiveAnchor":true}}}`, "/properties/c/$recursiveRef", "several schemas"},
		{nested(MaxDepth + 1), strings.Repeat("/items", MaxDepth+1), "deeper than 32"},
		{wide, "", "more than 2000"},
		{`{"type":"object","properties":{"a":{"type":"string","enum":[]}}}`, "/properties/a/enum", "empty list of values"},
		{`{"title":"` + strings.Repeat("x", MaxBytes) + `"}`, "", "longer than"},
		{`{"maximum":1e99999}`, "/maximum", "out of range"},
	} {
		_, r := Admit([]byte(tc.in))
		if r == nil || r.Pointer != tc.pointer || !strings.Contains(r.Reason, tc.reason) {
			t.Errorf("%.100s: %v, want %q at %q", tc.in, r, tc.reason, tc.pointer)
		}
	}
}

// TestSharedDefinitionsCountOnce admits what is large only once it is written
// out, and what is large only in what nothing refers to.
func TestSharedDefinitionsCountOnce(t *testing.T) {
	fan, unused := `{"$defs":{"d0":{"type":"string"}`, `{"type":"object","$defs":{"x":{}`
	for i := range 20 {
		fan += fmt.Sprintf(`,"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i+1, i, i)
	}
	for i := range 2 * MaxSubschemas {
		unused += fmt.Sprintf(`,"u%d":{"type":"string"}`, i)
	}
	for _, in := range []string{fan + `},"$ref":"#/$defs/d20"}`, unused + `}}`} {
		if _, r := Admit([]byte(in)); r != nil {
			t.Errorf("%.60s: %v", in, r)
		}
	}
}

func TestAdmitUpgrades(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"type" : "object"}`, `{"type" : "object"}`},
		{`true`, `true`},
		{
			`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"items":{"$ref":"#/definitions/a"}}`,
			`{"$defs":{"a":{"type":"string"}},"items":{"$ref":"#/$defs/a"}}`,
		},
		{
			`{"type":"array","items":[{"type":"string"},{"$ref":"#/items/0"}],"additionalItems":false}`,
			`{"type":"array","prefixItems":[{"type":"string"},{"$ref":"#/prefixItems/0"}],"items":false}`,
		},
		{`{"minimum":3,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false}`, `{"exclusiveMinimum":3,"maximum":5}`},
		{
			`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
			`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`,
		},
		{
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/properties/b","minLength":3,"description":"d"},"b":{"type":"string"}}}`,
			`{"properties":{"a":{"$ref":"#/properties/b","description":"d"},"b":{"type":"string"}}}`,
		},
		{
			`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/y","properties":{"id":{"type":"string"},"a":{"$ref":"http://x/y#/properties/id"}}}`,
			`{"properties":{"id":{"type":"string"},"a":{"$ref":"#/properties/id"}}}`,
		},
		{
			`{"$id":"https://x/root.json","$defs":{"a":{"$id":"a.json","$anchor":"here","type":"string","$defs":{"n":{"type":"null"}}}},
				"properties":{"p":{"$ref":"a.json"},"q":{"$ref":"https://x/a.json#here"},"r":{"$ref":"a.json#/$defs/n"}}}`,
			`{"$defs":{"a":{"type":"string","$defs":{"n":{"type":"null"}}}},"properties":{"p":{"$ref":"#/$defs/a"},"q":{"$ref":"#/$defs/a"},"r":{"$ref":"#/$defs/a/$defs/n"}}}`,
		},
		{
			`{"$defs":{"a/b~c %":{"type":"string"}},"items":{"$ref":"#/$defs/a~1b~0c%20%25"}}`,
			`{"$defs":{"a/b~c %":{"type":"string"}},"items":{"$ref":"#/$defs/a~1b~0c%20%25"}}`,
		},
		{`{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"}}}`, `{"properties":{"c":{"$ref":"#"}}}`},
		{`{"$recursiveAnchor":true,"properties":{"c":{"$recursiveRef":"#"}}}`, `{"properties":{"c":{"$ref":"#"}}}`},
		{`{"type":"any","properties":[],"required":true,"minLength":"3","anyOf":[],"minItems":-1,"maxItems":2.0,"multipleOf":0}`, `{"properties":{},"maxItems":2.0}`},
		{`{"properties":{"a":"string","b":{"required":["x","x",1],"description":5}}}`, `{"properties":{"b":{"required":["x"]}}}`},
		{`{"type":["object","object"],"enum":[{"$ref":"http://x"}],"default":{"type":"unknown"}}`, `{"type":["object"],"enum":[{"$ref":"http://x"}],"default":{"type":"unknown"}}`},
	} {
		d, r := Admit([]byte(tc.in))
		if r != nil {
			t.Errorf("%s: %v", tc.in, r)
			continue
		}
		if got := string(d.Root.Bytes()); got != tc.want {
			t.Errorf("%s\n got  %s\n want %s", tc.in, got, tc.want)
		}
		if u := d.Validator().Unchecked(); len(u) > 0 {
			t.Errorf("%s: %q", tc.in, u)
		}
	}
}

func TestDocumentKnowsItsPlaces(t *testing.T) {
	d, r := Admit([]byte(`{"definitions":{"T":{"properties":{"next":{"$ref":"#/definitions/T"}}},"L":{"type":"string"}},
		"properties":{"t":{"$ref":"#/definitions/T"},"l":{"$ref":"#/definitions/L"}}}`))
	if r != nil {
		t.Fatal(r)
	}
	properties := d.Root.Get("properties")
	tree, leaf := d.Target(properties.Get("t")), d.Target(properties.Get("l"))
	if d.Origin(tree) != "/definitions/T" || d.Path(tree) != "/$defs/T" {
		t.Errorf("T came from %s and is at %s", d.Origin(tree), d.Path(tree))
	}
	if !d.Cyclic(tree) || d.Cyclic(leaf) || d.Cyclic(properties.Get("t")) || !d.Recursive() {
		t.Error("recursion is found where there is none, or not where there is")
	}
	v := d.Validator()
	n, _ := Parse([]byte(`{"next":{"next":5}}`))
	if got := v.ValidateAt("/$defs/L", n); len(got) != 1 || len(v.ValidateAt("/$defs/T", n)) != 0 || len(v.ValidateAt("/nowhere", n)) != 0 {
		t.Errorf("by a part of the schema: %v", got)
	}
}

// TestAdmitIsQuick admits what is meant to take long. The limits, of processor time,
// are generous.
func TestAdmitIsQuick(t *testing.T) {
	repeat := func(s string, n int) string { return strings.Repeat(s, n) }
	for name, in := range map[string]string{
		"patterns":   `{"anyOf":[` + repeat(`{"pattern":"[\\pL\\pN\\pS]{1000}(a{1000})"},`, 1900) + `{}]}`,
		"enum":       `{"enum":[` + repeat(`1,`, 100_000) + `1]}`,
		"brackets":   repeat(`[`, 200_000),
		"objects":    repeat(`{"a":`, 40_000),
		"references": `{"anyOf":[` + repeat(`{"$ref":"#/$defs/a"},`, 1900) + `{}],"$defs":{"a":{"title":"` + repeat("x", 100_000) + `"}}}`,
		"pointers":   `{"items":{"$ref":"#` + repeat("/~1", 60_000) + `"}}`,
		"names":      `{"required":[` + repeat(`"a",`, 60_000) + `"b"]}`,
		"members":    `{"x":{` + manyMembers(20_000) + `}}`,
	} {
		var d *Document
		var refusal *Refusal
		if took := cputime.Of(func() { d, refusal = Admit([]byte(in)) }); took > time.Second {
			t.Errorf("%s: %s (%v)", name, took, refusal)
		}
		if refusal == nil {
			if took := cputime.Of(func() { d.Validator().Validate([]byte(`{}`)) }); took > 3*time.Second {
				t.Errorf("%s: judging by it took %s", name, took)
			}
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"m%d":1,`, i)
	}
	return b.String() + `"m":1`
}

// TestRecursiveUnionIsAnswered: a schema with 2^100 ways through a value gets its answer.
func TestRecursiveUnionIsAnswered(t *testing.T) {
	v := NewValidator([]byte(`{"$defs":{"a":{"anyOf":[{"items":{"$ref":"#/$defs/a"},"type":"array"},{"items":{"$ref":"#/$defs/a"},"type":"array"}]}},"$ref":"#/$defs/a"}`))
	got := v.Validate([]byte(strings.Repeat("[", 100) + "1" + strings.Repeat("]", 100)))
	if len(got) == 0 || got[0].Keyword == CostKeyword {
		t.Errorf("got %v", got)
	}
	if got := v.Validate([]byte(`[[],[[]]]`)); len(got) != 0 {
		t.Errorf("and after that: %v", got)
	}
}

func TestNullableIsOpenAPIs(t *testing.T) {
	in := []byte(`{"properties":{"a":{"type":"string","enum":["x"],"nullable":true},"b":{"anyOf":[{"type":"object","properties":{"c":{"type":"integer","nullable":true}}}],"nullable":true}}}`)
	value := []byte(`{"a":null,"b":null}`)
	if got := NewOpenAPIValidator(in).Validate(value); len(got) != 0 {
		t.Errorf("OpenAPI: %v", got)
	}
	if got := NewOpenAPIValidator(in).Validate([]byte(`{"b":{"c":null}}`)); len(got) != 0 {
		t.Errorf("inside: %v", got)
	}
	if got := NewValidator(in).Validate(value); len(got) == 0 {
		t.Error("JSON Schema knows no nullable")
	}
}

func TestEqualAndInteger(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`100`, `1e2`, true}, {`9007199254740993`, `9007199254740992`, false},
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1}`, true}, {`[1,2]`, `[2,1]`, false}, {`"1"`, `1`, false}, {`null`, `false`, false},
		{`["a","b"]`, `["a\",\"b"]`, false}, {`{"a":{},"b":1}`, `{"a":{"b":1}}`, false}, {`0.5`, `"1/2"`, false}, {`-0.0`, `0`, true}, {`[[],1]`, `[[1]]`, false},
	} {
		a, _ := Parse([]byte(tc.a))
		b, _ := Parse([]byte(tc.b))
		if Equal(a, b) != tc.want {
			t.Errorf("Equal(%s, %s) is not %v", tc.a, tc.b, tc.want)
		}
		if (a.Identity() == b.Identity()) != tc.want {
			t.Errorf("identities of %s and %s: %s and %s", tc.a, tc.b, a.Identity(), b.Identity())
		}
	}
	for in, want := range map[string]string{`3.0`: "3", `1.5e3`: "1500", `-0.0`: "0", `1.5`: "", `1e60`: "", `"3"`: ""} {
		n, _ := Parse([]byte(in))
		if got, ok := n.Integer(); got != want || ok != (want != "") {
			t.Errorf("Integer(%s) = %q %v", in, got, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1.50,"x\"",null,true,{}]}`, ` [ ] `, `{"a":1,"a":2}`, `"\ud800"`, `1e5`, `{"\u0061\/":"\\\""}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		n, err := Parse(in)
		if err != nil {
			return
		}
		out := n.Bytes()
		if strings.TrimSpace(string(in)) != string(out) {
			t.Fatalf("%q was written back as %q", in, out)
		}
		c := n.Clone()
		c.foreign = true
		if c.Kind() == Object && len(c.members) > 0 {
			c.Set(c.members[0].Name, c.members[0].Value)
		}
		again, err := Parse(c.Bytes())
		if err != nil || !Equal(n, again) {
			t.Fatalf("%q changed to %q: %v", in, c.Bytes(), err)
		}
	})
}

func FuzzAdmit(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":["string","null"],"pattern":"^a"}}}`,
		`{"$id":"http://x/y","definitions":{"a":{"$id":"#b","items":[{}, true]}},"$ref":"#b","dependencies":{"a":["b"]}}`,
		`{"anyOf":[{"$ref":"#"},{"not":{"enum":[1]}}],"exclusiveMinimum":true,"minimum":1e3}`, `true`,
		`{"$id":"aA://i/","definitions":{"":{"$id":"#b"}},"dependencies":{"":[33],"a":["b","b"]}}`, // found by fuzzing: not settled
		`{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"}},"required":true}`,
	} {
		f.Add([]byte(s), []byte(`{"a":"b"}`))
	}
	f.Fuzz(func(t *testing.T, in, value []byte) {
		var d *Document
		var refusal *Refusal
		if took := cputime.Of(func() { d, refusal = Admit(in) }); took > time.Second {
			t.Fatalf("took %s", took)
		}
		if refusal != nil {
			return
		}
		again, refusal := Admit(d.Root.Bytes())
		if refusal != nil {
			t.Fatalf("%s was admitted as %s, which is refused: %v", in, d.Root.Bytes(), refusal)
		}
		if string(again.Root.Bytes()) != string(d.Root.Bytes()) {
			t.Fatalf("%s is not settled: %s", d.Root.Bytes(), again.Root.Bytes())
		}
		d.Validator().Validate(value)
	})
}
