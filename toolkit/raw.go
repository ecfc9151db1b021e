package toolkit

import (
	"context"
	"encoding/json"
	"reflect"
)

// AddRaw adds a tool whose arguments have a schema that is only known when the
// program runs, such as one that was read from a document. The function gets the
// arguments as JSON, when they fit the schema; defaults are not filled in. The
// schema is JSON Schema 2020-12 with "type":"object" at its root. Everything else
// is as with [Add].
func AddRaw[Out any](s *Server, t Tool, input json.RawMessage, f func(context.Context, json.RawMessage) (Out, error)) {
	b := newBinding(s, t, reflect.TypeFor[struct{}](), reflect.TypeFor[Out]())
	if f == nil {
		b.fail("no function")
	}
	if !json.Valid(input) {
		b.fail("arguments: the schema is not JSON")
		input = json.RawMessage(`{"type":"object"}`)
	}
	if t.Markdown {
		b.fail("Markdown: a tool with a schema of its own has that parameter there, or not at all")
	}
	b.in = &shape{kind: kindCustom, goType: reflect.TypeFor[json.RawMessage](), custom: input, exact: -1}
	b.register(func(ctx context.Context, a arguments) (reply, error) {
		out, err := f(ctx, json.RawMessage(a.node.Bytes()))
		if err != nil {
			return reply{}, err
		}
		return reply{value: out}, nil
	})
}
