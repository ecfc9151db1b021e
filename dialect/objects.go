package dialect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// addMissing gives objects properties and arrays items where they must have
// them.
func (c *conversion) addMissing() {
	c.each(func(n *schema.Node) {
		types := typesOf(n)
		if contains(types, "object") && !n.Has("properties") && (c.rules.bad(PropertiesMissing) || n == c.root) {
			n.Set("properties", schema.NewObject())
			c.say("addMissingProperties", n, "an object without properties is refused")
		}
		if contains(types, "array") && !n.Has("items") && c.rules.bad(ItemsMissing) {
			n.Set("items", c.anyItems(n))
			c.say("addMissingItems", n, "an array without items is refused")
		}
	})
}

// defineRequired drops required names that are no properties, where they are
// refused.
func (c *conversion) defineRequired() {
	if !c.rules.bad(RequiredUndefined) {
		return
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

// freeForm reports whether n is an object whose members may have any name.
func freeForm(n *schema.Node) bool {
	if !isObject(n) || len(n.Get("properties").Members()) > 0 {
		return false
	}
	extra := n.Get("additionalProperties")
	return !extra.IsBool(false) && extra.Kind() != schema.Object
}

// openExplicitly marks objects without properties as open, where silence means
// that they are closed.
func (c *conversion) openExplicitly() {
	if !c.rules.ClosedBySilence || c.rules.bad(Open) {
		return
	}
	c.each(func(n *schema.Node) {
		if n != c.root && freeForm(n) && !n.Has("additionalProperties") && !n.Has("patternProperties") && !n.Has("unevaluatedProperties") {
			n.Set("additionalProperties", schema.NewBool(true))
			c.say("openExplicitly", n, "without a word on it the object would be closed")
		}
	})
}

// openObjects takes additionalProperties: false away. It binds nobody where a
// tool is not strict, and models fill objects better without it; the
// validation of arguments still knows it.
func (c *conversion) openObjects() {
	c.each(func(n *schema.Node) {
		extra := n.Get("additionalProperties")
		if extra.Kind() == schema.Object && unrestricted(extra) && c.rules.bad(EmptySchema) {
			extra = schema.NewBool(true)
			n.Set("additionalProperties", extra)
		}
		switch {
		case extra.IsBool(false) && c.rules.Form == "":
			if c.rules.ClosedBySilence && (len(n.Get("properties").Members()) > 0 || n == c.root) {
				n.Delete("additionalProperties")
				c.say("openObjects", n, "without a word on it the object is closed anyway")
			} else if !c.rules.ClosedBySilence {
				n.Delete("additionalProperties")
				c.widen("openObjects", n, "additionalProperties: false binds nobody in a tool that is not strict")
			}
		case extra.IsBool(true) && c.rules.bad(Open):
			n.Delete("additionalProperties")
			c.say("openObjects", n, "additionalProperties: true is not taken; it says what silence says")
		}
	})
}

// writeMaps deals with objects whose names are arbitrary.
func (c *conversion) writeMaps() {
	besideText := map[*schema.Node]bool{}
	c.each(func(n *schema.Node) {
		branches := n.Get("anyOf").Items()
		for _, branch := range branches {
			if t := typesOf(branch); len(t) == 0 || contains(t, "string") {
				for _, other := range branches {
					besideText[other] = true
				}
			}
		}
	})
	c.each(func(n *schema.Node) {
		if c.rules.MapsAsPairs && !besideText[n] && n != c.root && isObject(n) && len(n.Get("properties").Members()) == 0 {
			c.writeMapsAsPairs(n)
		}
		if extra := n.Get("additionalProperties"); extra.Kind() == schema.Object && c.rules.bad(Map) {
			n.Delete("additionalProperties")
			if !unrestricted(extra) {
				c.spill(n, "further members: "+briefly(extra))
			}
			c.widen("writeMaps", n, "a schema in additionalProperties is not taken")
		}
		if patterns := n.Get("patternProperties"); patterns != nil && c.rules.bad(PatternProperties) {
			n.Delete("patternProperties")
			for _, p := range patterns.Members() {
				c.spill(n, "members named like "+p.Name+": "+briefly(p.Value))
			}
			c.widen("writeMaps", n, "patternProperties is not taken")
		}
	})
}

// writeMapsAsPairs writes a map as an array of pairs, and an object of which
// nothing is known as JSON text.
func (c *conversion) writeMapsAsPairs(n *schema.Node) {
	if len(required(n)) > 0 || n.Has("anyOf") {
		return
	}
	extra := n.Get("additionalProperties")
	m := c.mark(n)
	if extra.IsBool(false) {
		return
	}
	if n.Has("patternProperties") || extra.Kind() != schema.Object || unrestricted(extra) {
		c.keepWords(n, schema.Member{Name: "type", Value: schema.NewString("string")})
		c.spill(n, "a JSON object, written as text")
		m.ops = append(m.ops, jsonText{})
		c.say("writeObjectAsText", n, "an object of which nothing is known arrives empty")
		return
	}
	pair := schema.NewObject(
		schema.Member{Name: "type", Value: schema.NewString("object")},
		schema.Member{Name: "properties", Value: schema.NewObject(
			schema.Member{Name: "key", Value: schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("string")})},
			schema.Member{Name: "value", Value: extra})},
		schema.Member{Name: "required", Value: schema.NewArray(schema.NewString("key"), schema.NewString("value"))})
	pair = c.made(pair, n)
	members := []schema.Member{{Name: "type", Value: schema.NewString("array")}, {Name: "items", Value: pair}}
	for from, to := range map[string]string{"minProperties": "minItems", "maxProperties": "maxItems"} {
		if limit := n.Get(from); limit != nil {
			members = append(members, schema.Member{Name: to, Value: limit})
		}
	}
	c.keepWords(n, members...)
	c.spill(n, "a list of keys and values")
	m.ops = append(m.ops, pairs{})
	c.say("writeMapsAsPairs", n, "an object with arbitrary names arrives empty")
}

