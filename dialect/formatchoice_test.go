package dialect

import (
	"bytes"
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

const rowsOutput = `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"string"}},"total":{"type":"integer"}}}`

// The choice of a form that decides nothing is left out, and nothing else is.
func TestDropFormatChoice(t *testing.T) {
	const choice = `{"type":"object","properties":{"query":{"type":"string"},"response_format":{"type":"string","enum":["markdown","json"],"default":"markdown"}},"required":["query"]}`
	for _, tt := range []struct {
		name, input, output string
		dropped             bool
	}{
		{"an enum", choice, rowsOutput, true},
		{"a definition", `{"type":"object","$defs":{"ResponseFormat":{"type":"string","enum":["markdown","json"]}},"properties":{"query":{"type":"string"},"response_format":{"$ref":"#/$defs/ResponseFormat","default":"markdown"}}}`, rowsOutput, true},
		{"or null", `{"type":"object","properties":{"response_format":{"anyOf":[{"enum":["MARKDOWN","JSON"]},{"type":"null"}]}}}`, rowsOutput, true},
		{"constants", `{"type":"object","properties":{"response_format":{"oneOf":[{"const":"md"},{"const":"json"}]}}}`, rowsOutput, true},
		{"words", `{"type":"object","properties":{"response_format":{"type":"string","description":"Either \"markdown\" or \"json\"."}}}`, rowsOutput, true},
		{"one list", choice, `{"type":"object","properties":{"items":{"type":"array"}}}`, true},
		{"closed", `{"type":"object","properties":{"query":{"type":"string"},"response_format":{"enum":["markdown","json"]}},"additionalProperties":false}`, rowsOutput, true},

		{"no output schema", choice, "", false},
		{"text in a wrapper", choice, `{"type":"object","properties":{"result":{"type":"string"}}}`, false},
		{"text or nothing in a wrapper", choice, `{"type":"object","properties":{"result":{"type":["string","null"]}}}`, false},
		{"no types in a wrapper", choice, `{"type":"object","properties":{"result":{}}}`, false},
		{"required", `{"type":"object","properties":{"response_format":{"enum":["markdown","json"]}},"required":["response_format"]}`, rowsOutput, false},
		{"no Markdown", `{"type":"object","properties":{"response_format":{"enum":["json","csv"]}}}`, rowsOutput, false},
		{"how much, too", `{"type":"object","properties":{"response_format":{"enum":["json","markdown","concise"]}}}`, rowsOutput, false},
		{"how much", `{"type":"object","properties":{"response_format":{"enum":["concise","detailed"]}}}`, rowsOutput, false},
		{"a number", `{"type":"object","properties":{"response_format":{"type":"integer","description":"1 json 2 markdown"}}}`, rowsOutput, false},
		{"others depend on it", `{"type":"object","properties":{"a":{},"response_format":{"enum":["markdown","json"]}},"dependentRequired":{"response_format":["a"]}}`, rowsOutput, false},
		{"somewhere below", `{"type":"object","properties":{"o":{"type":"object","properties":{"response_format":{"enum":["markdown","json"]}}}}}`, rowsOutput, false},
	} {
		for _, name := range Names() {
			plain, err := For(name)
			if err != nil {
				t.Fatal(err)
			}
			tool := dragoman.Tool{Name: "rows", InputSchema: json.RawMessage(tt.input), OutputSchema: json.RawMessage(tt.output)}
			plan, problem := plain.With(Options{NoFormatChoice: true}).Plan(tool)
			if problem != nil {
				t.Fatalf("%s: %s: %s", name, tt.name, problem.Message)
			}
			reported := false
			for _, c := range plan.Report() {
				reported = reported || c.Pass == "dropFormatChoice" && c.Narrows && c.Pointer == "/properties/response_format"
			}
			if offered := bytes.Contains(plan.Parameters(), []byte("response_format")) || plan.Wide(); offered == tt.dropped || reported != tt.dropped {
				t.Errorf("%s: %s: offered %v, reported %v\n%s", name, tt.name, offered, reported, plan.Parameters())
			}
			if tt.dropped && bytes.Contains(plan.Parameters(), []byte("ResponseFormat")) {
				t.Errorf("%s: %s: what it referred to is left behind: %s", name, tt.name, plan.Parameters())
			}
			if kept, _ := plain.Plan(tool); !bytes.Contains(kept.Function(), []byte("response_format")) {
				t.Errorf("%s: %s: left out without being asked", name, tt.name)
			}
		}
	}
}

// A model that sends the parameter that it was not offered is understood, and one
// that sends a wrong value of it is told.
func TestDroppedFormatIsTaken(t *testing.T) {
	tool := dragoman.Tool{
		Name:         "rows",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","default":5},"response_format":{"type":"string","enum":["markdown","json"]}},"required":["query"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(rowsOutput),
	}
	for _, name := range Names() {
		d, err := For(name)
		if err != nil {
			t.Fatal(err)
		}
		plan, problem := d.With(Options{NoFormatChoice: true}).Plan(tool)
		if problem != nil {
			t.Fatal(problem)
		}
		for _, arguments := range []string{
			`{"query":"q"}`,
			`{"query":"q","response_format":"markdown"}`,
			`{"query":"q","limit":7,"response_format":"json"}`,
		} {
			if got, _, problem := plan.Decode(arguments, "tool_calls"); problem != nil || string(got) != arguments {
				t.Errorf("%s: %s came back as %s, %v", name, arguments, got, problem)
			}
		}
		if got, _, problem := plan.Decode(`{"query":"q","response_format":"pdf"}`, "tool_calls"); problem == nil {
			t.Errorf("%s: a wrong value was taken: %s", name, got)
		}
	}
}

// Where another parameter refers to it, it stays in dialects that take the
// reference, and is written out at the other one before it goes elsewhere.
func TestDropFormatChoiceKeepsReferences(t *testing.T) {
	tool := dragoman.Tool{
		Name:         "rows",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/properties/response_format"},"response_format":{"enum":["markdown","json"]}}}`),
		OutputSchema: json.RawMessage(rowsOutput),
	}
	pointers, err := Builtin().Derive("pointers", "openai", func(spec any) error {
		spec.(*Spec).Rules.Cells = map[Feature]Cell{RefPointer: {}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(Names(), "pointers") {
		d, err := pointers.For(name)
		if err != nil {
			t.Fatal(err)
		}
		plan, problem := d.With(Options{NoFormatChoice: true}).Plan(tool)
		if problem != nil {
			t.Fatal(problem)
		}
		sent := plan.Parameters()
		if bytes.Contains(sent, []byte("#/properties")) != bytes.Contains(sent, []byte(`"response_format":`)) || !bytes.Contains(sent, []byte("markdown")) {
			t.Errorf("%s: %s", name, sent)
		}
		if kept := bytes.Contains(sent, []byte("#/properties")); kept != (name == "pointers") {
			t.Errorf("%s: the reference was kept: %v", name, kept)
		}
	}
}
