package dialect

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// leaveLiterals leaves enums and consts to the description where the engine
// cannot write all of their members, or nobody reads one of their numbers.
func (c *conversion) leaveLiterals() {
	legal := func(*schema.Node) bool { return true }
	if c.rules.Literals != "" {
		pattern := namePattern(c.rules.Literals)
		legal = func(v *schema.Node) bool { return pattern.Match(v.Bytes()) }
	}
	c.each(func(n *schema.Node) {
		for _, keyword := range []string{"enum", "const"} {
			switch v := n.Get(keyword); {
			case v == nil:
			case !legal(v):
				c.leaveLiteral(n, keyword, "the engine cannot write every value of the "+keyword)
			case beyondDoubles(v):
				c.leaveLiteral(n, keyword, "a number of the "+keyword+" is beyond a double")
			}
		}
	})
}

// beyondDoubles reports whether a number in v is none for programs that compute with
// doubles. Such a program refuses the whole request for it, or stops.
func beyondDoubles(v *schema.Node) bool {
	if v.Kind() == schema.Number {
		return !inDouble(v)
	}
	for _, item := range v.Items() {
		if beyondDoubles(item) {
			return true
		}
	}
	for _, m := range v.Members() {
		if beyondDoubles(m.Value) {
			return true
		}
	}
	return false
}

// leaveLiteral leaves an enum or const to the description.
func (c *conversion) leaveLiteral(n *schema.Node, keyword, why string) {
	members := n.Get(keyword).Items()
	if keyword == "const" {
		members = []*schema.Node{n.Get(keyword)}
	}
	n.Delete(keyword)
	if len(typesOf(n)) == 0 {
		setTypes(n, typesOfValues(members))
	}
	var texts []string
	for _, m := range members {
		texts = append(texts, snippet(m, 100))
	}
	c.spill(n, "one of "+cut(strings.Join(texts, ", "), 1000))
	c.widen("leaveLiterals", n, why+"; the description says them")
}

// typesOfValues are the types that a schema for some values needs.
func typesOfValues(values []*schema.Node) []string {
	var types []string
	for _, v := range values {
		if t := typeOfValue(v); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if slices.Contains(types, "number") && slices.Contains(types, "integer") {
		types = append(types[:0:0], types...)
		for i, t := range types {
			if t == "integer" {
				return append(types[:i], types[i+1:]...)
			}
		}
	}
	return types
}
