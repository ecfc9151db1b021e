package dialect

import (
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

func TestDocumentFind(t *testing.T) {
	d, err := For("openai-strict")
	if err != nil {
		t.Fatal(err)
	}
	closed := []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	doc := d.ConvertTools([]dragoman.Tool{
		{Name: "a__read", Original: "read", InputSchema: closed},
		{Name: "b__read", Original: "read", InputSchema: closed},
		{Name: "b.dotted", Original: "dotted", InputSchema: closed},
		{Name: "c__write", Original: "write", InputSchema: closed},
		{Name: "C__WRITE", Original: "WRITE", InputSchema: closed},
		{Name: "broken", Original: "broken", InputSchema: []byte(`7`)},
		{Name: "last", Original: "last", InputSchema: closed},
	})
	check := func(name, want string) {
		t.Helper()
		tool, plan := doc.Find(name)
		switch {
		case (tool == nil) != (plan == nil):
			t.Errorf("%s: a tool without its plan, or a plan without its tool", name)
		case tool == nil && want != "", tool != nil && tool.Name != want:
			t.Errorf("%s finds %v, want %q", name, tool, want)
		}
	}
	for name, want := range map[string]string{
		"a__read": "a__read", "A__Read": "a__read",
		"read":     "", // which one?
		"b_dotted": "b.dotted", "b.dotted": "b.dotted", "dotted": "b.dotted",
		"c__write": "c__write", "C__WRITE": "C__WRITE", "C__Write": "", "Write": "",
		"broken": "", "nothing": "", "": "",
		"last": "last",
	} {
		check(name, want)
	}
	doc.Fit(d, Budget{Tools: 2})
	check("a__read", "a__read")
	check("last", "") // there was no room for it
	check("read", "")
}

// What a model wrote for a tool that there is not is decoded like the rest of what it wrote:
// names that models make up end no program.
func TestDecodeOfNoTool(t *testing.T) {
	tool, plan := (&Document{}).Find("made_up")
	for _, grade := range []Grade{GradeOf(tool), Likely} {
		arguments, _, problem := plan.DecodeAs(`{}`, "tool_calls", grade)
		if arguments != nil || problem == nil || problem.Code != dragoman.CodeUnknownTool {
			t.Errorf("%s, %v", arguments, problem)
		}
	}
}

// A tool that goes out not strict after all is found with the plan that it goes out
// with.
func TestDocumentFindAfterFit(t *testing.T) {
	base, err := Builtin().Derive("one-strict", "openai-strict", func(spec any) error {
		spec.(*Spec).Wire.MaxStrictTools = 1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := base.For("one-strict")
	if err != nil {
		t.Fatal(err)
	}
	closed := []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	doc := d.ConvertTools([]dragoman.Tool{{Name: "one", InputSchema: closed}, {Name: "two", InputSchema: closed}})
	doc.Fit(d, Budget{})
	for name, strict := range map[string]bool{"one": true, "two": false} {
		if tool, plan := doc.Find(name); tool == nil || plan.Strict() != strict {
			t.Errorf("%s: %v, strict is not %v", name, tool, strict)
		}
	}
}
