package dialect

import (
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// rootKeywords are what many refuse at the root, beside type and properties.
var rootKeywords = []string{"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const"}

// settleRoot makes sure that the root is an object, and merges what judges it
// beside that. It reports a root that can never be one.
func (c *conversion) settleRoot() (reason string) {
	if c.root.Kind() == schema.Bool {
		if c.root.IsBool(false) {
			return "is false: no arguments would ever fit"
		}
		c.root.Become(schema.NewObject())
	}
	if c.root.Has("$ref") && c.rules.bad(RootCombinator) {
		x := expansion{conversion: c, hoisted: map[*schema.Node]string{}, open: map[*schema.Node]int{}}
		x.inlineRoot()
	}
	switch t := typesOf(c.root); {
	case len(t) == 1 && t[0] == "object":
	case contains(t, "object"):
		setTypes(c.root, []string{"object"})
		c.say("settleRoot", c.root, "arguments are always an object")
	case len(t) > 0:
		return "is of type " + strings.Join(t, " or ") + ", and the arguments of a tool are an object"
	default:
		typed := schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("object")})
		for _, m := range c.root.Members() {
			typed.Set(m.Name, m.Value)
		}
		c.root.Become(typed)
		c.say("settleRoot", c.root, "arguments are always an object")
	}
	return ""
}

// inlineRoot writes out a reference at the root; references to the root from
// within it become definitions later.
func (x *expansion) inlineRoot() {
	target := x.doc.Target(x.marks[x.root].origin)
	for i := 0; target != nil && i < schema.MaxDepth; i++ {
		inner := x.copyOf(target)
		n := x.root
		siblings := n.Clone()
		x.cloneMarks(n, siblings)
		siblings.Delete("$ref")
		merged, ok := x.merge(siblings, inner)
		if !ok {
			merged = inner
			x.widen("inlineRefs", n, "what stands beside the reference can not be merged with it")
		}
		n.Become(merged)
		target = x.doc.Target(target)
	}
	x.say("inlineRefs", x.root, "a reference at the root is not taken")
}

// mergeRoot folds the combinators at the root into one object: the properties
// of all branches, of which those are required that each branch requires. The
// alternatives go to the tool's description.
func (c *conversion) mergeRoot() {
	if !c.rules.bad(RootCombinator) {
		return
	}
	if c.root.Has("allOf") {
		c.foldAllOf(c.root)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if union := c.root.Get(keyword); union != nil {
			c.mergeRootUnion(keyword, union)
		}
	}
	for _, keyword := range rootKeywords {
		if value := c.root.Get(keyword); value != nil {
			c.root.Delete(keyword)
			c.notes = append(c.notes, "Arguments must also satisfy "+keyword+" "+snippet(value, 300)+".")
			c.widen("mergeRoot", c.root, keyword+" is not taken at the root")
		}
	}
}

func (c *conversion) mergeRootUnion(keyword string, union *schema.Node) {
	c.root.Delete(keyword)
	var branches []*schema.Node
	for _, branch := range union.Items() {
		branch = c.resolved(branch)
		if t := typesOf(branch); len(t) > 0 && !contains(t, "object") || impossible(branch) {
			continue
		}
		if branch.Has("allOf") {
			c.foldAllOf(branch)
		}
		branches = append(branches, branch)
	}
	if c.root.Kind() != schema.Object {
		return
	}
	properties := c.root.Get("properties")
	if properties == nil {
		properties = schema.NewObject()
	}
	var common, alternatives []string
	closed := true
	for i, branch := range branches {
		names := required(branch)
		if i == 0 {
			common = names
		} else {
			var both []string
			for _, name := range common {
				if contains(names, name) {
					both = append(both, name)
				}
			}
			common = both
		}
		alternatives = append(alternatives, c.alternative(branch, names))
		closed = closed && (branch.Get("additionalProperties").IsBool(false) || c.root.Get("additionalProperties").IsBool(false))
		for _, p := range branch.Get("properties").Members() {
			c.joinProperty(properties, p)
		}
	}
	if len(properties.Members()) > 0 {
		c.root.Set("properties", properties)
	}
	names := required(c.root)
	for _, name := range common {
		if !contains(names, name) {
			names = append(names, name)
		}
	}
	setRequired(c.root, names)
	if extra := c.root.Get("additionalProperties"); extra.IsBool(false) || extra.Kind() == schema.Object {
		// It spoke of the root's own properties alone, and now there are more.
		if !extra.IsBool(false) {
			c.root.Delete("additionalProperties")
		}
	} else if closed && len(branches) > 0 {
		c.root.Set("additionalProperties", schema.NewBool(false))
	}
	c.noteAlternatives(keyword, alternatives)
	c.widen("mergeRoot", c.root, keyword+" is not taken at the root")
}