// keepWords replaces all that judges in n; nullable and the words stay.
func (c *conversion) keepWords(n *schema.Node, members ...schema.Member) {
	out := schema.NewObject(members...)
	for _, m := range n.Members() {
		if !judges(m.Name) && m.Name != "default" {
			out.Set(m.Name, m.Value)
		}
	}
	n.Become(out)
}

// briefly describes a schema in a few words.
func briefly(n *schema.Node) string {
	if n.Has("$ref") || n.Has("properties") || n.Has("anyOf") || n.Has("items") {
		return snippet(n, 200)
	}
	return n.Words()
}

// writeTuples writes prefixItems as a union of the items.
func (c *conversion) writeTuples() {
	if !c.rules.bad(PrefixItems) {
		return
	}
	c.each(func(n *schema.Node) {
		prefix := n.Get("prefixItems").Items()
		if len(prefix) == 0 {
			return
		}
		n.Delete("prefixItems")
		branches := append([]*schema.Node(nil), prefix...)
		rest := n.Get("items")
		n.Delete("items")
		open := rest == nil || rest.IsBool(true)
		if rest.IsBool(false) && !n.Has("maxItems") {
			n.Set("maxItems", schema.NewNumber(strconv.Itoa(len(prefix))))
		}
		if rest.Kind() == schema.Object {
			branches = append(branches, rest)
		}
		if limit := n.Get("maxItems"); open && limit.Kind() == schema.Number {
			if order, ok := schema.Compare(limit, schema.NewNumber(strconv.Itoa(len(prefix)))); ok && order <= 0 {
				open = false
			}
		}
		var kinds []string
		for i, p := range prefix {
			kinds = append(kinds, fmt.Sprintf("%d: %s", i, briefly(p)))
		}
		c.spill(n, "items in this order: "+cut(strings.Join(kinds, ", "), 300))
		switch {
		case open:
			n.Set("items", c.anyItems(n))
		case len(distinct(branches)) == 1:
			n.Set("items", branches[0])
		default:
			items := schema.NewObject(schema.Member{Name: "anyOf", Value: schema.NewArray(distinct(branches)...)})
			n.Set("items", c.made(items, n))
		}
		c.widen("writeTuples", n, "a list of schemas for the items is not taken")
	})
}

func distinct(list []*schema.Node) []*schema.Node {
	var out []*schema.Node
	for _, n := range list {
		known := false
		for _, other := range out {
			known = known || schema.Equal(n, other)
		}
		if !known {
			out = append(out, n)
		}
	}
	return out
}

