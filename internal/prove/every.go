package prove

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// maxEvery is the number of calls up to which all of a tool's are tried.
const maxEvery = 2000

// every returns all calls that the server's schema declares, where there are few
// of them: members of closed sets of values, present or not.
func (s *search) every() (all []candidate, ok bool) {
	values, ok := everyValue(s.asked, s.asked, 0)
	if !ok {
		return nil, false
	}
	for _, v := range values {
		all = append(all, candidate{v, ""})
	}
	s.looked.Candidates += len(all)
	return all, true
}

// everyValue lists the values of a schema; ok is false where they are too many, or
// where keywords are involved that are better tried than understood.
func everyValue(root, n *schema.Node, depth int) (values []*schema.Node, ok bool) {
	if n = follow(root, n); n == nil || depth > 6 {
		return nil, false
	}
	if c := n.Get("const"); c != nil {
		return []*schema.Node{c}, true
	}
	if enum := n.Get("enum").Items(); len(enum) > 0 {
		return enum, len(enum) <= maxEvery
	}
	if slices.ContainsFunc([]string{"anyOf", "oneOf", "allOf", "if", "not", "patternProperties", "dependentSchemas"}, n.Has) {
		return nil, false
	}
	switch n.Get("type").Text() {
	case "boolean":
		return scalars(n, "boolean"), true
	case "null":
		return scalars(n, "null"), true
	case "object":
		if n.Get("additionalProperties").Kind() == schema.Object {
			return nil, false
		}
		return everyObject(root, n, depth)
	}
	return nil, false
}

func everyObject(root, n *schema.Node, depth int) ([]*schema.Node, bool) {
	if depth > 0 && !n.Has("properties") {
		return nil, false // any object
	}
	objects := []*schema.Node{schema.NewObject()}
	needed := map[string]bool{}
	for _, name := range n.Get("required").Items() {
		if !n.Get("properties").Has(name.Text()) {
			return nil, false
		}
		needed[name.Text()] = true
	}
	for _, p := range n.Get("properties").Members() {
		inner, ok := everyValue(root, p.Value, depth+1)
		if !ok || len(objects)*(len(inner)+1) > maxEvery {
			return nil, false
		}
		var next []*schema.Node
		for _, o := range objects {
			if !needed[p.Name] {
				next = append(next, o)
			}
			for _, v := range inner {
				next = append(next, with(o, p.Name, v))
			}
		}
		objects = next
	}
	return objects, true
}
