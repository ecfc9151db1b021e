package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A field is one property of a form that a server asks for: a flat object of
// strings, numbers, booleans and choices (MCP 2025-11-25, "Elicitation",
// Requested Schema).
type field struct {
	name, title string
	description string
	kind        string // the type of the value
	choices     []choice
	several     bool // an array of choices
	required    bool
	preset      json.RawMessage // default; nil for none
	validator   *schema.Validator
}

// A choice is one value of an enumeration, and what a person reads.
type choice struct {
	value json.RawMessage
	title string
}

// readFields reads the fields of a form in their order.
func readFields(form json.RawMessage) (fields []field) {
	o := parts(form)
	required := map[string]bool{}
	names, _ := rawjson.Elements(o.Get("required"))
	for _, n := range names {
		if name, ok := rawjson.String(n); ok {
			required[name] = true
		}
	}
	for _, p := range parts(o.Get("properties")).Members {
		s := parts(p.Value)
		f := field{
			name: p.Name, required: required[p.Name], preset: s.Get("default"),
			validator: schema.NewValidator(p.Value), choices: readChoices(s),
		}
		f.title, _ = rawjson.String(s.Get("title"))
		f.description, _ = rawjson.String(s.Get("description"))
		f.kind, _ = rawjson.String(s.Get("type"))
		if f.kind == "array" {
			f.several, f.choices = true, readChoices(parts(s.Get("items")))
		}
		fields = append(fields, f)
	}
	return fields
}

func parts(raw json.RawMessage) *rawjson.Object {
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return &rawjson.Object{}
	}
	return o
}

// readChoices reads enum, with the titles of enumNames, or oneOf and anyOf with
// const and title.
func readChoices(s *rawjson.Object) (choices []choice) {
	values, _ := rawjson.Elements(s.Get("enum"))
	titles, _ := rawjson.Elements(s.Get("enumNames"))
	for i, v := range values {
		c := choice{value: v}
		if i < len(titles) {
			c.title, _ = rawjson.String(titles[i])
		}
		choices = append(choices, c)
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		branches, _ := rawjson.Elements(s.Get(keyword))
		for _, b := range branches {
			if o := parts(b); o.Get("const") != nil {
				c := choice{value: o.Get("const")}
				c.title, _ = rawjson.String(o.Get("title"))
				choices = append(choices, c)
			}
		}
	}
	return choices
}

// maxShown is how many choices of a field are shown: a server decides how many there
// are.
const maxShown = 100

// prompt is what a person is shown before they type.
func (f *field) prompt(s *Screen) string {
	name := f.name
	if f.title != "" {
		name = f.title
	}
	b := s.Bold(OneLine(name, 60))
	if f.description != "" {
		b += " " + s.Faint(OneLine(f.description, 120))
	}
	var notes []string
	switch {
	case len(f.choices) > 0:
		for i, c := range f.choices[:min(len(f.choices), maxShown)] {
			b += fmt.Sprintf("\n    %d) %s", i+1, OneLine(c.show(), 100))
		}
		if more := len(f.choices) - maxShown; more > 0 {
			b += fmt.Sprintf("\n    and %d more, which can be typed as they are called", more)
		}
		b += "\n   "
		if f.several {
			notes = append(notes, "numbers, separated by commas")
		} else {
			notes = append(notes, "a number")
		}
	case f.kind == "boolean":
		notes = append(notes, "y or n")
	case f.kind != "" && f.kind != "string":
		notes = append(notes, f.kind)
	}
	if f.preset != nil {
		notes = append(notes, "default "+OneLine(string(f.preset), 40))
	} else if !f.required {
		notes = append(notes, "optional")
	}
	if len(notes) > 0 {
		b += " (" + strings.Join(notes, ", ") + ")"
	}
	return b + ": "
}

func (c choice) show() string {
	if c.title != "" {
		return c.title
	}
	if text, ok := rawjson.String(c.value); ok {
		return text
	}
	return string(c.value)
}

// read makes a value of what was typed; nil leaves the field out. An error says
// what would be right.
func (f *field) read(line string) (json.RawMessage, error) {
	if line == "" {
		switch {
		case f.preset != nil:
			return f.preset, nil
		case f.required && (f.kind != "string" || len(f.choices) > 0):
			return nil, errors.New("a value is needed")
		case !f.required:
			return nil, nil
		}
	}
	value, err := f.parse(line)
	if err != nil {
		return nil, err
	}
	if wrong := f.validator.Validate(value); len(wrong) > 0 {
		return nil, fmt.Errorf("expected %s", wrong[0].Expected)
	}
	return value, nil
}

func (f *field) parse(line string) (json.RawMessage, error) {
	switch {
	case f.several:
		var values []json.RawMessage
		for part := range strings.SplitSeq(line, ",") {
			v, err := f.choose(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return rawjson.AppendArray(nil, values), nil
	case len(f.choices) > 0:
		return f.choose(line)
	}
	switch f.kind {
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return json.RawMessage("true"), nil
		case "n", "no", "false":
			return json.RawMessage("false"), nil
		}
		return nil, errors.New("expected y or n")
	case "integer", "number":
		if !json.Valid([]byte(line)) {
			return nil, fmt.Errorf("expected a %s", f.kind)
		}
		return json.RawMessage(line), nil
	}
	return rawjson.Quote(line), nil
}

// choose returns the choice that somebody means by its number or its name. A
// number wins, unless it is itself the name of a choice.
func (f *field) choose(text string) (json.RawMessage, error) {
	i := slices.IndexFunc(f.choices, func(c choice) bool { return c.show() == text || string(c.value) == text })
	if n, err := strconv.Atoi(text); i < 0 && err == nil && n >= 1 && n <= len(f.choices) {
		i = n - 1
	}
	if i < 0 {
		return nil, fmt.Errorf("expected a number from 1 to %d", len(f.choices))
	}
	return f.choices[i].value, nil
}
