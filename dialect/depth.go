package dialect

import (
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A depths measures how deep objects and arrays are inside one another, each
// schema once: a definition that much refers to is not measured again, and a
// circle ends where it closes. It holds for a tree that does not change.
type depths struct {
	root   *schema.Node
	known  map[*schema.Node]int
	refers bool // there are references
}

func (c *conversion) depths() *depths { return &depths{root: c.root, known: map[*schema.Node]int{}} }

// of is the number of objects and arrays inside one another in n.
func (d *depths) of(n *schema.Node) int {
	if depth, ok := d.known[n]; ok {
		return depth
	}
	d.known[n] = 0
	depth := 0
	if target := resolveRef(d.root, n); target != nil {
		depth, d.refers = d.of(target), true
	}
	for sub := range n.Subschemas() {
		switch {
		case sub.Keyword == "$defs":
		case sub.InPlace():
			depth = max(depth, d.of(sub.Node))
		default:
			depth = max(depth, 1+d.of(sub.Node))
		}
	}
	d.known[n] = depth
	return depth
}

// maxFlattened is the number of objects that are flattened in one tool.
const maxFlattened = 200

// limitDepth flattens objects, or ends them, where they are nested deeper than
// the dialect takes.
func (c *conversion) limitDepth() {
	limit := c.rules.Depth
	if limit == 0 {
		return
	}
	f := flattening{c: c, measured: c.depths(), limit: limit, left: maxFlattened}
	f.visit(c.root, 0)
	c.cutDepth(c.depths(), c.root, 0, limit)
}

// A flattening flattens objects that lie on paths that are too long, as deep
// down as possible.
type flattening struct {
	c        *conversion
	measured *depths
	limit    int
	left     int
}

// visit flattens what is too deep in n, and reports whether it did so.
func (f *flattening) visit(n *schema.Node, depth int) (changed bool) {
	if depth+f.measured.of(n) <= f.limit {
		return false
	}
	for sub := range n.Subschemas() {
		inner := depth + 1
		if sub.InPlace() {
			inner = depth
		}
		if sub.Keyword != "$defs" && f.visit(sub.Node, inner) {
			changed = true
		}
	}
	if changed {
		f.forget(n)
	}
	for f.left > 0 && depth+f.measured.of(n) > f.limit && f.flattenOne(n, depth) {
		f.left--
		f.forget(n)
		changed = true
	}
	return changed
}

// flattenOne flattens one property that is too deep.
func (f *flattening) flattenOne(n *schema.Node, depth int) bool {
	for _, p := range n.Get("properties").Members() {
		if depth+1+f.measured.of(p.Value) > f.limit && f.c.flattenProperty(n, p) {
			return true
		}
	}
	return false
}

// forget lets n be measured again. What refers to it is not known, so where
// there are references all are.
func (f *flattening) forget(n *schema.Node) {
	if f.measured.refers {
		f.measured = f.c.depths()
		return
	}
	delete(f.measured.known, n)
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
	needs := slices.Contains(outer, p.Name)
	if len(needed) == 0 && !needs {
		return false // {} could not be told from absent
	}
	properties := n.Get("properties")
	op := flatten{name: p.Name, required: needs, beside: map[string]bool{}}
	for _, q := range properties.Members() {
		op.beside[q.Name] = q.Name != p.Name
	}
	if m := c.marks[inner]; m != nil {
		op.inner, op.open = m.ops, m.origin != nil && !m.origin.Get("additionalProperties").IsBool(false)
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
func (c *conversion) cutDepth(measured *depths, n *schema.Node, depth, limit int) {
	inside := measured.of(n)
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
		c.spill(n, "schema: "+snippet(text, maxSchemaText))
		c.widen("cutDepth", n, "nested deeper than the dialect takes")
		return
	}
	for sub := range n.Subschemas() {
		inner := depth + 1
		if sub.InPlace() {
			inner = depth
		}
		c.cutDepth(measured, sub.Node, inner, limit)
	}
}
