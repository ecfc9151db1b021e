package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// mergeAllOf replaces allOf by one schema that says the same. What cannot be
// merged goes to the description.
func (c *conversion) mergeAllOf() {
	c.each(func(n *schema.Node) {
		branches := n.Get("allOf").Items()
		if len(branches) == 0 ||
			len(branches) == 1 && !c.rules.bad(AllOfSingle) || len(branches) > 1 && !c.rules.bad(AllOfMulti) {
			return
		}
		c.foldAllOf(n)
	})
}

// foldAllOf merges the branches of one allOf into the schema that holds it.
func (c *conversion) foldAllOf(n *schema.Node) {
	branches := n.Get("allOf").Items()
	n.Delete("allOf")
	whole, speaking, own := true, map[string]int{}, schema.NewObject()
	for _, keyword := range unevaluated {
		for _, speaker := range append([]*schema.Node{n}, branches...) {
			if evaluates(speaker, keyword) {
				speaking[keyword]++
			}
		}
		if n.Has(keyword) {
			own.Set(keyword, n.Get(keyword))
		}
	}
	for _, branch := range branches {
		origin := branch
		if branch.Has("$ref") && c.rules.bad(RefSiblings) {
			branch = c.resolved(branch) // it could not stand beside what n has
		}
		rest := c.evaluated(branch, func(keyword string) bool {
			others := speaking[keyword]
			if evaluates(origin, keyword) {
				others--
			}
			return restricts(branch, keyword) && others > 0 || outspoken(branch, own, keyword)
		})
		if rest != branch {
			branch, whole = rest, false
		}
		merged, ok := c.merge(n, branch)
		if !ok {
			whole = false
			c.spill(n, "also "+snippet(branch, 200))
			continue
		}
		c.become(n, merged)
	}
	if whole {
		c.say("mergeAllOf", n, "allOf is not taken")
	} else {
		c.widen("mergeAllOf", n, "allOf is not taken, and not all of it can be merged")
	}
}

// mergeTwins merges schemas of which neither holds the other.
func (c *conversion) mergeTwins(a, b *schema.Node) (*schema.Node, bool) {
	if (outspoken(a, b, unevaluated...) || outspoken(b, a, unevaluated...)) && !schema.Equal(a, b) {
		return nil, false
	}
	return c.merge(a, b)
}

// merge returns a schema that takes what both a and b take, unless one of them is outspoken;
// ok is false where that cannot be written without allOf. a's words win.
func (c *conversion) merge(a, b *schema.Node) (_ *schema.Node, ok bool) {
	switch {
	case a.IsBool(true):
		return c.clone(b), true
	case b.IsBool(true):
		return c.clone(a), true
	case a.IsBool(false), b.IsBool(false):
		return schema.NewBool(false), true
	}
	m := merging{c: c, out: c.clone(a)}
	if !m.additional(a, b) || !sameWithin(a, b) {
		return nil, false
	}
	dropAlone(m.out)
	for _, member := range b.Members() {
		if alone(b, member.Name) {
			continue
		}
		mine := m.out.Get(member.Name)
		if mine == nil {
			if member.Name == "additionalProperties" {
				continue // dealt with above
			}
			value := member.Value.Clone()
			m.out.Set(member.Name, value)
			continue
		}
		if !m.keyword(member.Name, mine, member.Value) {
			return nil, false
		}
	}
	fitMembers(m.out)
	if !schema.Satisfiable(m.out) {
		return nil, false // engines fail over what nothing fits; better left to the validation
	}
	// The values inside came over without their marks.
	c.carryMarks(b, m.out)
	c.inherit(m.out, c.marks[b])
	return m.out, true
}

// heads are the keywords without which those beside them say nothing.
var heads = map[string]string{"minContains": "contains", "maxContains": "contains", "then": "if", "else": "if"}

// alone reports whether a keyword says nothing in n.
func alone(n *schema.Node, keyword string) bool {
	head, ok := heads[keyword]
	return ok && !n.Has(head)
}

// dropAlone takes away what says nothing in n, and would beside what n is merged with.
func dropAlone(n *schema.Node) {
	for keyword := range heads {
		if alone(n, keyword) {
			n.Delete(keyword)
		}
	}
}

// sameWithin reports whether what a and b both say of contained items and of items by their
// place can be said in one schema.
func sameWithin(a, b *schema.Node) bool {
	if a.Has("contains") && b.Has("contains") && (noneNeeded(a) && !b.Has("minContains") || noneNeeded(b) && !a.Has("minContains")) {
		return false // silence wants one
	}
	// items speaks of what prefixItems beside it leaves.
	judged := func(n *schema.Node) bool { return restricts(n, "items") }
	return sameKeyword(a, b, "prefixItems") || !judged(a) && !judged(b) ||
		!judged(a) && !a.Has("prefixItems") || !judged(b) && !b.Has("prefixItems")
}

// noneNeeded reports whether minContains lets an array do without an item that fits contains.
func noneNeeded(n *schema.Node) bool {
	order, ok := schema.Compare(n.Get("minContains"), schema.NewNumber("1"))
	return ok && order < 0
}

func sameKeyword(a, b *schema.Node, keyword string) bool {
	mine, theirs := a.Get(keyword), b.Get(keyword)
	return mine == theirs || mine != nil && theirs != nil && schema.Equal(mine, theirs)
}

