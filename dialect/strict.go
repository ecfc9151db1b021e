package dialect

import (
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// acceptNulls makes optional properties nullable where a model's null for one
// would fail the request.
func (c *conversion) acceptNulls() {
	if !c.rules.NullForOptional {
		return
	}
	c.each(func(n *schema.Node) {
		needed := required(n)
		var op nullAbsent
		op.drop = true
		for _, p := range n.Get("properties").Members() {
			if slices.Contains(needed, p.Name) || c.acceptsNull(p.Value) {
				continue
			}
			if c.addNull(p.Value) {
				op.names = append(op.names, p.Name)
			}
		}
		if len(op.names) > 0 {
			m := c.mark(n)
			m.ops = append(m.ops, op)
			const why = "the provider refuses a model's null for an optional property"
			if c.countsMembers(n, op.names) {
				c.widen("acceptNulls", n, why+"; one that stands for absent counts as a member there")
			} else {
				c.say("acceptNulls", n, why)
			}
		}
	})
}

// countsMembers reports whether n, or a schema in it that judges the same value, asks
// that members are there: some number of them, or one of names without being where these
// are optional.
func (c *conversion) countsMembers(n *schema.Node, names []string) bool {
	seen := map[*schema.Node]bool{}
	var counts func(s *schema.Node) bool
	counts = func(s *schema.Node) bool {
		if s == nil || seen[s] {
			return false
		}
		seen[s] = true
		if s.Has("minProperties") || s.Has("dependentRequired") || counts(c.target(s)) {
			return true
		}
		for _, name := range required(s) {
			if s != n && slices.Contains(names, name) {
				return true
			}
		}
		for sub := range s.Subschemas() {
			if sub.InPlace() && counts(sub.Node) {
				return true
			}
		}
		return false
	}
	return counts(n)
}

// acceptsNull reports whether null is valid against n.
func (c *conversion) acceptsNull(n *schema.Node) bool {
	return acceptsNull(c.root, n, 0)
}

func acceptsNull(root, n *schema.Node, depth int) bool {
	if depth > schema.MaxDepth {
		return true
	}
	if n.Kind() == schema.Bool {
		return n.IsBool(true)
	}
	if n.Get("nullable").IsBool(true) {
		return true
	}
	if t := typesOf(n); len(t) > 0 && !slices.Contains(t, "null") {
		return false
	}
	if v := n.Get("const"); v != nil && v.Kind() != schema.Null {
		return false
	}
	if enum := n.Get("enum"); enum != nil {
		null := false
		for _, item := range enum.Items() {
			null = null || item.Kind() == schema.Null
		}
		if !null {
			return false
		}
	}
	if target := resolveRef(root, n); target != nil && !acceptsNull(root, target, depth+1) {
		return false
	}
	for _, branch := range n.Get("allOf").Items() {
		if !acceptsNull(root, branch, depth+1) {
			return false
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if union := n.Get(keyword); union != nil {
			some := false
			for _, branch := range union.Items() {
				some = some || acceptsNull(root, branch, depth+1)
			}
			if !some {
				return false
			}
		}
	}
	return true
}

// addNull makes n accept null.
func (c *conversion) addNull(n *schema.Node) bool {
	null := schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("null")})
	if enum := n.Get("enum"); enum != nil && !c.rules.bad(EnumMixed) {
		n.Set("enum", schema.NewArray(append(append([]*schema.Node(nil), enum.Items()...), schema.NewNull())...))
	} else if enum != nil || n.Has("const") || n.Has("$ref") || n.Has("oneOf") || n.Has("allOf") {
		c.wrapNull(n, null)
		return true
	}
	switch t := typesOf(n); {
	case n.Has("anyOf"):
		if len(t) > 0 {
			c.wrapNull(n, null)
			return true
		}
		n.Set("anyOf", schema.NewArray(append(append([]*schema.Node(nil), n.Get("anyOf").Items()...), null)...))
	case len(t) == 0:
		return n.Has("enum")
	case !c.rules.bad(TypeList):
		setTypes(n, append(append([]string(nil), t...), "null"))
	default:
		c.wrapNull(n, null)
	}
	return true
}

// wrapNull makes n a union of what it was and null; the words stay outside.
func (c *conversion) wrapNull(n, null *schema.Node) {
	inner, outer := schema.NewObject(), schema.NewObject()
	for _, m := range n.Members() {
		if words[m.Name] {
			outer.Set(m.Name, m.Value)
		} else {
			inner.Set(m.Name, m.Value)
		}
	}
	c.made(inner, n)
	m, in := c.mark(n), c.mark(inner)
	in.ops, m.ops = m.ops, nil
	in.judge, in.path, in.origin = m.judge, m.path, m.origin
	m.judge = false
	outer.Set("anyOf", schema.NewArray(inner, null))
	n.Become(outer)
}

// makeStrict brings all objects into the form of strict tools. It fails where
// that would not be equivalent.
func (c *conversion) makeStrict() {
	form := c.rules.Form
	if form == "" {
		return
	}
	c.each(func(n *schema.Node) {
		if c.failed != "" || n.Kind() != schema.Object {
			return
		}
		if !slices.Contains(typesOf(n), "object") {
			return
		}
		properties := n.Get("properties").Members()
		extra := n.Get("additionalProperties")
		more := n.Get("unevaluatedProperties")
		if extra != nil && !extra.IsBool(false) || n.Has("patternProperties") || more != nil && !more.IsBool(false) {
			c.fail(n, "an object with arbitrary members cannot be strict")
			return
		}
		if len(properties) == 0 && n != c.root && !extra.IsBool(false) {
			c.fail(n, "an object without properties cannot be strict")
			return
		}
		for _, name := range required(n) {
			if !n.Get("properties").Has(name) {
				c.fail(n, "the required name "+name+" is no property")
				return
			}
		}
		if extra == nil {
			n.Set("additionalProperties", schema.NewBool(false))
			c.widen("closeObjects", n, "a strict object is closed: the model cannot send members that the schema does not name")
		}
		if form == "all_required" {
			c.requireAll(n, properties)
		}
	})
}

// requireAll makes all properties required; null stands for what was optional.
func (c *conversion) requireAll(n *schema.Node, properties []schema.Member) {
	needed := required(n)
	var op nullAbsent
	var names []string
	for _, p := range properties {
		names = append(names, p.Name)
		if slices.Contains(needed, p.Name) {
			continue
		}
		if c.acceptsNull(p.Value) {
			if !c.lossy {
				c.fail(p.Value, "the property is optional and nullable, and null cannot say both")
				return
			}
			c.narrow("makeStrict", p.Value, "null is taken for absent")
		} else if !c.addNull(p.Value) {
			c.fail(p.Value, "the property has no type that null could be added to")
			return
		}
		op.names = append(op.names, p.Name)
	}
	items := make([]*schema.Node, len(names))
	for i, name := range names {
		items[i] = schema.NewString(name)
	}
	if len(needed) < len(names) || len(names) == 0 {
		n.Set("required", schema.NewArray(items...))
	}
	if len(op.names) > 0 {
		m := c.mark(n)
		m.ops = append(m.ops, op)
		c.say("makeStrict", n, "in a strict tool all properties are required; null stands for absent")
	}
}

// fail says that this form is not possible.
func (c *conversion) fail(n *schema.Node, why string) {
	if c.failed == "" {
		c.failed = fmt.Sprintf("%s (at %q)", why, c.mark(n).at)
	}
}
