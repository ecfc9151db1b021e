package toolkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A form is what a person can be asked to fill in.
type form struct {
	schema  json.RawMessage // as MCP wants it
	binding *binding        // judges answers
}

// FormSchema returns the schema of the form that [Ask] shows for a T. The error names
// every field that cannot be in one (MCP 2025-11-25, "Elicitation": primitive types).
func FormSchema[T any]() (json.RawMessage, error) {
	f, err := formFor[T]()
	if err != nil {
		return nil, err
	}
	return f.schema, nil
}

// forms are those of types that were asked for; there are as many as the program has
// types.
var forms sync.Map // reflect.Type → *form

func formFor[T any]() (*form, error) {
	t := reflect.TypeFor[T]()
	if known, ok := forms.Load(t); ok {
		return known.(*form), nil
	}
	b, err := checkFor(t)
	if err != nil {
		return nil, err
	}
	if b.in.kind != kindObject {
		return nil, fmt.Errorf("a form is a struct, not %s", t)
	}
	var problems []error
	for _, f := range b.in.fields {
		if why := f.at.unfillable(); why != "" {
			problems = append(problems, fmt.Errorf("%s.%s: %s", typeName(t), f.goName, why))
		}
	}
	text := b.in.schema(true)
	if err := errors.Join(append(problems, b.in.checkSamples(text))...); err != nil {
		return nil, err
	}
	known, _ := forms.LoadOrStore(t, &form{plainForm(text), b})
	return known.(*form), nil
}

// formFormats are those of texts in forms.
var formFormats = []string{"", "date", "date-time", "email", "uri"}

// unfillable says why a field cannot be in a form; empty where it can.
func (p *place) unfillable() string {
	s, r := p.of, &p.rules
	switch {
	case p.nullable:
		return "nothing in a form is null; leave out what is not required"
	case r.above != "" || r.below != "" || r.factor != "":
		return "a form has min and max, and no other bounds of numbers"
	case len(r.enum) > 0 && s.leaf().kind != kindText:
		return "a form has an enum of texts alone; clients show none of other values"
	case !slices.Contains(formFormats, r.format):
		return "the formats of forms are date, date-time, email and uri"
	}
	switch s.kind {
	case kindInteger, kindNumber, kindBoolean, kindTime:
		return ""
	case kindText:
		if !s.base64 {
			return ""
		}
	case kindList:
		if s.item.of.kind == kindText && len(r.enum) > 0 {
			return ""
		}
	}
	return fmt.Sprintf("a form has texts, numbers, booleans, times, and lists of texts with an enum, and not %s", s.goType)
}

// plainForm takes out of a schema what forms do not have.
func plainForm(text json.RawMessage) json.RawMessage {
	o, _ := rawjson.ParseObject(text) // we made it
	o.Delete("additionalProperties")
	properties, _ := rawjson.ParseObject(o.Get("properties"))
	for _, m := range properties.Members {
		property, _ := rawjson.ParseObject(m.Value)
		for _, name := range []string{"examples", "uniqueItems", "x-mcp-header"} {
			property.Delete(name)
		}
		properties.Set(m.Name, property.Bytes())
	}
	o.Set("properties", properties.Bytes())
	return o.Bytes()
}
