package dialect

import (
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// replaceConst writes const as an enum of one value.
func (c *conversion) replaceConst() {
	if !c.rules.bad(Const) {
		return
	}
	c.each(func(n *schema.Node) {
		value := n.Get("const")
		if value == nil {
			return
		}
		if n.Has("enum") {
			n.Delete("const")
			n.Set("enum", schema.NewArray(value))
		} else {
			n.Rename("const", "enum")
			n.Set("enum", schema.NewArray(value))
		}
		c.say("replaceConst", n, "const is not taken; an enum of one value says the same")
	})
}

// inferTypes names the type that the keywords of a schema speak of.
func (c *conversion) inferTypes() {
	if !c.rules.bad(UntypedSchema) {
		return
	}
	c.each(func(n *schema.Node) {
		if n.Kind() != schema.Object || n.Has("type") || n.Has("anyOf") || n.Has("oneOf") || n.Has("allOf") || n.Has("$ref") {
			return
		}
		found := map[string]bool{}
		values := literals(n)
		for _, v := range values {
			found[typeOfValue(v)] = true
		}
		if len(values) == 0 {
			for _, m := range n.Members() {
				if t := keywordTypes[m.Name]; t != "" {
					found[t] = true
				}
			}
		}
		if found["number"] {
			delete(found, "integer")
		}
		names := slices.Sorted(maps.Keys(found))
		if len(names) == 0 {
			return
		}
		if len(values) > 0 {
			c.say("inferTypes", n, "a schema without a type is not taken")
		} else {
			c.narrow("inferTypes", n, "a schema without a type is not taken; its keywords speak of this one")
		}
		setTypes(n, names)
		if len(names) > 1 && c.rules.bad(TypeList) {
			c.splitTypes(n, names)
		}
	})
}

// spellOutAny writes schemas that are booleans, or that restrict nothing, as
// the dialect wants them.
func (c *conversion) spellOutAny() {
	c.each(func(n *schema.Node) {
		for sub := range n.Subschemas() {
			if c.takesBoolean(sub) {
				continue
			}
			if sub.Node.Kind() == schema.Bool && c.rules.bad(BooleanSchema) {
				if sub.Node.IsBool(true) {
					c.say("spellOutAny", sub.Node, "a boolean is not taken as a schema")
				} else {
					c.spill(sub.Node, "no value fits here")
					c.widen("spellOutAny", sub.Node, "a boolean is not taken as a schema; the description says that nothing fits")
				}
				sub.Node.Become(schema.NewObject())
			}
			if c.rules.bad(EmptySchema) && sub.Node.Kind() == schema.Object && unrestricted(sub.Node) {
				c.say("spellOutAny", sub.Node, "a schema without a type is not taken")
				c.makeAny(sub.Node)
				if sub.Keyword == "items" && c.rules.bad(ItemUnion) {
					c.dropArrays(sub.Node)
				}
			}
		}
	})
}

// takesBoolean reports whether a boolean in this place is no schema but a word
// of its own, or goes away by another pass.
func (c *conversion) takesBoolean(sub schema.Subschema) bool {
	switch sub.Keyword {
	case "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "not", "if", "then", "else",
		"propertyNames", "contains", "dependentSchemas":
		return true
	case "items":
		return sub.Node.IsBool(false)
	}
	return false
}

// makeAny turns a schema without restrictions into one that says so in the
// dialect's way. The words stay.
func (c *conversion) makeAny(n *schema.Node) {
	if c.rules.Any != "union" {
		return
	}
	n.Set("anyOf", c.anyUnion(2))
	if c.rules.bad(ItemsMissing) {
		c.narrow("spellOutAny", n, "arrays in a value of any type are written out with items of few kinds")
	}
	if !c.rules.bad(NullableKeyword) && c.rules.bad(TypeList) {
		n.Set("nullable", schema.NewBool(true))
	}
}

// anyUnion is a union of all types; arrays hold such unions again, to a depth.
func (c *conversion) anyUnion(depth int) *schema.Node {
	typed := func(t string) *schema.Node {
		return schema.NewObject(schema.Member{Name: "type", Value: schema.NewString(t)})
	}
	branches := []*schema.Node{typed("string"), typed("number"), typed("boolean")}
	object := typed("object")
	if c.rules.bad(PropertiesMissing) {
		object.Set("properties", schema.NewObject())
	}
	if c.rules.ClosedBySilence && !c.rules.bad(Open) {
		object.Set("additionalProperties", schema.NewBool(true))
	}
	branches = append(branches, object)
	array := typed("array")
	if !c.rules.bad(ItemsMissing) {
		branches = append(branches, array)
	} else if depth > 0 {
		items := schema.NewObject(schema.Member{Name: "anyOf", Value: c.anyUnion(depth - 1)})
		if c.rules.bad(ItemUnion) {
			items = typed("string")
		}
		array.Set("items", items)
		branches = append(branches, array)
	}
	if c.rules.bad(NullableKeyword) || !c.rules.bad(TypeList) {
		branches = append(branches, typed("null"))
	}
	return schema.NewArray(branches...)
}

// writeEnumsAsText writes enum members that are no strings as strings, where
// only strings are taken.
func (c *conversion) writeEnumsAsText() {
	mistakable := c.besideTexts()
	c.each(func(n *schema.Node) {
		members := n.Get("enum").Items()
		if len(members) == 0 {
			return
		}
		kinds := map[string]bool{}
		for _, m := range members {
			t := typeOfValue(m)
			if t == "integer" {
				t = "number"
			}
			kinds[t] = true
		}
		switch {
		case len(kinds) == 1 && kinds["string"]:
			return
		case len(kinds) == 1 && kinds["boolean"] && len(members) == 2 && slices.Contains(typesOf(n), "boolean"):
			if c.rules.bad(EnumNumber) {
				n.Delete("enum")
				c.say("writeEnumsAsText", n, "true and false are all that a boolean can be")
			}
			return
		case len(kinds) == 1 && !c.rules.bad(EnumNumber), len(kinds) > 1 && !c.rules.bad(EnumMixed):
			return
		}
		if len(kinds) > 1 && !c.rules.bad(EnumNumber) {
			c.splitEnum(n, members)
			return
		}
		if mistakable[n] && len(kinds) == 1 {
			c.enumInWords(n, members)
			return
		}
		c.enumText(n, members)
	})
}

// besideTexts are the alternatives of unions of which another takes texts. What
// is not a text there must not be written as one: 42 beside any string would be
// "42", which is a string.
func (c *conversion) besideTexts() map[*schema.Node]bool {
	found := map[*schema.Node]bool{}
	c.each(func(n *schema.Node) {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			branches := n.Get(keyword).Items()
			for i, branch := range branches {
				for j, other := range branches {
					found[branch] = found[branch] || i != j && c.takesTexts(other)
				}
			}
		}
	})
	return found
}