// inherit lets n say what left a schema that became a part of it, of which m is the mark.
func (c *conversion) inherit(n *schema.Node, m *mark) {
	if m == nil || len(m.said) == 0 && !m.wider {
		return
	}
	own := c.mark(n)
	own.wider = own.wider || m.wider
	known := make(map[string]bool, len(own.said))
	for _, words := range own.said {
		known[words] = true
	}
	for _, words := range m.said {
		if !known[words] {
			own.said = append(own.said, words)
		}
	}
}

// become makes n what it was merged to.
func (c *conversion) become(n, merged *schema.Node) {
	n.Become(merged)
	c.inherit(n, c.marks[merged])
}

// carryMarks gives the schemas that were copied from one tree to another the
// marks that they had, by their place.
func (c *conversion) carryMarks(from, to *schema.Node) {
	twins := map[string]*schema.Node{}
	for sub := range to.Subschemas() {
		twins[sub.Pointer()] = sub.Node
	}
	for sub := range from.Subschemas() {
		if twin := twins[sub.Pointer()]; twin != nil && c.marks[twin] == nil {
			c.cloneMarks(sub.Node, twin)
		}
	}
}

type merging struct {
	c   *conversion
	out *schema.Node
}

// additional deals with additionalProperties, which speaks of the properties
// beside it alone.
func (m *merging) additional(a, b *schema.Node) bool {
	extraA, extraB := a.Get("additionalProperties"), b.Get("additionalProperties")
	restrictsA := extraA != nil && !extraA.IsBool(true)
	restrictsB := extraB != nil && !extraB.IsBool(true)
	if !restrictsA && !restrictsB {
		if extraA == nil && extraB != nil {
			m.out.Set("additionalProperties", extraB.Clone()) // open by its own word
		}
		return true
	}
	if a.Has("patternProperties") || b.Has("patternProperties") {
		return false
	}
	if restrictsA && !m.confine(b, a, extraA) || restrictsB && !m.confine(a, b, extraB) {
		return false
	}
	switch {
	case !restrictsA:
		m.out.Set("additionalProperties", extraB.Clone())
	case restrictsB:
		both, ok := m.c.mergeTwins(extraA, extraB)
		if !ok {
			return false
		}
		m.out.Set("additionalProperties", both)
	}
	return true
}

// confine judges the properties that only other has by the extra of one.
func (m *merging) confine(other, one, extra *schema.Node) bool {
	for _, p := range other.Get("properties").Members() {
		if one.Get("properties").Has(p.Name) {
			continue
		}
		if !extra.IsBool(false) {
			return false
		}
		if slices.Contains(append(required(one), required(other)...), p.Name) {
			return false // nothing would ever fit; better left to the validation
		}
		return false
	}
	return true
}

// keyword merges one keyword that both have.
func (m *merging) keyword(name string, mine, theirs *schema.Node) bool {
	if schema.Equal(mine, theirs) {
		return true
	}
	if words[name] || !judges(name) && name != "$defs" {
		return true
	}
	switch name {
	case "type":
		return m.types(mine, theirs)
	case "properties", "$defs":
		return m.properties(name, theirs)
	case "required":
		names := required(m.out)
		for _, item := range theirs.Items() {
			if !slices.Contains(names, item.Text()) {
				names = append(names, item.Text())
			}
		}
		setRequired(m.out, names)
		return true
	case "enum":
		return m.enum(mine, theirs)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains":
		return m.bound(name, mine, theirs, 1)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains":
		return m.bound(name, mine, theirs, -1)
	case "uniqueItems":
		m.out.Set(name, schema.NewBool(true)) // they differ, so one is true
		return true
	case "items", "propertyNames":
		both, ok := m.c.mergeTwins(mine, theirs)
		if ok {
			m.out.Set(name, both)
		}
		return ok && !m.out.Has("prefixItems")
	case "additionalProperties":
		return true
	}
	return false
}

func (m *merging) types(mine, theirs *schema.Node) bool {
	a := typesOf(schema.NewObject(schema.Member{Name: "type", Value: mine}))
	b := typesOf(schema.NewObject(schema.Member{Name: "type", Value: theirs}))
	var both []string
	for _, t := range a {
		switch {
		case slices.Contains(b, t), t == "integer" && slices.Contains(b, "number"):
			both = append(both, t)
		case t == "number" && slices.Contains(b, "integer"):
			both = append(both, "integer")
		}
	}
	if len(both) == 0 {
		return false
	}
	setTypes(m.out, both)
	return true
}

func (m *merging) properties(keyword string, theirs *schema.Node) bool {
	holder := m.out.Get(keyword)
	for _, p := range theirs.Members() {
		old := holder.Get(p.Name)
		if old == nil {
			value := m.c.clone(p.Value)
			holder.Set(p.Name, value)
			continue
		}
		both, ok := m.c.mergeTwins(old, p.Value)
		if !ok {
			return false
		}
		holder.Set(p.Name, both)
	}
	return true
}

func (m *merging) enum(mine, theirs *schema.Node) bool {
	var both []*schema.Node
	allowed := make(map[string]bool, len(theirs.Items()))
	for _, b := range theirs.Items() {
		allowed[b.Identity()] = true
	}
	for _, a := range mine.Items() {
		if allowed[a.Identity()] {
			both = append(both, a)
		}
	}
	if len(both) == 0 {
		return false
	}
	m.out.Set("enum", schema.NewArray(both...))
	return true
}

// bound keeps the larger of two numbers where sign is 1, else the smaller.
func (m *merging) bound(name string, mine, theirs *schema.Node, sign int) bool {
	order, ok := schema.Compare(theirs, mine)
	if ok && order == sign {
		m.out.Set(name, theirs)
	}
	return ok
}