// renameProperties gives properties names that the dialect takes.
func (c *conversion) renameProperties() {
	if c.propertyName == nil && len(c.rules.ReservedNames) == 0 {
		return
	}
	c.each(func(n *schema.Node) {
		properties := n.Get("properties")
		var op rename
		for _, p := range append([]schema.Member(nil), properties.Members()...) {
			if c.legalProperty(p.Name) {
				continue
			}
			sent := c.propertyNameFor(p.Name, properties)
			properties.Rename(p.Name, sent)
			op.pairs = append(op.pairs, renamed{original: p.Name, sent: sent})
			c.spill(p.Value, "named "+cut(p.Name, 100))
		}
		if len(op.pairs) == 0 {
			return
		}
		names := required(n)
		for i, name := range names {
			for _, p := range op.pairs {
				if p.original == name {
					names[i] = p.sent
				}
			}
		}
		setRequired(n, names)
		m := c.mark(n)
		m.ops = append(m.ops, op)
		c.say("renameProperties", n, "a property name is not taken")
	})
}

func (c *conversion) legalProperty(name string) bool {
	return (c.propertyName == nil || c.propertyName.MatchString(name)) && !contains(c.rules.ReservedNames, name)
}

// propertyNameFor makes a legal name that no other property has.
func (c *conversion) propertyNameFor(name string, properties *schema.Node) string {
	base := strings.ReplaceAll(legalName(name), "-", "_")
	if len(base) > 56 {
		base = base[:56]
	}
	if strings.Trim(base, "_") == "" {
		base = "property"
	}
	if base[0] >= '0' && base[0] <= '9' {
		base = "_" + base
	}
	for i := 1; ; i++ {
		candidate := base
		if i > 1 {
			candidate = base + "_" + strconv.Itoa(i)
		} else if contains(c.rules.ReservedNames, base) {
			candidate = base + "_"
		}
		if !properties.Has(candidate) && c.legalProperty(candidate) {
			return candidate
		}
		if i > 10000 {
			return candidate
		}
	}
}

// depthOf is the number of objects and arrays inside one another, through
// definitions once.
func depthOf(root, n *schema.Node, open map[*schema.Node]bool) int {
	if open[n] {
		return 0
	}
	open[n] = true
	defer delete(open, n)
	depth := 0
	if target := resolveRef(root, n); target != nil {
		depth = depthOf(root, target, open)
	}
	for sub := range n.Subschemas() {
		switch {
		case sub.Keyword == "$defs":
		case sub.InPlace():
			depth = max(depth, depthOf(root, sub.Node, open))
		default:
			depth = max(depth, 1+depthOf(root, sub.Node, open))
		}
	}
	return depth
}

// limitDepth flattens objects, or ends them, where they are nested deeper than
// the dialect takes.
func (c *conversion) limitDepth() {
	limit := c.rules.Depth
	if limit == 0 {
		return
	}
	for range maxExpanded {
		if depthOf(c.root, c.root, map[*schema.Node]bool{}) <= limit {
			return
		}
		if !c.flattenDeepest(c.root, 0, limit) {
			break
		}
	}
	c.cutDepth(c.root, 0, limit)
}

// flattenDeepest flattens one object that lies on a path that is too long, as
// deep down as possible.
func (c *conversion) flattenDeepest(n *schema.Node, depth, limit int) bool {
	if depth+depthOf(c.root, n, map[*schema.Node]bool{}) <= limit {
		return false
	}
	for sub := range n.Subschemas() {
		inner := depth + 1
		if sub.InPlace() {
			inner = depth
		}
		if sub.Keyword != "$defs" && c.flattenDeepest(sub.Node, inner, limit) {
			return true
		}
	}
	for _, p := range n.Get("properties").Members() {
		if c.flattenProperty(n, p) {
			return true
		}
	}
	return false
}

