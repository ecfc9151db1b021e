package toolkit

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A part contains parts, and has rules of its own at the root.
type part struct {
	Name  string `json:"name" min:"1"`
	Grade string `json:"grade" enum:"a,b"`
	Parts []part `json:"parts,omitempty" max:"9"`
}

// TestRecursiveRoot wants a type that contains itself, with rules, to serve as
// arguments and as a result. Both get members beside those of the type, and what
// is below the root does not.
func TestRecursiveRoot(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{
		Name: "copy_part", Description: "Copies.", Hints: reading, Markdown: true,
		Examples: []Example{{"Copy", `{"name":"lid","grade":"a","parts":[{"name":"knob","grade":"b"}]}`}},
	}, func(_ context.Context, p part) (part, error) { return p, nil })
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	session := dial(t, s, legacy, nil)
	whole := `{"name":"lid","grade":"a","parts":[{"name":"knob","grade":"b"}]}`
	if got := call(t, session, "copy_part", whole); got.failed || got.data != `{"grade":"a","name":"lid","parts":[{"grade":"b","name":"knob"}]}` {
		t.Errorf("got %+v", got)
	}
	for arguments, want := range map[string]string{
		`{"name":"lid","grade":"a","parts":[{"name":"knob","grade":"c"}]}`:                          `Invalid arguments for copy_part: parts.0.grade: expected one of 'a', 'b', got "c".`,
		`{"name":"lid","grade":"a","parts":[{"name":"knob","grade":"b","response_format":"json"}]}`: "Invalid arguments for copy_part: unknown property 'parts.0.response_format'.",
	} {
		if got := call(t, session, "copy_part", arguments); !got.failed || got.text != want {
			t.Errorf("%s: %+v, want %s", arguments, got, want)
		}
	}
}

// TestSchemaThatCannotBeChecked refuses everything rather than letting it pass.
func TestSchemaThatCannotBeChecked(t *testing.T) {
	s, err := shapeOf(reflect.TypeFor[part](), true)
	if err != nil {
		t.Fatal(err)
	}
	b := &binding{in: s, accepts: schema.NewValidator([]byte(`{"$defs":{"a":{},"a":{}}}`))}
	if _, err := b.accept([]byte(`{"name":"x","grade":"a"}`)); err == nil || !strings.Contains(err.Error(), "cannot check") {
		t.Errorf("arguments: %v", err)
	}
	b = &binding{out: s, delivers: b.accepts, characters: 1000, total: 2000}
	if res, err := b.deliver(reply{value: part{Name: "x", Grade: "a"}}, false); err == nil {
		t.Errorf("result: %v", res)
	}
}
