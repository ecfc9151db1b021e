package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// forbidMembers says by properties which members n takes none of, where
// dependentSchemas says it.
func (c *conversion) forbidMembers(n *schema.Node) {
	for _, m := range append([]schema.Member(nil), n.Get("dependentSchemas").Members()...) {
		if !m.Value.IsBool(false) {
			continue
		}
		n.Get("dependentSchemas").Delete(m.Name)
		if !n.Has("properties") {
			n.Set("properties", schema.NewObject())
		}
		n.Get("properties").Set(m.Name, m.Value)
		c.spill(n, "no member named "+m.Name)
		c.widen("dropImpossible", n, "dependentSchemas takes no member named "+m.Name)
	}
	if n.Has("dependentSchemas") && len(n.Get("dependentSchemas").Members()) == 0 {
		n.Delete("dependentSchemas")
	}
}

// nameNone says by their number that an object has no members, where no name fits
// propertyNames.
func (c *conversion) nameNone(n *schema.Node) {
	if names := n.Get("propertyNames"); !impossible(names) && !textless(names) {
		return
	}
	n.Delete("propertyNames")
	if bound(n, "minProperties", "maxProperties", nil, schema.NewNumber("0")) {
		c.say("dropImpossible", n, "an object whose members can have no name has none")
	} else {
		c.widen("dropImpossible", n, "no name fits propertyNames, and an object must have members")
	}
}

// textless reports whether no text fits n, by its types and values.
func textless(n *schema.Node) bool {
	types, values := typesOf(n), literals(n)
	return len(types) > 0 && !slices.Contains(types, "string") ||
		len(values) > 0 && !slices.ContainsFunc(values, func(v *schema.Node) bool { return v.Kind() == schema.String })
}

// countContained says contains by the number of items, where all of them fit it, or none
// does.
func (c *conversion) countContained(n *schema.Node) {
	v := n.Get("contains")
	if v == nil || !unrestricted(v) && !impossible(v) {
		return
	}
	least, most := n.Get("minContains"), n.Get("maxContains")
	if least == nil {
		least = schema.NewNumber("1")
	}
	order, _ := schema.Compare(least, schema.NewNumber("0"))
	fits := order == 0
	if unrestricted(v) {
		n.Delete("unevaluatedItems") // contains has seen all items
		if fits {
			least = nil
		}
		fits = bound(n, "minItems", "maxItems", least, most)
	}
	for _, keyword := range []string{"contains", "minContains", "maxContains"} {
		n.Delete(keyword)
	}
	if fits {
		c.say("countContained", n, "the number of items says what contains says of any of them")
	} else {
		c.widen("dropImpossible", n, "no array fits contains")
	}
}

// endTuple ends an array before the first of its prefixItems that no value fits.
func (c *conversion) endTuple(n *schema.Node) {
	prefix := n.Get("prefixItems").Items()
	for i, p := range prefix {
		if !impossible(p) {
			continue
		}
		n.Delete("prefixItems")
		if i > 0 {
			n.Set("prefixItems", schema.NewArray(prefix[:i]...))
		}
		if bound(n, "minItems", "maxItems", nil, schema.NewNumber(itoa(i))) {
			n.Set("items", schema.NewBool(false))
		} else {
			c.widen("dropImpossible", n, "no array fits prefixItems")
		}
		return
	}
}

// bound makes the limits of a number of things as tight as from and to, of which each may
// be nil. It reports whether a value is left that fits; where none is, n stays as it is.
func bound(n *schema.Node, least, most string, from, to *schema.Node) bool {
	low, high := n.Get(least), n.Get(most)
	if order, ok := schema.Compare(from, low); from != nil && (!ok || order > 0) {
		low = from
	}
	if order, ok := schema.Compare(to, high); to != nil && (!ok || order < 0) {
		high = to
	}
	if order, ok := schema.Compare(low, high); ok && order > 0 {
		return false
	}
	bounded := n.Clone()
	if low != nil {
		bounded.Set(least, low)
	}
	if high != nil {
		bounded.Set(most, high)
	}
	if !schema.Satisfiable(bounded) {
		return false
	}
	for _, limit := range []string{least, most} {
		if v := bounded.Get(limit); v != nil {
			n.Set(limit, v)
		}
	}
	return true
}
