package session

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/result"
)

func TestOutputSchemaIsChecked(t *testing.T) {
	var o outputs
	tool := &dragoman.Tool{OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	if err := o.check(tool, json.RawMessage(`{"n":1}`)); err != nil {
		t.Errorf("a result that fits: %v", err)
	}
	for range 2 { // the second time from what is kept
		if err := o.check(tool, json.RawMessage(`{"n":"x"}`)); err == nil || !strings.Contains(err.Error(), "/n") {
			t.Errorf("a result that does not fit: %v", err)
		}
	}
	if err := o.check(&dragoman.Tool{}, json.RawMessage(`{}`)); err != nil {
		t.Errorf("without a schema: %v", err)
	}
}

// The choice between JSON and Markdown is offered only where it decides something
// for whoever reads the results.
func TestFormatChoiceIsOffered(t *testing.T) {
	tool := dragoman.Tool{
		Name: "rows", Server: "books", Original: "rows",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"response_format":{"enum":["markdown","json"]}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array"},"total":{"type":"integer"}}}`),
	}
	raw := result.Form{Profile: result.Raw}
	for _, tt := range []struct {
		name    string
		options Options
		want    Want
		offered bool
	}{
		{"by default", Options{}, Want{}, false},
		{"for a dialect", Options{}, Want{Dialect: "openai-strict"}, false},
		{"kept by the operator", Options{KeepFormatChoice: true}, Want{}, true},
		{"raw by the operator", Options{Results: Results{Form: raw}}, Want{}, true},
		{"raw for some tool", Options{Results: Results{Tools: []ToolResults{{Match: "books__*", Form: raw}}}}, Want{}, true},
		{"raw by the request", Options{}, Want{Profile: result.Raw}, true},
		{"not raw by the request", Options{Results: Results{Form: raw}}, Want{Profile: result.Envelope}, false},
	} {
		tt.options.Tools, tt.options.Dialects = Shared(&listed{&dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{tool})}}), dialect.Builtin()
		s, err := New(tt.options).Open(t.Context(), caller.Local, tt.want)
		if err != nil {
			t.Fatal(err)
		}
		plan, problem := s.Dialect.Plan(tool)
		if problem != nil {
			t.Fatal(problem)
		}
		if offered := strings.Contains(string(plan.Function()), "response_format"); offered != tt.offered {
			t.Errorf("%s: offered: %v", tt.name, offered)
		}
	}
}
