package prove

import (
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// named is the place that the reason of a witness names, in the schema that At leads
// into; what At was where it names none.
func (s *search) named(w Witness) string {
	text, root := string(w.Call), s.shown
	if w.Kind != Refused {
		root = s.asked
		if wrote, err := s.plan.Encode(w.Call); err == nil {
			text = string(wrote)
		}
	}
	if _, _, problem := s.plan.Decode(text, "tool_calls"); problem != nil {
		if at := namedIn(root, problem); at != "" {
			return at
		}
	}
	return w.At
}

// namedIn is the pointer into a schema to the place that a problem names first; empty
// where it names none that the schema has.
func namedIn(root *schema.Node, problem *dragoman.Problem) string {
	if len(problem.Fields) == 0 {
		return ""
	}
	path := problem.Fields[0].Path
	if problem.Fields[0].Missing { // what is missing is missing in an object
		path = path[:strings.LastIndexByte(path, '/')]
	}
	at, _ := schemaOf(root, root, "", path, 0)
	return at
}

// schemaOf is the pointer to the schema, at or below n, of the value at a path; at is
// the pointer to n.
func schemaOf(root, n *schema.Node, at, path string, depth int) (string, bool) {
	if depth > schema.MaxDepth || n == nil {
		return "", false
	}
	if ref := n.Get("$ref"); ref != nil && strings.HasPrefix(ref.Text(), "#") {
		if found, ok := schemaOf(root, root.At(ref.Text()[1:]), ref.Text()[1:], path, depth+1); ok {
			return found, true
		}
	}
	if path == "" {
		return at, true
	}
	token, rest, more := strings.Cut(path[1:], "/")
	if more {
		rest = "/" + rest
	}
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	try := func(inner *schema.Node, pointer ...string) (string, bool) {
		return schemaOf(root, inner, at+schema.Pointer(pointer...), rest, depth+1)
	}
	if inner := n.Get("properties").Get(name); inner != nil {
		return try(inner, "properties", name)
	}
	i, err := strconv.Atoi(name)
	if prefix := n.Get("prefixItems").Items(); err == nil && i < len(prefix) {
		return try(prefix[i], "prefixItems", name)
	}
	if inner := n.Get("items"); err == nil && inner != nil {
		return try(inner, "items")
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for i, inner := range n.Get(keyword).Items() {
			if found, ok := schemaOf(root, inner, at+schema.Pointer(keyword, strconv.Itoa(i)), path, depth+1); ok {
				return found, true
			}
		}
	}
	if inner := n.Get("additionalProperties"); inner.Kind() == schema.Object {
		return try(inner, "additionalProperties")
	}
	return "", false
}
