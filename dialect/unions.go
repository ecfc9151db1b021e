package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// dropImpossible takes away branches, properties, conditions and members of enums
// that no value can ever meet, such as the {"not": {}} that some generators write for an
// optional value.
func (c *conversion) dropImpossible() {
	c.each(func(n *schema.Node) {
		if n != c.root && slices.ContainsFunc(n.Get("allOf").Items(), func(v *schema.Node) bool { return v.IsBool(false) }) {
			c.say("dropImpossible", n, "no value fits all of allOf")
			n.Become(schema.NewBool(false)) // it goes with what it stands in
			return
		}
		for _, keyword := range []string{"anyOf", "oneOf"} {
			c.dropBranches(n, keyword)
		}
		c.forbidMembers(n)
		for _, p := range append([]schema.Member(nil), n.Get("properties").Members()...) {
			if !impossible(p.Value) || !p.Value.IsBool(false) && !c.rules.bad(Not) && p.Value.Has("not") {
				continue
			}
			n.Get("properties").Delete(p.Name)
			var names []string
			for _, name := range required(n) {
				if name != p.Name {
					names = append(names, name)
				}
			}
			switch {
			case len(names) < len(required(n)):
				setRequired(n, names)
				c.widen("dropImpossible", n, "no value fits the required property "+p.Name)
			case c.closes(n):
				c.say("dropImpossible", n, "no value fits the property "+p.Name)
			default:
				c.widen("dropImpossible", n, "no value fits the property "+p.Name+", which is now a member like any other")
			}
		}
		for _, p := range append([]schema.Member(nil), n.Get("patternProperties").Members()...) {
			if p.Value.IsBool(false) && c.rules.bad(BooleanSchema) {
				n.Get("patternProperties").Delete(p.Name)
				c.spill(n, "no members named like "+p.Name)
				c.widen("dropImpossible", n, "no value fits a member named like "+p.Name)
			}
		}
		if n.Has("patternProperties") && len(n.Get("patternProperties").Members()) == 0 {
			n.Delete("patternProperties")
		}
		c.dropMembers(n)
		if n.Get("enum").Kind() == schema.Array && len(n.Get("enum").Items()) == 0 {
			n.Delete("enum")
			c.widen("dropImpossible", n, "no value fits an empty enum")
		}
		c.nameNone(n)
		for _, k := range [][2]string{{"additionalProperties", "unevaluatedProperties"}, {"items", "unevaluatedItems"}} {
			if n.Has(k[0]) && n.Delete(k[1]) {
				c.say("dropImpossible", n, k[0]+" has judged all that "+k[1]+" speaks of")
			}
		}
		c.countContained(n)
		c.endTuple(n)
		if n.Get("items").IsBool(false) {
			c.closeTuple(n)
		}
	})
}

// dropIdle takes away the schemas in conditions and the like that restrict nothing, and with
// them what says nothing any more: engines want a type in them, too.
func (c *conversion) dropIdle() {
	idle := func(v *schema.Node) bool {
		return v != nil && unrestricted(v) && (v.Kind() == schema.Bool || c.rules.bad(EmptySchema))
	}
	c.each(func(n *schema.Node) {
		dropped := false
		for _, keyword := range []string{"then", "else", "propertyNames"} {
			dropped = idle(n.Get(keyword)) && n.Delete(keyword) || dropped
		}
		if !n.Has("if") {
			dropped = n.Delete("then") || dropped
			dropped = n.Delete("else") || dropped
		}
		if n.Has("if") && !n.Has("then") && !n.Has("else") && !n.Has("unevaluatedProperties") && !n.Has("unevaluatedItems") {
			dropped = n.Delete("if")
		}
		dropped = n.Get("not").IsBool(false) && n.Delete("not") || dropped
		for _, m := range append([]schema.Member(nil), n.Get("dependentSchemas").Members()...) {
			dropped = idle(m.Value) && n.Get("dependentSchemas").Delete(m.Name) || dropped
		}
		if n.Has("dependentSchemas") && len(n.Get("dependentSchemas").Members()) == 0 {
			n.Delete("dependentSchemas")
		}
		if dropped {
			c.say("dropIdle", n, "what restricts nothing is not taken there")
		}
	})
}