// resolved is a branch with its reference written out.
func (c *conversion) resolved(branch *schema.Node) *schema.Node {
	for i := 0; branch.Has("$ref") && i < schema.MaxDepth; i++ {
		target := c.target(branch)
		if target == nil {
			return branch
		}
		siblings := c.clone(branch)
		siblings.Delete("$ref")
		merged, ok := c.merge(siblings, target)
		if !ok {
			return c.clone(target)
		}
		branch = merged
	}
	return branch
}

// joinProperty adds a property of a branch. One that another branch has in
// another form may have either.
func (c *conversion) joinProperty(properties *schema.Node, p schema.Member) {
	old := properties.Get(p.Name)
	switch {
	case old == nil:
		properties.Set(p.Name, p.Value)
		return
	case schema.Equal(old, p.Value):
		return
	}
	if m := c.marks[old]; old.Has("anyOf") && len(old.Members()) == 1 && m != nil && !m.judge {
		for _, branch := range old.Get("anyOf").Items() {
			if schema.Equal(branch, p.Value) {
				return
			}
		}
		old.Set("anyOf", schema.NewArray(append(append([]*schema.Node(nil), old.Get("anyOf").Items()...), p.Value)...))
		return
	}
	either := schema.NewObject(schema.Member{Name: "anyOf", Value: schema.NewArray(old, p.Value)})
	properties.Set(p.Name, c.made(either, old))
}

// alternative says in words what one branch of a union at the root wants.
func (c *conversion) alternative(branch *schema.Node, names []string) string {
	var parts []string
	for _, name := range names {
		part := name
		if p := branch.Get("properties").Get(name); p != nil {
			if v := p.Get("const"); v != nil {
				part += " = " + literal(v)
			} else if enum := p.Get("enum").Items(); len(enum) == 1 {
				part += " = " + literal(enum[0])
			}
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "nothing more"
	}
	return strings.Join(parts, ", ")
}

func (c *conversion) noteAlternatives(keyword string, alternatives []string) {
	if len(alternatives) < 2 {
		return
	}
	how := "Give at least one of these sets of parameters"
	if keyword == "oneOf" {
		how = "Give exactly one of these sets of parameters"
	}
	c.notes = append(c.notes, cut(how+": ("+strings.Join(alternatives, ") or (")+")", 1000)+".")
}

// dropImpossible takes away branches, properties and conditions that no value
// can ever meet, such as the {"not": {}} that some generators write for an
// optional value.
func (c *conversion) dropImpossible() {
	c.each(func(n *schema.Node) {
		for _, keyword := range []string{"anyOf", "oneOf"} {
			c.dropBranches(n, keyword)
		}
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
			if len(names) < len(required(n)) {
				setRequired(n, names)
				c.widen("dropImpossible", n, "no value fits the required property "+p.Name)
			} else {
				c.say("dropImpossible", n, "no value fits the property "+p.Name)
			}
		}
		if n.Get("enum").Kind() == schema.Array && len(n.Get("enum").Items()) == 0 {
			n.Delete("enum")
			c.widen("dropImpossible", n, "no value fits an empty enum")
		}
		if extra := n.Get("items"); extra.IsBool(false) && !n.Has("prefixItems") {
			n.Set("items", schema.NewObject())
			n.Set("maxItems", schema.NewNumber("0"))
			c.say("dropImpossible", n, "an array of nothing is an empty one")
		}
	})
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
		if merged, ok := c.merge(n, kept[0]); ok {
			n.Become(merged)
			break
		}
		n.Set(keyword, schema.NewArray(kept...))
	default:
		n.Set(keyword, schema.NewArray(kept...))
	}
	c.say("dropImpossible", n, "an alternative of "+keyword+" can not be met")
}

