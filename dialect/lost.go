package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

// keepMembers lets the model send the members that a schema declared in what was
// left out, such as a condition. An object is closed where a tool is strict, where an
// engine writes declared members only, and by unevaluatedProperties: without this no
// call could have such a member, not even where the server requires it.
func (c *conversion) keepMembers() {
	c.each(func(n *schema.Node) {
		m := c.marks[n]
		if m == nil || m.origin == nil || c.failed != "" || n.Get("additionalProperties").IsBool(false) || !takes(n, "object") || unrestricted(n) {
			return
		}
		declared, kept := declaring{asked: true}, declaring{}
		if n.Has("unevaluatedProperties") || c.target(n) == nil { // what stays in a definition is dealt with there
			declared.target, kept.target = c.doc.Target, c.target
		}
		declared.in(m.origin)
		kept.in(n)
		name, lost := c.lost(n, &declared, &kept)
		if !lost {
			return
		}
		if c.rules.Form != "" {
			c.fail(n, "the strict form has no place for "+name)
			return
		}
		closed := []*schema.Node{n}
		if m.origin.Has("unevaluatedProperties") && !n.Has("unevaluatedProperties") {
			closed = slices.Concat(n.Get("anyOf").Items(), n.Get("oneOf").Items()) // into which it was pushed
		}
		for _, object := range closed {
			if restricts(object, "unevaluatedProperties") {
				object.Delete("unevaluatedProperties")
				c.widen("keepMembers", object, "unevaluatedProperties would keep out "+name+", which left with another keyword")
			}
		}
		if more := n.Get("additionalProperties"); more.Kind() == schema.Object && m.origin.Has("patternProperties") && !m.origin.Has("additionalProperties") {
			c.narrow("keepMembers", n, name+", which left with another keyword, can be written with the values of patternProperties only")
		}
		if !c.rules.ClosedBySilence || c.rules.bad(Open) {
			return
		}
		for _, object := range kept.schemas {
			if isObject(object) && !object.Has("additionalProperties") {
				object.Set("additionalProperties", schema.NewBool(true))
				c.say("keepMembers", object, "the object would be closed to "+name+", which left with another keyword")
			}
		}
	})
}

// lost returns, in words, what was declared and is no longer.
func (c *conversion) lost(n *schema.Node, declared, kept *declaring) (string, bool) {
	for _, name := range declared.names {
		left := n == c.root && name == formatParameter && c.dropFormat // on purpose
		if !left && !kept.has[name] {
			return "the member " + cut(name, 60), true
		}
	}
	if declared.open && !kept.open || n.Has("unevaluatedProperties") && declared.maps && !kept.maps {
		return "members of any name", true
	}
	return "", false
}

// takes reports whether n can be of a type, as far as its types say.
func takes(n *schema.Node, name string) bool {
	types := typesOf(n)
	return len(types) == 0 || slices.Contains(types, name)
}

// A declaring finds the members that a schema declares, by itself and by the schemas in
// it that judge the same value.
type declaring struct {
	target  func(*schema.Node) *schema.Node // nil: references are not followed
	schemas []*schema.Node
	seen    map[*schema.Node]bool
	never   map[*schema.Node]bool // of what is referred to, whether no value fits it
	names   []string
	has     map[string]bool
	open    bool // there are members whose names are not written out
	maps    bool // and they are none of unevaluatedProperties
	asked   bool // members that are only required count, too
}

func (d *declaring) in(n *schema.Node) {
	if n == nil || d.seen[n] || !takes(n, "object") || impossible(n) {
		return
	}
	if d.seen == nil {
		d.seen, d.has = map[*schema.Node]bool{}, map[string]bool{}
	}
	d.seen[n], d.schemas = true, append(d.schemas, n)
	for _, p := range n.Get("properties").Members() {
		if !d.impossible(p.Value) {
			d.add(p.Name)
		}
	}
	if d.asked {
		for _, name := range required(n) {
			d.add(name)
		}
		for _, m := range n.Get("dependentRequired").Members() {
			for _, item := range m.Value.Items() {
				d.add(item.Text())
			}
		}
	}
	says := func(keyword string) bool { return n.Has(keyword) && !n.Get(keyword).IsBool(false) }
	d.maps = d.maps || says("additionalProperties") || len(n.Get("patternProperties").Members()) > 0
	d.open = d.open || d.maps || says("unevaluatedProperties")
	if d.target != nil {
		d.in(d.target(n))
	}
	for sub := range n.Subschemas() {
		if sub.InPlace() && sub.Keyword != "not" {
			d.in(sub.Node)
		}
	}
}

// impossible reports whether no value fits n for certain, be it for what it refers to.
func (d *declaring) impossible(n *schema.Node) bool {
	never := neverFits(n)
	for range schema.MaxDepth {
		if never || d.target == nil || d.target(n) == nil {
			break
		}
		n = d.target(n)
		known := false
		if never, known = d.never[n]; !known { // many may refer to it
			never = neverFits(n)
			if d.never == nil {
				d.never = map[*schema.Node]bool{}
			}
			d.never[n] = never
		}
	}
	return never
}

// neverFits reports whether no value fits n for certain, by itself.
func neverFits(n *schema.Node) bool {
	return impossible(n) || slices.ContainsFunc(n.Get("allOf").Items(), impossible)
}

func (d *declaring) add(name string) {
	if !d.has[name] {
		d.has[name], d.names = true, append(d.names, name)
	}
}
