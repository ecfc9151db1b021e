package toolkit

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Check holds a Go value against the tags of its type, as the arguments of a tool
// are: for values that come from elsewhere, such as a file or a form. It returns
// nil or an error as [Invalid] makes it, with every field that is wrong. A value
// that is marshalled as absent counts as absent. Another error says that the
// type has no schema.
func Check[T any](value T) error {
	c, err := checkFor(reflect.TypeFor[T]())
	if err != nil {
		return err
	}
	data, err := encode(value)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	n, err := readArguments(data)
	if err != nil {
		return &Refusal{Code: codeInvalid, Message: err.Error() + "."}
	}
	(&place{of: c.in}).fillEmpty(n)
	if err := c.fit(n); err != nil {
		return &Refusal{Code: codeInvalid, Message: err.Error() + "."}
	}
	return nil
}

// checks are bindings of types that were checked once; there are as many as the
// program has types.
var checks sync.Map // reflect.Type → *binding

func checkFor(t reflect.Type) (*binding, error) {
	if known, ok := checks.Load(t); ok {
		return known.(*binding), nil
	}
	s, err := shapeOf(t, true)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	b := &binding{in: s, accepts: schema.NewValidator(s.schema(true))}
	known, _ := checks.LoadOrStore(t, b)
	return known.(*binding), nil
}
