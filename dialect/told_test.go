package dialect

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// The checker names what no provider takes in a schema, wherever it stands.
func TestCheckFaults(t *testing.T) {
	for _, c := range []struct {
		rules  *Rules
		schema string
		fault  string // empty for none
	}{
		{none(), `{"type":"object","properties":{"p":{"anyOf":[]}}}`, "anyOf is empty"},
		{none(), `{"type":"object","properties":{"p":{"anyOf":[{"type":"string"}]}}}`, ""},
		{none(), `{"type":"object","properties":{"p":{"$ref":"#/$defs/no"}}}`, "a reference to nothing"},
		{none().with(func(r *Rules) { r.NamesBesideOpen = "^[a-z]+$" }), `{"type":"object","properties":{"a-b":{}},"additionalProperties":{}}`, "a-b beside further members"},
		{none().with(func(r *Rules) { r.NamesBesideOpen = "^[a-z]+$" }), `{"type":"object","properties":{"ab":{}},"additionalProperties":{}}`, ""},
		{none().with(func(r *Rules) { r.NamesBesideOpen = "^[a-z]+$" }), `{"type":"object","properties":{"a-b":{}},"additionalProperties":false}`, ""},
		{none().with(func(r *Rules) { r.NamesBesideOpen = "^[a-z]+$" }), `{"type":"object","properties":{"a-b":{}}}`, ""},
		{none(), `{"type":"object","properties":{"a-b":{}},"additionalProperties":{}}`, ""},
	} {
		root, err := schema.Parse([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		faults := strings.Join(check(root, c.rules).faults, "\n")
		if c.fault == "" && faults != "" || !strings.Contains(faults, c.fault) {
			t.Errorf("%s: %q, want %q", c.schema, faults, c.fault)
		}
	}
}

// What is taken from the root is told to people in the report, and to the model in the
// tool's description.
func TestRootKeywordsAreTold(t *testing.T) {
	doc, refusal := schema.Admit([]byte(`{"type":"object","properties":{"a":{"type":"string"}},"not":{"required":["b"]}}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	c := &conversion{rules: none(RootCombinator), doc: doc, tool: "t"}
	c.begin()
	c.mergeRoot()
	if c.root.Has("not") || len(c.notes) != 1 || c.notes[0] != `Arguments must also satisfy not {"required":["b"]}.` {
		t.Errorf("%s with the notes %q", c.root.Bytes(), c.notes)
	}
	if len(c.report) != 1 || c.report[0].Pass != "mergeRoot" || c.report[0].Why != "not is not taken at the root" {
		t.Errorf("the report is %+v", c.report)
	}
}

// What stands beside a reference and cannot be merged with it is told, where the two
// cannot stand side by side either.
func TestBesideAReferenceIsTold(t *testing.T) {
	doc, refusal := schema.Admit([]byte(`{"type":"object","properties":{"p":{"$ref":"#/$defs/A","pattern":"b"}},"$defs":{"A":{"type":"string","pattern":"a"}}}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	c := &conversion{rules: none(RefDefs, AllOfMulti, AllOfSingle), doc: doc, tool: "t"}
	c.begin()
	c.inlineRefs()
	said := ""
	for _, change := range c.report {
		said += change.Pass + ": " + change.Why + "\n"
	}
	if p := string(c.root.Get("properties").Get("p").Bytes()); p != `{"type":"string","pattern":"a"}` || !strings.Contains(said, "inlineRefs: what stands beside the reference cannot be merged with it") {
		t.Errorf("%s, which says %s", p, said)
	}
}

// A tuple that admits fewer items than it names is written as long as it may be.
func TestTupleShorterThanItsNames(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"number"},{"type":"null"}],"maxItems":2,"minItems":2}`: `{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"minItems":2,"maxItems":2}`,
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"maxItems":2,"minItems":2}`:                 `{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"minItems":2,"maxItems":2}`,
	} {
		doc, refusal := schema.Admit([]byte(`{"type":"object","properties":{"p":` + in + `}}`))
		if refusal != nil {
			t.Fatal(refusal)
		}
		c := &conversion{rules: none().with(func(r *Rules) { r.Tuples = "exact" }), doc: doc, tool: "t"}
		c.begin()
		c.writeTuples()
		p := c.root.Get("properties").Get("p")
		wanted, err := schema.Parse([]byte(want))
		if err != nil || !schema.Equal(p, wanted) {
			t.Errorf("%s became %s, want %s", in, p.Bytes(), want)
		}
	}
}

// Without any type, a word of Python for nothing is nothing only where null is admitted.
func TestTextWithoutAType(t *testing.T) {
	for _, c := range []struct {
		text  string
		types []string
		rule  string // of the first attempt; empty for none
		value string
	}{
		{"None", []string{"null", "integer"}, "nullFromString", "null"},
		{"None", []string{"integer"}, "", ""},
		{"none", []string{"null"}, "", ""},
		{"True", nil, "booleanFromString", "true"},
		{"FALSE", []string{"boolean"}, "booleanFromString", "false"},
		{"True", []string{"integer"}, "", ""},
		{"{", nil, "", ""},
	} {
		attempts := fromText(c.text, c.types)
		switch {
		case len(attempts) == 0:
			if c.rule != "" {
				t.Errorf("%s as %v: nothing", c.text, c.types)
			}
		case attempts[0].rule != c.rule || string(attempts[0].to.Bytes()) != c.value:
			t.Errorf("%s as %v: %s by %s", c.text, c.types, attempts[0].to.Bytes(), attempts[0].rule)
		}
	}
}
