package dialect

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Objects whose members may have any name stay so where silence closes: XGrammar 0.1.27
// writes {} and nothing else for {"type":["object","null"],"properties":{}}.
func TestFreeObjectsCanBeFilled(t *testing.T) {
	for _, c := range []struct{ p, value string }{
		{`{"type":["object","null"]}`, `{"k":1}`},
		{`{"type":["object","string"],"description":"d"}`, `{"k":1}`},
		{`{"type":["object","null"],"minProperties":1}`, `{"k":[]}`},
		{`{"type":["object","null"],"required":["a"]}`, `{"a":1,"k":2}`},
		{`{"type":"array","items":{"type":["object","null"]}}`, `[{"k":1}]`},
		{`{"anyOf":[{"type":["object","null"]},{"type":"string"}]}`, `{"k":1}`},
	} {
		for _, name := range closedBySilence(t) {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+c.p+`},"required":["p"]}`)
			if got, ok := writable(t, plan, `{"p":`+c.value+`}`); !ok {
				t.Errorf("%s: %s: %s cannot be written\nsent %s", name, c.p, got, plan.Parameters())
			}
		}
	}
}

// closedBySilence are the dialects of engines that close objects by silence.
func closedBySilence(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range Names() {
		d, err := For(name)
		if err != nil {
			t.Fatal(err)
		}
		if d.spec.Rules.ClosedBySilence {
			names = append(names, name)
		}
	}
	return names
}

// writable reports whether an engine that closes objects by silence can write arguments, and
// returns them as it has to.
func writable(t *testing.T, plan *Plan, arguments string) (string, bool) {
	t.Helper()
	written, err := plan.Encode(json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	read := plan.meant.Clone()
	closeAllSilent(read)
	return string(written), len(schema.NewOpenAPIValidator(read.Bytes()).Validate(written)) == 0
}

// closeAllSilent closes the objects that say nothing of further members.
func closeAllSilent(n *schema.Node) {
	for sub := range n.Subschemas() {
		closeAllSilent(sub.Node)
	}
	if slices.Contains(typesOf(n), "object") && !n.Has("additionalProperties") && !n.Has("unevaluatedProperties") {
		n.Set("additionalProperties", schema.NewBool(false))
	}
}

// Members beside those of patternProperties can be written where silence closes, or the
// report says that they cannot.
func TestMembersBesidePatterns(t *testing.T) {
	for _, c := range []struct {
		p, value string
		narrows  bool
	}{
		{`{"type":"object","patternProperties":{"^x":{"type":"integer"}}}`, `{"k":"v"}`, true},
		{`{"type":"object","patternProperties":{"^(.*)$":{"type":"integer"}}}`, `{"k":1}`, false}, // a record of TypeBox
		{`{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, `{"x":1}`, false},
		{`{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":true}`, `{"k":"v"}`, false},
		{`{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, `{"k":"v"}`, false},
	} {
		for _, name := range closedBySilence(t) {
			plan := planFor(t, name, `{"type":"object","properties":{"p":`+c.p+`},"required":["p"]}`)
			narrows := false
			for _, change := range plan.Report() {
				narrows = narrows || change.Narrows
			}
			if got, ok := writable(t, plan, `{"p":`+c.value+`}`); ok == c.narrows || narrows != c.narrows {
				t.Errorf("%s: %s: %s can be written: %v, narrows: %v\nsent %s", name, c.p, got, ok, narrows, plan.Parameters())
			}
		}
	}
}
