package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// declareRequired declares the members that are required and that no property
// names, where the engine writes declared members only: without them no call could
// be written. Their values are what the server takes for members of such a name.
func (c *conversion) declareRequired() {
	if !c.rules.ClosedBySilence || c.rules.Form != "" {
		return
	}
	c.each(func(n *schema.Node) {
		if !slices.Contains(typesOf(n), "object") || !n.Has("required") {
			return
		}
		further := c.furtherMembers(n)
		for _, name := range required(n) {
			if n.Get("properties").Has(name) {
				continue
			}
			value, ok := c.furtherMember(n, name, further)
			if !ok {
				continue
			}
			if freeMembers(n) && n != c.root && !n.Has("additionalProperties") && !n.Has("patternProperties") && !n.Has("unevaluatedProperties") && !c.rules.bad(Open) {
				n.Set("additionalProperties", schema.NewBool(true)) // it does not close with its first property
			}
			if !n.Has("properties") {
				n.Set("properties", schema.NewObject())
			}
			n.Get("properties").Set(name, value)
			c.say("declareRequired", n, "a required member that no property names could not be written")
		}
	})
}

// The further members of an object are those that properties does not name.
type furtherMembers struct {
	patterns []knownPattern
	extra    *schema.Node // what judges those that no pattern speaks of; nil for nothing
}

// A knownPattern is one of patternProperties whose pattern we know.
type knownPattern struct {
	re     *regexp.Regexp
	within string // what is in every name that re matches; often most of it
	value  *schema.Node
}

// matches asks the expression last: each required name is held against every pattern.
func (p knownPattern) matches(name string) bool {
	return strings.Contains(name, p.within) && p.re.MatchString(name)
}

// knownPatterns returns those of patternProperties whose patterns we know.
func knownPatterns(n *schema.Node) (known []knownPattern) {
	for _, p := range n.Get("patternProperties").Members() {
		if re, err := regexp.Compile(p.Name); err == nil {
			within, _ := re.LiteralPrefix()
			known = append(known, knownPattern{re, within, p.Value})
		}
	}
	return known
}

func (c *conversion) furtherMembers(n *schema.Node) (f furtherMembers) {
	f.patterns = knownPatterns(n)
	f.extra = n.Get("additionalProperties")
	if f.extra == nil && c.target(n) == nil && !judgedInPlace(n) {
		f.extra = n.Get("unevaluatedProperties") // nothing else speaks of it
	}
	return f
}

// furtherMember is the schema of one of them; false where the server takes none.
func (c *conversion) furtherMember(n *schema.Node, name string, f furtherMembers) (*schema.Node, bool) {
	value := schema.NewObject()
	matched := false
	for _, p := range f.patterns {
		if p.matches(name) {
			if both, ok := c.merge(value, c.clone(p.value)); ok {
				value, matched = both, true
			}
		}
	}
	switch {
	case matched:
		return value, true
	case f.extra.IsBool(false):
		return nil, false
	case f.extra.Kind() == schema.Object:
		return c.clone(f.extra), true
	}
	return c.made(value, n), true
}

// judgedInPlace reports whether schemas inside n judge the same value.
func judgedInPlace(n *schema.Node) bool {
	for sub := range n.Subschemas() {
		if sub.InPlace() {
			return true
		}
	}
	return false
}

// defineRequired drops required names that are no properties, where they are
// refused.
func (c *conversion) defineRequired() {
	if !c.rules.bad(RequiredUndefined) || c.rules.Form != "" {
		return // a strict object without the property would never be valid
	}
	c.each(func(n *schema.Node) {
		var kept []string
		names := required(n)
		for _, name := range names {
			if n.Get("properties").Has(name) {
				kept = append(kept, name)
			}
		}
		if len(kept) < len(names) {
			setRequired(n, kept)
			c.widen("defineRequired", n, "a required name that is no property is refused")
		}
	})
}

// describeRequired moves required to the description where the engine drops it
// on the way to the model.
func (c *conversion) describeRequired() {
	if !c.rules.bad(RequiredNested) {
		return
	}
	eachNested(c.root, func(n *schema.Node) {
		names := required(n)
		if len(names) == 0 {
			n.Delete("required")
			return
		}
		n.Delete("required")
		c.spill(n, "required: "+cut(strings.Join(names, ", "), 300))
		c.widen("describeRequired", n, "required inside a property is dropped; the description says it")
	})
}

// eachNested visits the schemas that are properties, or alternatives of one, at
// any depth. What is in items is not among them.
func eachNested(n *schema.Node, visit func(*schema.Node)) {
	for sub := range n.Subschemas() {
		if sub.Keyword == "properties" || sub.Keyword == "anyOf" {
			eachNested(sub.Node, visit)
			visit(sub.Node)
		}
	}
}