// closes reports whether n, as it is sent, takes no members but its properties.
func (c *conversion) closes(n *schema.Node) bool {
	if extra := n.Get("additionalProperties"); extra != nil {
		return extra.IsBool(false)
	}
	return c.rules.ClosedBySilence && slices.Contains(typesOf(n), "object") && (n == c.root || len(n.Get("properties").Members()) > 0) &&
		!n.Has("patternProperties") && !n.Has("unevaluatedProperties")
}

// dropMembers takes out of an enum the members that the type beside it excludes.
func (c *conversion) dropMembers(n *schema.Node) {
	if fitMembers(n) {
		c.say("dropImpossible", n, "the type excludes a member of the enum")
	}
}

// fitMembers leaves those members of an enum that the type beside it takes, where there are
// some. It reports whether others were there.
func fitMembers(n *schema.Node) bool {
	var kept []*schema.Node
	members := n.Get("enum").Items()
	for _, m := range members {
		if fitsTypes(n, m) {
			kept = append(kept, m)
		}
	}
	if len(kept) == 0 || len(kept) == len(members) {
		return false
	}
	n.Set("enum", schema.NewArray(kept...))
	return true
}

// closeTuple says by its length that an array ends with its prefixItems.
func (c *conversion) closeTuple(n *schema.Node) {
	most := schema.NewNumber(itoa(len(n.Get("prefixItems").Items())))
	if order, ok := schema.Compare(n.Get("maxItems"), most); !ok || order > 0 {
		n.Set("maxItems", most)
	}
	n.Delete("items")
	if most.Text() == "0" {
		n.Delete("prefixItems")
		n.Set("items", schema.NewObject())
	}
	c.say("closeTuple", n, "an array without further items is one of limited length")
}

func (c *conversion) dropBranches(n *schema.Node, keyword string) {
	branches := n.Get(keyword).Items()
	var kept []*schema.Node
	for _, branch := range branches {
		if !impossible(branch) || branch.Has("not") && !c.rules.bad(Not) {
			kept = append(kept, branch)
		}
	}
	switch {
	case len(kept) == len(branches):
		return
	case len(kept) == 0:
		n.Delete(keyword)
		c.widen("dropImpossible", n, "no alternative of "+keyword+" can be met")
		return
	case len(kept) == 1:
		n.Delete(keyword)
		if merged, ok := c.merge(n, kept[0]); ok && !outspoken(kept[0], n, unevaluated...) {
			c.become(n, merged)
			break
		}
		n.Set(keyword, schema.NewArray(kept...))
	default:
		n.Set(keyword, schema.NewArray(kept...))
	}
	c.say("dropImpossible", n, "an alternative of "+keyword+" cannot be met")
}

// referred is what n refers to, or n itself.
func (c *conversion) referred(n *schema.Node) *schema.Node {
	for range schema.MaxDepth {
		target := c.target(n)
		if target == nil {
			break
		}
		n = target
	}
	return n
}

// spliceUnions writes a union inside a union as one, and a union of one
// alternative as that.
func (c *conversion) spliceUnions() {
	c.each(func(n *schema.Node) {
		branches := n.Get("anyOf").Items()
		if !c.rules.bad(NestedUnion) || len(branches) == 0 {
			return
		}
		var flat []*schema.Node
		for _, branch := range branches {
			if len(branch.Members()) == 1 && branch.Has("anyOf") {
				flat = append(flat, branch.Get("anyOf").Items()...)
			} else {
				flat = append(flat, branch)
			}
		}
		if c.nested(branches) {
			n.Set("anyOf", schema.NewArray(distinct(flat)...))
			c.say("spliceUnions", n, "a union directly in a union is not taken")
		}
	})
}

// nested reports whether an alternative of a union is nothing but a union.
func (c *conversion) nested(branches []*schema.Node) bool {
	for _, branch := range branches {
		if len(branch.Members()) == 1 && branch.Has("anyOf") {
			return true
		}
	}
	return false
}

// pushIntoBranches moves what judges beside a union into its alternatives.
func (c *conversion) pushIntoBranches() {
	if !c.rules.bad(UnionSiblings) {
		return
	}
	c.each(c.pushInto)
}

