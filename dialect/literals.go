package dialect

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// leaveLiterals leaves enums and consts to the description where the engine
// cannot write all of their members.
func (c *conversion) leaveLiterals() {
	if c.rules.Literals == "" {
		return
	}
	legal := namePattern(c.rules.Literals)
	c.each(func(n *schema.Node) {
		for _, keyword := range []string{"enum", "const"} {
			v := n.Get(keyword)
			if v == nil || legal.Match(v.Bytes()) {
				continue
			}
			c.leaveLiteral(n, keyword, "the engine cannot write every value of the "+keyword)
		}
	})
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
