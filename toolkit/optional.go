package toolkit

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// An Optional is a field that tells three things apart: that it is absent, that
// it is null, and that it has a value, zero included. It is what an update needs:
//
//	type Change struct {
//		ID    int                      `json:"id"`
//		Title toolkit.Optional[string] `json:"title,omitzero" desc:"New title; left out: stays" min:"1"`
//		Due   toolkit.Optional[string] `json:"due,omitzero" format:"date" desc:"null: no longer due"`
//	}
//
// The field is not required, its schema is that of T or null, and the tags speak
// of T. Where null means nothing, say `nullable:"false"`. It is for fields of
// structs alone, not for items of lists.
type Optional[T any] struct {
	// Present reports that the field was there, null or not.
	Present bool
	// Null reports that it was null.
	Null bool
	// Value is T's zero value where there is none.
	Value T
}

// Some is an Optional with a value.
func Some[T any](value T) Optional[T] { return Optional[T]{Present: true, Value: value} }

// Get returns the value, and whether there is one that is not null.
func (o Optional[T]) Get() (value T, ok bool) { return o.Value, o.Present && !o.Null }

// Apply puts the value into a field that it is to change: nothing where the
// Optional is absent, the zero value where it is null.
func (o Optional[T]) Apply(to *T) {
	if o.Present {
		*to = o.Value
	}
}

// IsZero reports that it is absent, which the option omitzero of a json tag asks.
func (o Optional[T]) IsZero() bool { return !o.Present }

// UnmarshalJSON reads a field that is there.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{Present: true}
	if bytes.Equal(data, []byte("null")) {
		o.Null = true
		return nil
	}
	return json.Unmarshal(data, &o.Value)
}

// MarshalJSON writes null for what is absent, too; omitzero leaves that out.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Present || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// inner is how the survey of types finds T.
func (o Optional[T]) inner() reflect.Type { return reflect.TypeFor[T]() }

// optionalOf returns T for an Optional[T], and nil for everything else.
func optionalOf(t reflect.Type) reflect.Type {
	if o, ok := reflect.Zero(t).Interface().(interface{ inner() reflect.Type }); ok {
		return o.inner()
	}
	return nil
}