// takesTexts reports whether a schema takes strings, as far as its types say.
func (c *conversion) takesTexts(n *schema.Node) bool {
	n = c.referred(n)
	if types := typesOf(n); len(types) > 0 {
		return slices.Contains(types, "string")
	}
	for _, m := range n.Get("enum").Items() {
		if m.Kind() == schema.String {
			return true
		}
	}
	return !n.Has("enum") && !n.Has("const")
}

// enumInWords leaves an enum whose members are of one type, and no strings, to
// the description.
func (c *conversion) enumInWords(n *schema.Node, members []*schema.Node) {
	if len(typesOf(n)) == 0 {
		n.Set("type", schema.NewString(typeOfValue(members[0])))
		for _, m := range members {
			if typeOfValue(m) == "number" {
				n.Set("type", schema.NewString("number"))
			}
		}
	}
	n.Delete("enum")
	c.spill(n, "one of "+snippet(schema.NewArray(members...), 200))
	c.widen("writeEnumsAsText", n, "only strings are taken in enum, and another alternative takes strings")
}

// splitEnum writes an enum of several types as a union of enums of one.
func (c *conversion) splitEnum(n *schema.Node, members []*schema.Node) {
	if n.Has("anyOf") {
		n.Delete("enum")
		c.spill(n, "one of "+snippet(schema.NewArray(members...), 200))
		c.widen("splitEnum", n, "an enum of several types beside a union is left out")
		return
	}
	var order []string
	by := map[string][]*schema.Node{}
	for _, m := range members {
		t := typeOfValue(m)
		if t == "integer" {
			t = "number"
		}
		if by[t] == nil {
			order = append(order, t)
		}
		by[t] = append(by[t], m)
	}
	var branches []*schema.Node
	for _, t := range order {
		branch := schema.NewObject(schema.Member{Name: "type", Value: schema.NewString(t)})
		if t != "null" {
			branch.Set("enum", schema.NewArray(by[t]...))
		}
		branches = append(branches, c.made(branch, n))
	}
	n.Delete("enum")
	n.Delete("type")
	n.Set("anyOf", schema.NewArray(branches...))
	c.say("splitEnum", n, "an enum of several types is not taken")
	if c.rules.bad(UnionSiblings) {
		c.pushInto(n)
	}
}

// fittingValues are those of some values that fit what n says of values of their type, where one
// does.
func fittingValues(n *schema.Node, values []*schema.Node) (kept []*schema.Node) {
	probe := schema.NewObject()
	for keyword := range keywordTypes {
		if v := n.Get(keyword); v != nil {
			probe.Set(keyword, v.Clone())
		}
	}
	if len(probe.Members()) == 0 {
		return values
	}
	judge := schema.NewValidator(probe.Bytes())
	for _, v := range values {
		if len(judge.ValidateNode(v)) == 0 {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 {
		return values
	}
	return kept
}

// enumText writes all members of an enum as strings; the way back is a table.
func (c *conversion) enumText(n *schema.Node, members []*schema.Node) {
	op := enumText{}
	texts := []*schema.Node{}
	seen := map[string]bool{}
	members = fittingValues(n, distinct(members))
	nullable, only := false, len(members) == 1
	for _, m := range members {
		if m.Kind() == schema.Null && !only && !c.rules.bad(NullableKeyword) {
			nullable = true
			continue
		}
		text := string(m.Bytes())
		if m.Kind() == schema.String {
			text = m.Text()
		}
		if seen[text] {
			n.Delete("enum")
			c.spill(n, "one of "+snippet(schema.NewArray(members...), 200))
			c.widen("writeEnumsAsText", n, "only strings are taken in enum, and two of its members would be the same string")
			return
		}
		seen[text] = true
		op.texts, op.members = append(op.texts, text), append(op.members, m)
		texts = append(texts, schema.NewString(text))
	}
	for keyword := range keywordTypes {
		n.Delete(keyword) // it judged values, not their texts
	}
	n.Set("type", schema.NewString("string"))
	n.Set("enum", schema.NewArray(texts...))
	if nullable {
		n.Set("nullable", schema.NewBool(true))
	}
	m := c.mark(n)
	m.ops = append(m.ops, op)
	c.say("writeEnumsAsText", n, "only strings are taken in enum")
}
