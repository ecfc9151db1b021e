package dialect

import (
	"regexp"
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
		if !contains(typesOf(n), "object") || !n.Has("required") {
			return
		}
		patterns := knownPatterns(n)
		for _, name := range required(n) {
			if n.Get("properties").Has(name) {
				continue
			}
			value, ok := c.furtherMember(n, name, patterns)
			if !ok {
				continue
			}
			if freeMembers(n) && n != c.root && !n.Has("additionalProperties") && !n.Has("patternProperties") && !c.rules.bad(Open) {
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

// A knownPattern is one of patternProperties.
type knownPattern struct {
	matches *regexp.Regexp
	value   *schema.Node
}

// knownPatterns are those of n's patternProperties whose pattern we know.
func knownPatterns(n *schema.Node) (known []knownPattern) {
	for _, p := range n.Get("patternProperties").Members() {
		if re, err := regexp.Compile(p.Name); err == nil {
			known = append(known, knownPattern{re, p.Value})
		}
	}
	return known
}

// furtherMember is the schema of a member that properties does not name; false
// where the server takes none.
func (c *conversion) furtherMember(n *schema.Node, name string, patterns []knownPattern) (*schema.Node, bool) {
	value := schema.NewObject()
	matched := false
	for _, p := range patterns {
		if p.matches.MatchString(name) {
			if both, ok := c.merge(value, c.clone(p.value)); ok {
				value, matched = both, true
			}
		}
	}
	extra := n.Get("additionalProperties")
	if extra == nil && c.target(n) == nil && !judgedInPlace(n) {
		extra = n.Get("unevaluatedProperties") // nothing else speaks of it
	}
	switch {
	case matched:
		return value, true
	case extra.IsBool(false):
		return nil, false
	case extra.Kind() == schema.Object:
		return c.clone(extra), true
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
