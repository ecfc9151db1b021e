package dialect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
	"github.com/dragoman-mcp/dragoman/schema"
)

// doubling is a tool whose schema has n definitions, each of which uses the one before
// twice, around a text.
func doubling(n int, form string) dragoman.Tool {
	defs := `"d0":{"type":"string","pattern":"^x*$","minLength":3}`
	for i := range n {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i)
		defs += fmt.Sprintf(`,"d%d":`, i+1) + fmt.Sprintf(form, ref, ref)
	}
	return dragoman.Tool{Name: "t", InputSchema: fmt.Appendf(nil,
		`{"type":"object","properties":{"text":{"$ref":"#/$defs/d%d"},"n":{"type":"integer"}},"required":["text"],"$defs":{%s}}`, n, defs)}
}

// TestDecodingByADoublingSchema: what a schema with 2^22 ways through it asks of a
// megabyte of text is answered in the time that reading it takes, in every dialect.
func TestDecodingByADoublingSchema(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for _, form := range []string{`{"allOf":[%s,%s]}`, `{"anyOf":[%s,%s]}`} {
		for _, name := range Names() {
			plan, problem := mustFor(t, name).convert(doubling(22, form))
			if problem != nil {
				t.Errorf("%s in %s: %v", form, name, problem)
				continue
			}
			for _, call := range []struct {
				arguments string
				fits      bool
			}{
				{`{"text":"` + text + `","n":1}`, true},
				{`{"text":"` + text + `","n":"1"}`, true},
				{`{"text":"` + text + `y","n":1}`, false},
			} {
				var wrong *dragoman.Problem
				took := cputime.Of(func() { _, _, wrong = plan.Decode(call.arguments, "tool_calls") })
				if took > thinned*3*time.Second || (wrong == nil) != call.fits && !plan.Wide() {
					t.Errorf("%s in %s: %s, %.300v", form, name, took, wrong)
				}
			}
		}
	}
}

// TestDecodingIsPaidFor: a value that fits nothing, in schemas that have many ways to
// read it, ends by what was read, whatever has to be mapped and repaired.
func TestDecodingIsPaidFor(t *testing.T) {
	var alternatives, properties []string
	for i := range 60 {
		alternatives = append(alternatives, fmt.Sprintf(`{"type":"object","properties":{"k":{"const":"%d"},"o":{"type":["string","null"]},"n":{"$ref":"#/$defs/T"},"p%d":{"type":"integer"}},"required":["k"]}`, i, i))
		properties = append(properties, fmt.Sprintf(`"property_%d":{"type":"integer"}`, i))
	}
	for what, call := range map[string]struct{ schema, arguments string }{
		"recursive alternatives": {
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/T"}},"$defs":{"T":{"anyOf":[` + strings.Join(alternatives, ",") + `]}}}`,
			`{"n":` + strings.Repeat(`{"k":"x","o":null,"n":`, 100) + `"` + strings.Repeat("z", 100_000) + `"` + strings.Repeat("}", 100) + `}`,
		},
		"a long list of wrong items": {
			`{"type":"object","properties":{"n":{"type":"array","items":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},{"type":"boolean"}]}}}}`,
			`{"n":[` + strings.Repeat(`{"a":"x"},"7",`, 40_000) + `1]}`,
		},
		"names that nearly fit": {
			`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"additionalProperties":false}`,
			`{` + func() string {
				var b strings.Builder
				for i := range 60_000 {
					fmt.Fprintf(&b, `"propertyy_%d":1,`, i)
				}
				return b.String()
			}() + `"a":1}`,
		},
	} {
		for _, name := range []string{"openai-strict", "llamacpp"} {
			plan, problem := mustFor(t, name).convert(dragoman.Tool{Name: "t", InputSchema: []byte(call.schema)})
			if problem != nil {
				t.Fatalf("%s in %s: %v", what, name, problem)
			}
			if took := cputime.Of(func() { plan.Decode(call.arguments, "tool_calls") }); took > thinned*8*time.Second {
				t.Errorf("%s in %s: %s", what, name, took)
			} else {
				t.Logf("%s in %s: %s", what, name, took)
			}
		}
	}
}

// TestCrowdedArgumentsAreNotRead: neither strictly nor tolerantly.
func TestCrowdedArgumentsAreNotRead(t *testing.T) {
	plan, problem := mustFor(t, "openai").convert(dragoman.Tool{Name: "t", InputSchema: []byte(`{"type":"object"}`)})
	if problem != nil {
		t.Fatal(problem)
	}
	crowd := `{"a":[` + strings.Repeat("1,", 600_000)
	for _, arguments := range []string{crowd + `1]}`, crowd + `]}`} {
		if _, _, problem := plan.Decode(arguments, "tool_calls"); problem == nil || !strings.Contains(problem.Message, "more than") {
			t.Errorf("%v", problem)
		}
	}
}

// TestDeclaringIsCheap: of what many members refer to it is found out once whether anything
// fits it, however long its allOf is.
func TestDeclaringIsCheap(t *testing.T) {
	target := schema.NewObject(schema.Member{Name: "allOf", Value: schema.NewArray(slices.Repeat([]*schema.Node{schema.NewObject()}, 100_000)...)})
	members := schema.NewObject()
	for i := range 1000 {
		members.Set(fmt.Sprintf("m%d", i), schema.NewObject(schema.Member{Name: "$ref", Value: schema.NewString("#/$defs/A")}))
	}
	d := declaring{target: func(n *schema.Node) *schema.Node {
		if n.Has("$ref") {
			return target
		}
		return nil
	}}
	took := cputime.Of(func() { d.in(schema.NewObject(schema.Member{Name: "properties", Value: members})) })
	if took > thinned*time.Second || len(d.names) != 1000 {
		t.Errorf("%d members in %s", len(d.names), took)
	}
}
