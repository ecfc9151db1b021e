package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// unevaluated are the keywords for members, and for items, of which nothing beside them speaks.
var unevaluated = []string{"unevaluatedProperties", "unevaluatedItems"}

// evaluating are those that speak of them beside each, first of all that the others leave.
var evaluating = map[string][]string{
	"unevaluatedProperties": {"additionalProperties", "properties", "patternProperties"},
	"unevaluatedItems":      {"items", "prefixItems", "contains"},
}

// evaluates reports whether n says of members, or items, what the keyword for those that are
// unevaluated would not judge beside it.
func evaluates(n *schema.Node, keyword string) bool {
	return n.Has("$ref") || judgedInPlace(n) || slices.ContainsFunc(evaluating[keyword], n.Has)
}

// leaves reports whether n says so of some members, or items, and leaves others to that keyword
// of a schema around it.
func leaves(n, around *schema.Node, keyword string) bool {
	all := n.Has(evaluating[keyword][0]) || n.Get(keyword).IsBool(false) || n.Has(keyword) && sameKeyword(n, around, keyword)
	return !all && evaluates(n, keyword)
}

// evaluated is n without what it says of the members and items that nothing else in it speaks
// of, where merged with another schema it would speak of fewer.
func (c *conversion) evaluated(n *schema.Node, fewer func(keyword string) bool) *schema.Node {
	out := n
	for _, keyword := range unevaluated {
		if !fewer(keyword) {
			continue
		}
		if out == n {
			out = c.clone(n)
		}
		out.Delete(keyword)
		c.spill(out, keyword+" "+snippet(n.Get(keyword), 200))
	}
	return out
}

// below is inner as it can be merged into n, beside which it stood: what it would say of
// fewer members or items there is left out, and said.
func (c *conversion) below(pass string, at, n, inner *schema.Node) *schema.Node {
	rest := c.evaluated(inner, func(keyword string) bool { return outspoken(inner, n, keyword) })
	if rest != inner {
		c.widen(pass, at, "what is unevaluated to one of several schemas is more than what is to all of them")
	}
	return rest
}

// outspoken reports whether n says by one of these keywords of members or items what it would
// say of fewer, were it one schema with other.
func outspoken(n, other *schema.Node, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(keyword string) bool {
		return restricts(n, keyword) && (evaluates(other, keyword) || other.Has(keyword) && !sameKeyword(n, other, keyword))
	})
}

// restricts reports whether a keyword of n restricts something.
func restricts(n *schema.Node, keyword string) bool {
	return n.Has(keyword) && !unrestricted(n.Get(keyword))
}
