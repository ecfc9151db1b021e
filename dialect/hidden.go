package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// hideReferences takes away what an engine would take for a reference and is none:
// a member named $ref in a value. Only where a schema stands is a schema, but some
// engines look everywhere, and one $ref that leads nowhere fails the whole request.
// What the value said goes to the description.
func (c *conversion) hideReferences() {
	if !c.rules.RefsAnywhere {
		return
	}
	c.each(func(n *schema.Node) {
		for _, m := range slices.Clone(n.Members()) {
			switch {
			case holdsSchemas[m.Name] || !hasMember(m.Value, "$ref"):
			case m.Name == "enum" || m.Name == "const":
				c.leaveLiteral(n, m.Name, "the engine takes a $ref in a value for a reference")
			case m.Name == "default":
				c.spillDefault(n, m.Value)
				n.Delete(m.Name)
			default:
				n.Delete(m.Name)
				c.say("hideReferences", n, "the engine takes a $ref in "+m.Name+" for a reference; it restricts nothing")
			}
		}
	})
}

// holdsSchemas are the keywords in which a member named $ref is a reference, or the
// name of a property.
var holdsSchemas = func() map[string]bool {
	known := map[string]bool{"$ref": true}
	for _, keyword := range []string{
		"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "items", "prefixItems",
		"additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains", "propertyNames",
		"anyOf", "oneOf", "allOf", "not", "if", "then", "else",
	} {
		known[keyword] = true
	}
	return known
}()

// hasMember reports whether a value holds a member of a name, at any depth.
func hasMember(v *schema.Node, name string) bool {
	for _, m := range v.Members() {
		if m.Name == name || hasMember(m.Value, name) {
			return true
		}
	}
	for _, item := range v.Items() {
		if hasMember(item, name) {
			return true
		}
	}
	return false
}
