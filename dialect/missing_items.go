package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// addMissing gives objects properties and arrays items where they must have
// them.
func (c *conversion) addMissing() {
	c.each(func(n *schema.Node) {
		types := typesOf(n)
		if slices.Contains(types, "object") && !n.Has("properties") && (c.rules.bad(PropertiesMissing) || n == c.root) {
			n.Set("properties", schema.NewObject())
			c.say("addMissingProperties", n, "an object without properties is refused")
		}
		if slices.Contains(types, "array") && !n.Has("items") && c.rules.bad(ItemsMissing) {
			n.Set("items", c.anyItems(n))
			c.say("addMissingItems", n, "an array without items is refused")
		}
	})
}

// itemsFromUnevaluated writes unevaluatedItems as items, where nothing else in an array
// looks at its items. Where something does, unevaluatedItems cannot stay beside the items
// that the array must have, which judge all, nor without the contains that it counts on.
func (c *conversion) itemsFromUnevaluated() {
	c.each(func(n *schema.Node) {
		rest := n.Get("unevaluatedItems")
		if rest == nil || n.Has("items") {
			return
		}
		alone := c.target(n) == nil && !n.Has("contains") && !judgedInPlace(n)
		missing := c.rules.bad(ItemsMissing) && slices.Contains(typesOf(n), "array")
		switch {
		case alone:
			n.Rename("unevaluatedItems", "items")
			c.say("itemsFromUnevaluated", n, "items says what unevaluatedItems says here")
			if rest.IsBool(false) {
				c.closeTuple(n)
			}
		case missing || n.Has("contains") && c.rules.bad(Contains):
			n.Delete("unevaluatedItems")
			c.spill(n, "further items "+snippet(rest, 200))
			c.widen("itemsFromUnevaluated", n, "unevaluatedItems cannot be sent with what the items become; the description says it")
		}
	})
}

// anyItems is a schema for the items of n, which says nothing about them.
func (c *conversion) anyItems(n *schema.Node) *schema.Node {
	items := c.made(schema.NewObject(), n)
	if c.rules.bad(EmptySchema) {
		c.makeAny(items)
		if c.rules.bad(ItemUnion) {
			c.dropArrays(items)
		}
	}
	return items
}

// dropArrays takes the arrays out of a union of everything in items.
func (c *conversion) dropArrays(n *schema.Node) {
	var kept []*schema.Node
	for _, branch := range n.Get("anyOf").Items() {
		if !branch.Get("type").IsString("array") {
			kept = append(kept, branch)
		}
	}
	n.Set("anyOf", schema.NewArray(kept...))
	c.narrow("spellOutAny", n, "an array directly in an array of anything is refused")
}
