package dialect

import (
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// TestPathsAreThoseWritten names places in the form that the model was asked
// for, not in the server's.
func TestPathsAreThoseWritten(t *testing.T) {
	for _, tc := range []struct{ name, dialect, input, raw, path string }{
		{
			"renamed", "gemini", `{"type":"object","properties":{"start date":{"type":"integer"}},"required":["start date"]}`,
			`{"start_date":"soon"}`, "/start_date",
		},
		{
			"renamed and missing", "gemini", `{"type":"object","properties":{"start date":{"type":"integer"}},"required":["start date"]}`,
			`{}`, "/start_date",
		},
		{
			"pairs", "gemini", `{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"type":"integer"}}}}`,
			`{"env":[{"key":"A","value":1},{"key":"B","value":"x"}]}`, "/env/1/value",
		},
		{
			"text", "gemini", `{"type":"object","properties":{"f":{"type":"object","minProperties":1}}}`, `{"f":"{}"}`, "/f",
		},
		{
			"flattened", "conservative",
			`{"type":"object","required":["a"],"properties":{"a":{"type":"object","required":["b"],"properties":{"b":{"type":"object","required":["c"],"properties":{
				"c":{"type":"object","required":["d"],"properties":{"d":{"type":"object","required":["e"],"properties":{
				"e":{"type":"array","items":{"type":"object","properties":{"f":{"type":"integer"}}}}}}}}}}}}}}`,
			`{"a":{"b":{"c__d__e":[{"f":"x"}]}}}`, "/a/b/c__d__e/0/f",
		},
		{
			"in the server's form", "gemini", `{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"type":"integer"}}}}`,
			`{"env":{"A":"x"}}`, "/env/A",
		},
		{
			"in a union", "gemini", `{"type":"object","properties":{"p":{"anyOf":[{"type":"object","properties":{"k v":{"type":"integer","maximum":5}},"required":["k v"]},{"type":"integer"}]}}}`,
			`{"p":{"k_v":9}}`, "/p/k_v",
		},
		{
			"strict", "openai-strict", `{"type":"object","properties":{"a":{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"string"}},"required":["n"]}},"required":["a"]}`,
			`{"a":{"n":"x","m":null}}`, "/a/n",
		},
	} {
		plan := planFor(t, tc.dialect, tc.input)
		got, _, problem := plan.Decode(tc.raw, "")
		if problem == nil || problem.Code != dragoman.CodeInvalidArguments || len(problem.Fields) != 1 || problem.Fields[0].Path != tc.path {
			t.Errorf("%s: %s gave %s, %+v, want the path %s\n%s", tc.name, tc.raw, got, problem, tc.path, plan.Parameters())
		}
	}
}

// TestUnionsAskForOne tells what one alternative wants, not what all do.
func TestUnionsAskForOne(t *testing.T) {
	plan := planFor(t, "openai", `{"type":"object","properties":{
		"scalar":{"anyOf":[{"type":"string"},{"type":"number"}]},
		"kind":{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},
			{"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"string"}},"required":["kind","y"]}]},
		"shape":{"anyOf":[{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},
			{"type":"object","properties":{"y":{"type":"string"}},"required":["y"]},{"type":"null"}]},
		"list":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"integer"}]}}}`)
	for _, tc := range []struct {
		raw    string
		fields []string
	}{
		{`{"scalar":[]}`, []string{"/scalar: one of: number or string"}},
		{`{"kind":{"kind":"b","x":1}}`, []string{"/kind/y: string"}},
		{`{"kind":{"kind":"c"}}`, []string{"/kind: one of: (/kind: expected 'a'; /x is missing: expected integer) or (/kind: expected 'b'; /y is missing: expected string)"}},
		{`{"shape":{}}`, []string{"/shape: one of: (/x is missing: expected integer) or (/y is missing: expected string)"}},
		{`{"list":["x"]}`, []string{"/list/0: integer"}},
	} {
		_, _, problem := plan.Decode(tc.raw, "")
		var got []string
		if problem != nil {
			for _, f := range problem.Fields {
				got = append(got, f.Path+": "+f.Expected)
			}
		}
		if !slices.Equal(got, tc.fields) {
			t.Errorf("%s\n got  %q\n want %q", tc.raw, got, tc.fields)
		}
	}
}

func TestEmptyEnumIsQuarantined(t *testing.T) {
	for _, name := range Names() {
		_, problem := mustFor(t, name).Plan(dragoman.Tool{Name: "t", InputSchema: []byte(`{"type":"object","properties":{"p":{"type":"string","enum":[]}}}`)})
		if problem == nil || problem.Code != dragoman.CodeInvalidTool || !strings.Contains(problem.Message, "/properties/p/enum") || !strings.Contains(problem.Message, "empty") {
			t.Errorf("%s: %+v", name, problem)
		}
	}
}

// TestClosingIsNotLossless reports what a strict form takes from the model.
func TestClosingIsNotLossless(t *testing.T) {
	for input, lossless := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                              false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`: true,
	} {
		plan := planFor(t, "openai-strict", input)
		got := true
		for _, c := range plan.Report() {
			got = got && c.Lossless
		}
		if !plan.Strict() || got != lossless {
			t.Errorf("%s: strict %v, report %+v", input, plan.Strict(), plan.Report())
		}
	}
}
