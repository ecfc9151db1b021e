package toolkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// A Schemer is a type that knows its own JSON Schema (2020-12), for types whose
// JSON the toolkit cannot see: those with a MarshalJSON method, unions, schemas
// with keywords that no tag has. The method is called on a zero value.
type Schemer interface {
	JSONSchema() json.RawMessage
}

// own takes the schema that a type has itself.
func (s *survey) own(found *shape, t reflect.Type, path string) {
	text, err := ownSchema(t)
	switch from := promoted(t, text); {
	case err != nil:
		s.fail(path, "the JSONSchema method of %s panics for a zero value: %v", t, err)
	case !json.Valid(text):
		s.fail(path, "the JSONSchema method of %s returns no JSON", t)
	case from != nil:
		s.fail(path, "%s has the JSONSchema method of %s, which it embeds and which says nothing of its other fields; "+
			"give it a method of its own, or make %s a field with a name", t, from, from)
	default:
		found.custom = text
		return
	}
	found.custom = json.RawMessage("{}")
}

func ownSchema(t reflect.Type) (text json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil { // a method of an embedded pointer, say
			err = fmt.Errorf("%v", p)
		}
	}()
	return reflect.New(t).Interface().(Schemer).JSONSchema(), nil
}

// promoted returns the embedded type whose JSONSchema method a struct with more fields has
// for its own; nil for none. Reflection tells such a method by its answer alone.
func promoted(t reflect.Type, text json.RawMessage) reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var from reflect.Type
	written := 0
	for i := range t.NumField() {
		f := t.Field(i)
		of := f.Type
		if f.Anonymous && of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if f.Tag.Get("json") == "-" || !f.IsExported() && !(f.Anonymous && of.Kind() == reflect.Struct) {
			continue
		}
		written++
		if f.Anonymous && reflect.PointerTo(of).Implements(schemerType) {
			if its, err := ownSchema(of); err == nil && bytes.Equal(its, text) {
				from = of
			}
		}
	}
	if from != nil && written == 1 {
		return promoted(from, text)
	}
	return from
}
