package toolkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Limits of what a call's arguments may hold. They stand before the schema,
// because checking a number such as 1e999999999 against a minimum would first
// write it out.
const (
	maxNumberLength = 1000 // characters of one number
	maxExponent     = 1000 // magnitude
	maxDepth        = 64   // nested objects and arrays
	maxViolations   = 16   // told at once
)

// formatField is the parameter that tools with a result get.
var formatField = &field{
	name: "response_format",
	at: &place{of: &shape{kind: kindText, exact: -1}, rules: rules{
		desc:     "Form of the text: json for further processing, markdown for showing it to people",
		enum:     []json.RawMessage{json.RawMessage(`"json"`), json.RawMessage(`"markdown"`)},
		fallback: json.RawMessage(`"json"`),
	}},
}

// arguments are those of one call, valid and complete.
type arguments struct {
	node     *schema.Node
	in       *shape
	markdown bool
}

// accept reads the arguments of a call. Errors are for the model.
func (b *binding) accept(raw json.RawMessage) (arguments, error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	n, err := readArguments(raw)
	if err != nil {
		return arguments{}, &Refusal{Code: codeInvalid, Message: err.Error() + "."}
	}
	if err := b.fit(n); err != nil {
		return arguments{}, &Refusal{Code: codeInvalid, Message: err.Error() + "."}
	}
	if b.in.kind == kindObject {
		b.in.fill(n)
	}
	return arguments{node: n, in: b.in, markdown: b.tool.Markdown && n.Get(formatField.name).IsString("markdown")}, nil
}

// readArguments reads JSON strictly: one value, no duplicate names, valid UTF-8,
// and nothing beyond the limits above.
func readArguments(raw []byte) (*schema.Node, error) {
	n, err := schema.Parse(raw)
	if err != nil {
		return nil, err
	}
	return n, modest(n, "arguments", 0)
}

func modest(n *schema.Node, at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch n.Kind() {
	case schema.Object:
		for _, m := range n.Members() {
			if err := modest(m.Value, join(at, m.Name), depth+1); err != nil {
				return err
			}
		}
	case schema.Array:
		for i, item := range n.Items() {
			if err := modest(item, join(at, strconv.Itoa(i)), depth+1); err != nil {
				return err
			}
		}
	case schema.Number:
		number := n.Text()
		if len(number) > maxNumberLength {
			return fmt.Errorf("%s: number of %d characters, at most %d are accepted", at, len(number), maxNumberLength)
		}
		if i := strings.IndexAny(number, "eE"); i >= 0 {
			if exp, err := strconv.Atoi(number[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
				return fmt.Errorf("%s: exponent of %s is out of range, at most ±%d is accepted", at, number, maxExponent)
			}
		}
	}
	return nil
}

// join writes a place as people do: data.items.3.
func join(at, name string) string {
	if at == "arguments" {
		return name
	}
	return at + "." + name
}

// fit says what keeps the arguments from fitting the schema: which fields, and
// what was expected there.
func (b *binding) fit(n *schema.Node) error {
	var said []string
	// A schema that cannot be compiled would let everything pass.
	if !b.accepts.Compiles() {
		return fmt.Errorf("the server cannot check them: %s", strings.Join(b.accepts.Unchecked(), "; "))
	}
	wrong := map[string]bool{} // places that were told already
	for _, v := range b.accepts.ValidateNode(n) {
		said = append(said, b.say(n, v))
		wrong[dotted(v.Path)] = true
	}
	b.in.finer(n, "arguments", func(at, expected string) {
		if !wrong[at] {
			said = append(said, at+": expected "+expected)
		}
	})
	return told(said)
}

// told is one error for all that was found, so that a model can mend it in one
// round, and nil for nothing.
func told(said []string) error {
	if len(said) == 0 {
		return nil
	}
	if more := len(said) - maxViolations; more > 0 {
		said = append(said[:maxViolations], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(said, "; "))
}

// dotted writes a JSON pointer as people do.
func dotted(pointer string) string {
	at := strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(at)
}

// say puts one violation into words for a model.
func (b *binding) say(n *schema.Node, v schema.Violation) string {
	at := dotted(v.Path)
	got := n.At(v.Path)
	switch {
	case v.Missing:
		text := fmt.Sprintf("missing property '%s', expected %s", at, v.Expected)
		if f := b.in.field(at); f != nil && f.at.rules.desc != "" {
			text += " (" + f.at.rules.desc + ")"
		}
		return text
	case v.Keyword == "additionalProperties":
		var known []string
		if !strings.Contains(at, ".") {
			for _, f := range b.in.fields {
				known = append(known, f.name)
			}
		}
		text := fmt.Sprintf("unknown property '%s'", at)
		if len(known) > 0 {
			text += ", known are " + strings.Join(known, ", ")
		}
		return text
	case at == "":
		at = "arguments"
	}
	text := fmt.Sprintf("%s: expected %s", at, v.Expected)
	if got == nil {
		return text
	}
	if v.Keyword == "type" {
		text += ", got " + kindWords[got.Kind()]
		if got.Kind() == schema.Null {
			text += "; leave the property out instead"
		}
	} else if given := got.Bytes(); len(given) <= 60 {
		text += ", got " + string(given)
	}
	return text
}

var kindWords = map[schema.Kind]string{
	schema.Null: "null", schema.Bool: "boolean", schema.Number: "number",
	schema.String: "string", schema.Array: "array", schema.Object: "object",
}

// fill adds defaults where members are absent, at every depth that is there.
func (s *shape) fill(n *schema.Node) {
	switch {
	case s.kind == kindObject && n.Kind() == schema.Object:
		for _, f := range s.fields {
			member := n.Get(f.name)
			if member == nil && f.at.rules.fallback != nil {
				if value, err := schema.Parse(f.at.rules.fallback); err == nil {
					n.Set(f.name, value)
				}
			} else if member != nil {
				f.at.of.fill(member)
			}
		}
	case s.kind == kindList:
		for _, item := range n.Items() {
			s.item.of.fill(item)
		}
	case s.kind == kindDict:
		for _, m := range n.Members() {
			s.item.of.fill(m.Value)
		}
	}
}

// decode reads the arguments into a Go value.
func (a arguments) decode(into any) error {
	err := json.Unmarshal(a.node.Bytes(), into)
	if err == nil {
		return nil
	}
	// A schema takes 3.0 for an integer; Go does not.
	a.in.plainIntegers(a.node)
	if err = json.Unmarshal(a.node.Bytes(), into); err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return Invalid(wrong.Field, "%s is out of the range of %s.", wrong.Value, wrong.Type)
	}
	return &Refusal{Code: codeInvalid, Message: "the arguments cannot be read: " + err.Error() + "."}
}

func (s *shape) plainIntegers(n *schema.Node) {
	switch s.kind {
	case kindInteger:
		if plain, ok := n.Integer(); ok {
			n.Become(schema.NewNumber(plain))
		}
	case kindObject:
		for _, f := range s.fields {
			if m := n.Get(f.name); m != nil {
				f.at.of.plainIntegers(m)
			}
		}
	case kindList, kindDict:
		for _, item := range n.Items() {
			s.item.of.plainIntegers(item)
		}
		for _, m := range n.Members() {
			s.item.of.plainIntegers(m.Value)
		}
	}
}