// flattenProperty writes the properties of an object property beside it. Only
// where nothing is lost: {} is not the same as absent.
func (c *conversion) flattenProperty(n *schema.Node, p schema.Member) bool {
	inner := p.Value
	if !isObject(inner) || len(inner.Get("properties").Members()) == 0 || freeForm(inner) {
		return false
	}
	for _, m := range inner.Members() {
		if judges(m.Name) && m.Name != "type" && m.Name != "properties" && m.Name != "required" &&
			!(m.Name == "additionalProperties" && m.Value.Kind() == schema.Bool) {
			return false
		}
	}
	needed := required(inner)
	outer := required(n)
	needs := contains(outer, p.Name)
	if len(needed) == 0 {
		return false // {} could not be told from absent
	}
	properties := n.Get("properties")
	op := flatten{name: p.Name}
	if m := c.marks[inner]; m != nil {
		op.inner = m.ops
	}
	for _, q := range inner.Get("properties").Members() {
		sent := flatName(p.Name, q.Name)
		if properties.Has(sent) || !c.legalProperty(sent) {
			return false
		}
		op.names = append(op.names, renamed{original: q.Name, sent: sent})
	}
	flat := schema.NewObject()
	for _, q := range properties.Members() {
		if q.Name != p.Name {
			flat.Set(q.Name, q.Value)
			continue
		}
		for i, r := range inner.Get("properties").Members() {
			flat.Set(op.names[i].sent, r.Value)
			if d := inner.Get("description"); d != nil && i == 0 {
				c.spill(r.Value, "part of "+p.Name+": "+cut(d.Text(), 200))
			}
		}
	}
	n.Set("properties", flat)
	var names []string
	for _, name := range outer {
		if name != p.Name {
			names = append(names, name)
			continue
		}
		for _, q := range needed {
			names = append(names, flatName(p.Name, q))
		}
	}
	setRequired(n, names)
	m := c.mark(n)
	m.ops = append(m.ops, op)
	why := "objects are nested deeper than " + strconv.Itoa(c.rules.Depth) + " levels"
	if needs {
		c.say("flattenDeep", inner, why)
	} else {
		c.widen("flattenDeep", inner, why+"; a part of the optional object may come alone")
	}
	return true
}

// cutDepth ends what is still too deep: there anything goes, and the words say
// what is meant.
func (c *conversion) cutDepth(n *schema.Node, depth, limit int) {
	inside := depthOf(c.root, n, map[*schema.Node]bool{})
	if depth+inside <= limit {
		return
	}
	if depth >= limit-1 && inside > 0 {
		text := n.Clone()
		for _, keyword := range []string{"description", "title", "default", "examples"} {
			text.Delete(keyword)
		}
		t := typesOf(n)
		kept := schema.NewObject()
		switch {
		case len(t) == 1 && t[0] == "array":
			items := schema.NewObject()
			if c.rules.bad(EmptySchema) {
				items.Set("type", schema.NewString("object"))
				items.Set("properties", schema.NewObject())
			}
			kept.Set("type", schema.NewString("array"))
			kept.Set("items", items)
			if c.rules.bad(EmptySchema) && !isObject(n.Get("items")) {
				c.narrow("cutDepth", n, "nested deeper than the dialect takes; the items are taken for objects")
			}
		default:
			kept.Set("type", schema.NewString("object"))
			kept.Set("properties", schema.NewObject())
			if !isObject(n) {
				c.narrow("cutDepth", n, "nested deeper than the dialect takes; it is taken for an object")
			}
		}
		if v := n.Get("nullable"); v != nil {
			kept.Set("nullable", v)
		}
		if d := n.Get("description"); d != nil {
			kept.Set("description", d)
		}
		c.mark(n).ops = nil
		n.Become(kept)
		c.spill(n, "schema: "+snippet(text, 600))
		c.widen("cutDepth", n, "nested deeper than the dialect takes")
		return
	}
	for sub := range n.Subschemas() {
		inner := depth + 1
		if sub.InPlace() {
			inner = depth
		}
		c.cutDepth(sub.Node, inner, limit)
	}
}

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
			if contains(needed, p.Name) || c.acceptsNull(p.Value) {
				continue
			}
			if c.addNull(p.Value) {
				op.names = append(op.names, p.Name)
			}
		}
		if len(op.names) > 0 {
			m := c.mark(n)
			m.ops = append(m.ops, op)
			c.say("acceptNulls", n, "the provider refuses a model's null for an optional property")
		}
	})
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
	if t := typesOf(n); len(t) > 0 && !contains(t, "null") {
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
		return false
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
		if !contains(typesOf(n), "object") {
			return
		}
		properties := n.Get("properties").Members()
		extra := n.Get("additionalProperties")
		if extra != nil && !extra.IsBool(false) {
			c.fail(n, "an object with arbitrary members can not be strict")
			return
		}
		if len(properties) == 0 && n != c.root && !extra.IsBool(false) {
			c.fail(n, "an object without properties can not be strict")
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
			c.say("makeStrict", n, "a strict object is closed")
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
		if contains(needed, p.Name) {
			continue
		}
		if c.acceptsNull(p.Value) {
			if !c.lossy {
				c.fail(p.Value, "the property is optional and nullable, and null can not say both")
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