// pushInto does so in n, and in the alternatives that get a union from beside theirs.
func (c *conversion) pushInto(n *schema.Node) {
	keyword := "anyOf"
	if !n.Has(keyword) {
		keyword = "oneOf" // exactly one of them fits with the rest just as without it
	}
	branches := n.Get(keyword).Items()
	if len(branches) == 0 {
		return
	}
	rest := schema.NewObject()
	kept := schema.NewObject()
	for _, m := range n.Members() {
		if m.Name != keyword && judges(m.Name) {
			rest.Set(m.Name, m.Value)
		} else {
			kept.Set(m.Name, m.Value)
		}
	}
	if len(rest.Members()) == 0 {
		return
	}
	var pushed []*schema.Node
	dropped, objects, arrays := false, 0, 0
	for _, branch := range branches {
		if c.failed != "" {
			return // too many alternatives of alternatives
		}
		branch = c.resolved(branch)
		if conflict(rest, branch) {
			continue // the alternative could never be met
		}
		if leaves(branch, rest, "unevaluatedProperties") && takes(branch, "object") {
			objects++
		}
		if leaves(branch, rest, "unevaluatedItems") && takes(branch, "array") {
			arrays++
		}
		inner := c.below("pushIntoBranches", n, rest, branch)
		both, ok := c.merge(inner, rest)
		if !ok {
			dropped, both = true, branch
		}
		was := c.marks[branch]
		c.inherit(c.made(both, branch), was)
		if !ok || inner != branch {
			c.mark(both).wider = true
		}
		c.pushInto(both)
		pushed = append(pushed, both)
	}
	if len(pushed) == 0 {
		c.widen("pushIntoBranches", n, "no alternative of "+keyword+" fits the type beside it")
		n.Delete(keyword)
		c.pushInto(n) // the other union that stands there
		return
	}
	if dropped {
		c.spill(n, "also "+snippet(rest, 200))
		c.widen("pushIntoBranches", n, "keywords beside "+keyword+" are not taken, and not all can be merged into it")
	} else {
		c.say("pushIntoBranches", n, "keywords beside "+keyword+" are not taken")
	}
	if keyword == "anyOf" && !c.mark(n).one && (objects > 1 && rest.Has("unevaluatedProperties") || arrays > 1 && rest.Has("unevaluatedItems")) {
		c.narrow("pushIntoBranches", n, "what several alternatives speak of together is unevaluated to each of them")
	}
	kept.Set(keyword, schema.NewArray(pushed...))
	n.Become(kept)
}

// preferKnown says where a value could be of a known shape, which is mapped,
// or any object, which is not: the known shape is then what is understood.
func (c *conversion) preferKnown() {
	c.each(func(n *schema.Node) {
		free := false
		for _, branch := range n.Get("anyOf").Items() {
			free = free || freeForm(branch) || branch.Get("additionalProperties").IsBool(true) || unrestricted(branch)
		}
		for _, branch := range n.Get("anyOf").Items() {
			if free && len(branch.Get("properties").Members()) > 0 && c.maps(branch) {
				c.narrow("preferKnown", n, "an object with the members of the known shape is understood as that, not as any object")
				return
			}
		}
	})
}

// maps reports whether values are mapped by a schema or one inside it.
func (c *conversion) maps(n *schema.Node) bool {
	if m := c.marks[n]; m != nil && len(m.ops) > 0 {
		return true
	}
	for sub := range n.Subschemas() {
		if c.maps(sub.Node) {
			return true
		}
	}
	return false
}

// conflict reports whether two schemas name types of which no value has both.
func conflict(a, b *schema.Node) bool {
	x, y := typesOf(a), typesOf(b)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	for _, t := range x {
		if slices.Contains(y, t) || t == "integer" && slices.Contains(y, "number") || t == "number" && slices.Contains(y, "integer") {
			return false
		}
	}
	return true
}

// collapseItemUnions keeps of a union in items the alternative that is an
// array, where a union with one is refused.
func (c *conversion) collapseItemUnions() {
	if !c.rules.bad(ItemUnion) {
		return
	}
	c.each(func(n *schema.Node) {
		items := n.Get("items")
		for _, branch := range items.Get("anyOf").Items() {
			if !slices.Contains(typesOf(branch), "array") {
				continue
			}
			c.spill(items, "originally "+snippet(items.Get("anyOf"), 200))
			c.narrow("collapseItemUnions", items, "a union with an array in items is refused; the array is kept")
			items.Delete("anyOf")
			for _, m := range branch.Members() {
				if !items.Has(m.Name) {
					items.Set(m.Name, m.Value)
				}
			}
			return
		}
	})
}
