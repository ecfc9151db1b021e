package dialect

import (
	"slices"
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
	for _, branch := range c.root.Get("allOf").Items() {
		if branch.IsBool(false) {
			return "has false in allOf: no arguments would ever fit"
		}
	}
	switch t := typesOf(c.root); {
	case len(t) == 1 && t[0] == "object":
	case slices.Contains(t, "object"):
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
		inner = x.below("inlineRefs", n, siblings, inner)
		merged, ok := x.merge(siblings, inner)
		if !ok {
			merged = inner
			x.widen("inlineRefs", n, "what stands beside the reference cannot be merged with it")
		}
		x.become(n, merged)
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
	// All members are named by the root or by one union.
	sealed := c.root.Get("unevaluatedProperties").IsBool(false) && !c.root.Has("allOf") && c.root.Has("anyOf") != c.root.Has("oneOf")
	if c.root.Has("allOf") {
		c.foldAllOf(c.root)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if union := c.root.Get(keyword); union != nil {
			c.mergeRootUnion(keyword, union, sealed)
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

func (c *conversion) mergeRootUnion(keyword string, union *schema.Node, sealed bool) {
	c.root.Delete(keyword)
	var branches []*schema.Node
	for _, branch := range union.Items() {
		branch = c.resolved(branch)
		if t := typesOf(branch); len(t) > 0 && !slices.Contains(t, "object") || impossible(branch) {
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
	own := map[string]bool{}
	for _, p := range properties.Members() {
		own[p.Name] = true
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
				if slices.Contains(names, name) {
					both = append(both, name)
				}
			}
			common = both
		}
		alternatives = append(alternatives, c.alternative(branch, names))
		closed = closed && (closedByName(branch) || c.root.Get("additionalProperties").IsBool(false))
		for _, p := range branch.Get("properties").Members() {
			c.joinProperty(properties, p)
		}
	}
	c.sayUndeclared(keyword, branches, own, properties, sealed && namesOnly(c.root))
	if len(properties.Members()) > 0 {
		c.root.Set("properties", properties)
	}
	names := required(c.root)
	for _, name := range common {
		if !slices.Contains(names, name) {
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

// sayUndeclared notes that what one branch of a union at the root declares, beside the root's
// own properties, holds for all, also for a branch that takes any member of such a name.
func (c *conversion) sayUndeclared(keyword string, branches []*schema.Node, own map[string]bool, properties *schema.Node, sealed bool) {
	if c.root.Get("additionalProperties").IsBool(false) {
		return // no branch can add to the root's own
	}
	closed := func(branch *schema.Node) bool {
		return closedByName(branch) || namesOnly(branch) &&
			(branch.Get("unevaluatedProperties").IsBool(false) || sealed && !branch.Has("unevaluatedProperties"))
	}
	added := map[string]bool{}
	for _, p := range properties.Members() {
		if !own[p.Name] && !unrestricted(p.Value) {
			added[p.Name] = true
		}
	}
	for _, branch := range branches {
		declared := 0
		for _, p := range branch.Get("properties").Members() {
			if added[p.Name] {
				declared++
			}
		}
		if declared < len(added) && !closed(branch) {
			c.narrow("mergeRoot", c.root, "a property of one alternative of "+keyword+" holds for all, also where one takes any member of that name")
			return
		}
	}
}

// namesOnly reports whether n speaks of no members but those that its properties name.
func namesOnly(n *schema.Node) bool {
	return !n.Has("$ref") && !n.Has("patternProperties") && !n.Has("additionalProperties") && !judgedInPlace(n)
}

// closedByName reports whether n takes no members but those that its properties name.
func closedByName(n *schema.Node) bool {
	return n.Get("additionalProperties").IsBool(false) && !n.Has("patternProperties")
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
		merged, ok := c.merge(siblings, c.below("inlineRefs", branch, siblings, target))
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