// replaceOneOf writes oneOf as anyOf.
func (c *conversion) replaceOneOf() {
	if !c.rules.bad(OneOf) {
		return
	}
	c.each(func(n *schema.Node) {
		union := n.Get("oneOf")
		if union == nil {
			return
		}
		if n.Has("anyOf") {
			n.Delete("oneOf")
			c.spill(n, "exactly one of "+snippet(union, 200))
		} else {
			n.Rename("oneOf", "anyOf")
		}
		n.Delete("discriminator")
		c.widen("replaceOneOf", n, "oneOf is not taken; with anyOf several alternatives may fit")
	})
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
		if len(flat) > len(branches) {
			n.Set("anyOf", schema.NewArray(flat...))
			c.say("spliceUnions", n, "a union directly in a union is not taken")
		}
	})
}

// pushIntoBranches moves what judges beside a union into its alternatives.
func (c *conversion) pushIntoBranches() {
	if !c.rules.bad(UnionSiblings) {
		return
	}
	c.each(func(n *schema.Node) {
		branches := n.Get("anyOf").Items()
		if len(branches) == 0 {
			return
		}
		rest := schema.NewObject()
		kept := schema.NewObject()
		for _, m := range n.Members() {
			if m.Name != "anyOf" && judges(m.Name) {
				rest.Set(m.Name, m.Value)
			} else {
				kept.Set(m.Name, m.Value)
			}
		}
		if len(rest.Members()) == 0 {
			return
		}
		var pushed []*schema.Node
		dropped := false
		for _, branch := range branches {
			branch = c.resolved(branch)
			if conflict(rest, branch) {
				continue // the alternative could never be met
			}
			both, ok := c.merge(branch, rest)
			if !ok {
				dropped, both = true, branch
			}
			c.made(both, branch)
			pushed = append(pushed, both)
		}
		if dropped {
			c.spill(n, "also "+snippet(rest, 200))
			c.widen("pushIntoBranches", n, "keywords beside anyOf are not taken, and not all can be merged into it")
		} else {
			c.say("pushIntoBranches", n, "keywords beside anyOf are not taken")
		}
		if len(pushed) == 0 {
			for _, m := range rest.Members() {
				kept.Set(m.Name, m.Value)
			}
			kept.Delete("anyOf")
		} else {
			kept.Set("anyOf", schema.NewArray(pushed...))
		}
		n.Become(kept)
	})
}

// conflict reports whether two schemas name types of which no value has both.
func conflict(a, b *schema.Node) bool {
	x, y := typesOf(a), typesOf(b)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	for _, t := range x {
		if contains(y, t) || t == "integer" && contains(y, "number") || t == "number" && contains(y, "integer") {
			return false
		}
	}
	return true
}

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
	if !c.rules.bad(TypeList) {
		return
	}
	c.each(func(n *schema.Node) {
		if n.Get("type").Kind() != schema.Array {
			return
		}
		c.splitTypes(n, typesOf(n))
	})
}

func (c *conversion) splitTypes(n *schema.Node, names []string) {
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
		if enum := branch.Get("enum"); enum == nil || len(enum.Items()) > 0 {
			alive = append(alive, branch)
		}
	}
	kept.Set("anyOf", schema.NewArray(alive...))
	n.Become(kept)
}

// giveKeyword puts a keyword into the branch of a type where it speaks of it.
func (c *conversion) giveKeyword(branch *schema.Node, t string, m schema.Member) {
	of := keywordTypes[m.Name]
	switch {
	case m.Name == "enum":
		var members []*schema.Node
		for _, item := range m.Value.Items() {
			if typeOfValue(item) == t || t == "number" && typeOfValue(item) == "integer" {
				members = append(members, item)
			}
		}
		if t != "null" || len(members) == 0 {
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
		merged, ok := c.merge(n, only)
		if !ok {
			merged = only
		}
		n.Become(merged)
		n.Set("nullable", schema.NewBool(true))
	})
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
			if !contains(typesOf(branch), "array") {
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
