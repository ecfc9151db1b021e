package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// keywordTypes are the types that keywords speak of.
var keywordTypes = map[string]string{
	"properties": "object", "required": "object", "additionalProperties": "object", "patternProperties": "object",
	"propertyNames": "object", "minProperties": "object", "maxProperties": "object", "dependentRequired": "object",
	"dependentSchemas": "object", "unevaluatedProperties": "object",
	"items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array",
	"contains": "array", "minContains": "array", "maxContains": "array", "unevaluatedItems": "array",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number",
	"multipleOf": "number",
}

// splitTypeLists writes a list of types as a type and nullable, or as a union
// with each keyword where it belongs.
func (c *conversion) splitTypeLists() {
	if !c.rules.bad(TypeList) && !c.rules.bad(TypeListKeywords) {
		return
	}
	c.each(func(n *schema.Node) {
		if n.Get("type").Kind() != schema.Array {
			return
		}
		if c.rules.bad(TypeList) || !loneTypeList(n) {
			c.splitTypes(n, typesOf(n))
		}
	})
}

// loneTypeList reports whether nothing that judges stands beside a list of
// types, but for the enum of one simple type and null.
func loneTypeList(n *schema.Node) bool {
	types := typesOf(n)
	for _, m := range n.Members() {
		switch {
		case m.Name == "type", !judges(m.Name):
		case m.Name == "enum" && len(types) == 2 && slices.Contains(types, "null") && !slices.Contains(types, "object") && !slices.Contains(types, "array"):
		default:
			return false
		}
	}
	return true
}

func (c *conversion) splitTypes(n *schema.Node, names []string) {
	names = typesOfLiterals(n, names)
	var others []string
	for _, t := range names {
		if t != "null" {
			others = append(others, t)
		}
	}
	nullable := len(others) < len(names)
	c.say("splitTypeLists", n, "a list of types is not taken")
	if len(names) == 1 {
		setTypes(n, names)
		return
	}
	if nullable && len(others) == 1 && !c.rules.bad(NullableKeyword) {
		setTypes(n, others)
		n.Set("nullable", schema.NewBool(true))
		c.dropNullMember(n)
		return
	}
	if n.Has("anyOf") {
		// The union judges as well, so the types are left to the validation.
		n.Delete("type")
		c.widen("splitTypeLists", n, "a list of types beside a union is left out")
		return
	}
	kept := schema.NewObject()
	branches := make([]*schema.Node, len(names))
	for i, t := range names {
		branches[i] = c.made(schema.NewObject(schema.Member{Name: "type", Value: schema.NewString(t)}), n)
	}
	for _, m := range n.Members() {
		switch {
		case m.Name == "type":
		case !judges(m.Name):
			kept.Set(m.Name, m.Value)
		default:
			for i, t := range names {
				c.giveKeyword(branches[i], t, m)
			}
		}
	}
	var alive []*schema.Node
	for _, branch := range branches {
		if enum := branch.Get("enum"); (enum == nil || len(enum.Items()) > 0) && schema.Satisfiable(branch) {
			alive = append(alive, branch)
		}
	}
	kept.Set("anyOf", schema.NewArray(alive...))
	n.Become(kept)
}

// typesOfLiterals are those of some types of which the enum or const of n has a value, where
// it has one and some value is of them.
func typesOfLiterals(n *schema.Node, names []string) (of []string) {
	values := literals(n)
	for _, t := range names {
		if slices.ContainsFunc(values, func(v *schema.Node) bool {
			return typeOfValue(v) == t || t == "number" && typeOfValue(v) == "integer"
		}) {
			of = append(of, t)
		}
	}
	if len(of) == 0 {
		return names
	}
	return of
}

// literals are the values that the enum or const of n names.
func literals(n *schema.Node) []*schema.Node {
	if v := n.Get("const"); v != nil {
		return []*schema.Node{v}
	}
	return n.Get("enum").Items()
}

// giveKeyword puts a keyword into the branch of a type where it speaks of it.
func (c *conversion) giveKeyword(branch *schema.Node, t string, m schema.Member) {
	if enum := branch.Get("enum"); enum != nil && len(enum.Items()) == 0 {
		return // nothing fits it
	}
	of := keywordTypes[m.Name]
	switch {
	case m.Name == "enum", m.Name == "const":
		var members []*schema.Node
		items := m.Value.Items()
		if m.Name == "const" {
			items = []*schema.Node{m.Value}
		}
		for _, item := range items {
			if typeOfValue(item) == t || t == "number" && typeOfValue(item) == "integer" {
				members = append(members, item)
			}
		}
		switch {
		case len(members) == 0:
			branch.Set("enum", schema.NewArray()) // the branch goes
		case t == "null":
		case m.Name == "const":
			branch.Set("const", m.Value.Clone())
		default:
			branch.Set("enum", schema.NewArray(members...))
		}
	case of == t, of == "number" && t == "integer", of == "":
		value := m.Value.Clone()
		branch.Set(m.Name, value)
		holder := schema.NewObject(m)
		c.carryMarks(holder, branch)
	}
}

// dropNullMember takes null out of the enum of a nullable schema.
func (c *conversion) dropNullMember(n *schema.Node) {
	enum := n.Get("enum")
	if enum == nil {
		return
	}
	var kept []*schema.Node
	for _, item := range enum.Items() {
		if item.Kind() != schema.Null {
			kept = append(kept, item)
		}
	}
	if len(kept) < len(enum.Items()) {
		n.Set("enum", schema.NewArray(kept...))
	}
}

func typeOfValue(v *schema.Node) string {
	switch v.Kind() {
	case schema.Object:
		return "object"
	case schema.Array:
		return "array"
	case schema.String:
		return "string"
	case schema.Bool:
		return "boolean"
	case schema.Null:
		return "null"
	}
	if _, ok := v.Integer(); ok {
		return "integer"
	}
	return "number"
}

// nullableUnions writes a null alternative as nullable, where that is how it
// is written.
func (c *conversion) nullableUnions() {
	if c.rules.bad(NullableKeyword) || !c.rules.bad(TypeList) {
		return
	}
	c.each(func(n *schema.Node) {
		branches := n.Get("anyOf").Items()
		var others []*schema.Node
		for _, branch := range branches {
			if t := typesOf(branch); len(t) != 1 || t[0] != "null" {
				others = append(others, branch)
			}
		}
		if len(others) == len(branches) || len(others) == 0 {
			return
		}
		c.say("nullableUnions", n, "null is written as nullable")
		if len(others) > 1 {
			n.Set("anyOf", schema.NewArray(others...))
			n.Set("nullable", schema.NewBool(true))
			return
		}
		n.Delete("anyOf")
		only := others[0]
		m := c.mark(n)
		if in := c.marks[only]; in != nil {
			m.said = append(m.said, in.said...)
			m.ops = append(m.ops, in.ops...)
		}
		merged, ok := c.merge(n, c.below("nullableUnions", n, n, only))
		if !ok {
			merged = only
		}
		n.Become(merged)
		n.Set("nullable", schema.NewBool(true))
	})
}
