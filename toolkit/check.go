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
// that is marshalled as absent counts as absent, and so does null where a field is not
// required. Another error says that the type has no schema.
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
	c.in.leaveOut(n)
	(&place{of: c.in}).fillEmpty(n)
	if err := c.fit(n); err != nil {
		return &Refusal{Code: codeInvalid, Message: err.Error() + "."}
	}
	return nil
}

// leaveOut takes out what is null where arguments would not have it: a nil pointer, list
// or map whose field is not required.
func (s *shape) leaveOut(n *schema.Node) {
	switch s.kind {
	case kindObject:
		for _, f := range s.fields {
			switch m := n.Get(f.name); {
			case m == nil:
			case m.Kind() == schema.Null && !f.required && !f.at.nullable:
				n.Delete(f.name)
			default:
				f.at.of.leaveOut(m)
			}
		}
	case kindList, kindDict:
		for _, item := range n.Items() {
			s.item.of.leaveOut(item)
		}
		for _, m := range n.Members() {
			s.item.of.leaveOut(m.Value)
		}
	}
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
