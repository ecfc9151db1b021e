package dialect

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// plainRef matches the references that every dialect with references takes.
var plainRef = regexp.MustCompile(`^#/\$defs/[A-Za-z0-9_.-]+$`)

// inlineRefs replaces each reference that the dialect does not take by what it
// leads to. What leads to itself is moved to $defs and referred to there, or
// written out a few times.
func (c *conversion) inlineRefs() {
	x := expansion{conversion: c, hoisted: map[*schema.Node]string{}, open: map[*schema.Node]int{}}
	if !x.needed() {
		return
	}
	x.expand(c.root)
	for i := 0; i < len(x.definitions); i++ { // grows while it runs
		x.expand(x.definitions[i].Value)
	}
	c.dropDefinitions()
	if len(x.definitions) > 0 {
		c.root.Set("$defs", schema.NewObject(x.definitions...))
	}
}

type expansion struct {
	*conversion
	hoisted     map[*schema.Node]string // admitted schema → name in $defs
	definitions []schema.Member
	open        map[*schema.Node]int // admitted schemas being written out
}

// needed reports whether any reference cannot stay as it is.
func (x *expansion) needed() (needed bool) {
	refs := false
	x.each(func(n *schema.Node) {
		if n.Has("$ref") {
			refs = true
			needed = needed || !x.keeps(n)
		}
	})
	return needed || !refs && x.rules.bad(RefDefs) && hasDefinitions(x.root)
}

func hasDefinitions(n *schema.Node) bool { return n.Has("$defs") || n.Has("definitions") }

// keeps reports whether the dialect takes the reference of n as it is.
func (x *expansion) keeps(n *schema.Node) bool {
	ref := n.Get("$ref").Text()
	switch {
	case x.rules.bad(RefDefs):
		return false
	case ref == "#":
		if x.rules.bad(RefRoot) {
			return false
		}
	case !plainRef.MatchString(ref):
		if x.rules.bad(RefPointer) {
			return false
		}
	}
	if m := x.marks[n]; m != nil && m.origin != nil && x.rules.bad(Recursion) && x.doc.Cyclic(x.doc.Target(m.origin)) {
		return false
	}
	return len(n.Members()) == 1 || !x.rules.bad(RefSiblings)
}

// expand deals with all references in n, but not with those in $defs: what is
// needed of these comes in by reference.
func (x *expansion) expand(n *schema.Node) {
	if x.failed != "" {
		return
	}
	if n.Has("$ref") {
		x.expandRef(n)
		return
	}
	for sub := range n.Subschemas() {
		if sub.Keyword != "$defs" && sub.Keyword != "definitions" {
			x.expand(sub.Node)
		}
	}
}

func (x *expansion) expandRef(n *schema.Node) {
	m := x.marks[n]
	target := x.doc.Target(m.origin)
	if x.doc.Cyclic(target) {
		if !x.rules.bad(Recursion) && !x.rules.bad(RefDefs) {
			x.hoist(n, target)
			return
		}
		if x.open[target] >= x.unroll {
			x.cutRecursion(n)
			return
		}
	} else if x.keeps(n) && plainRef.MatchString(n.Get("$ref").Text()) {
		x.hoist(n, target)
		return
	}
	x.say("inlineRefs", n, "references of this kind are not taken")
	x.open[target]++
	inner := x.copyOf(target)
	for _, keyword := range []string{"$defs", "definitions"} {
		inner.Delete(keyword)
	}
	siblings := n.Clone()
	x.cloneMarks(n, siblings)
	siblings.Delete("$ref")
	for _, keyword := range []string{"$defs", "definitions"} {
		siblings.Delete(keyword)
	}
	x.expand(inner)
	if len(siblings.Members()) > 0 {
		for sub := range siblings.Subschemas() {
			x.expand(sub.Node)
		}
		inner = x.beside(n, siblings, inner)
	}
	x.open[target]--
	root := n == x.root
	n.Become(inner)
	if in := x.marks[inner]; in != nil {
		m.said = append(m.said, in.said...)
	}
	if root && !n.Has("type") {
		n.Set("type", schema.NewString("object"))
	}
}

// beside merges the keywords beside a reference with what it leads to.
func (x *expansion) beside(n, siblings, inner *schema.Node) *schema.Node {
	wholly := !x.rules.bad(AllOfMulti) && !x.rules.bad(AllOfSingle)
	rest := inner
	if !wholly {
		rest = x.below("inlineRefs", n, siblings, inner)
	}
	if merged, ok := x.merge(siblings, rest); ok && !outspoken(rest, siblings, unevaluated...) {
		return merged
	}
	if wholly {
		outer := schema.NewObject()
		for _, member := range siblings.Members() {
			outer.Set(member.Name, member.Value)
		}
		outer.Set("allOf", schema.NewArray(append([]*schema.Node{inner}, siblings.Get("allOf").Items()...)...))
		return outer
	}
	x.widen("inlineRefs", n, "what stands beside the reference cannot be merged with it")
	x.spill(n, "also "+snippet(siblings, 200))
	return inner
}

// hoist makes n refer to a definition of its own.
func (x *expansion) hoist(n, target *schema.Node) {
	name, known := x.hoisted[target]
	if !known {
		name = x.definitionName(target)
		x.hoisted[target] = name
		copied := x.copyOf(target)
		for _, keyword := range []string{"$defs", "definitions"} {
			copied.Delete(keyword)
		}
		x.definitions = append(x.definitions, schema.Member{Name: name, Value: copied})
	}
	ref := schema.NewString("#/$defs/" + name)
	if n.Get("$ref").Text() != ref.Text() {
		x.say("hoistRefs", n, "references have to lead to $defs")
		n.Set("$ref", ref)
	}
	if len(n.Members()) > 1 && x.rules.bad(RefSiblings) {
		x.separate(n)
	}
	for sub := range n.Subschemas() {
		x.expand(sub.Node)
	}
}

// separate moves a reference that has keywords beside it into a union of its
// own, where they may stand.
func (x *expansion) separate(n *schema.Node) {
	inner := schema.NewObject(schema.Member{Name: "$ref", Value: n.Get("$ref")})
	x.marks[inner] = &mark{origin: x.marks[n].origin, at: x.marks[n].at}
	restricts := false
	for _, m := range append([]schema.Member(nil), n.Members()...) {
		if m.Name == "$ref" {
			continue
		}
		if judges(m.Name) {
			restricts = true
			n.Delete(m.Name)
			x.spill(n, m.Name+" "+snippet(m.Value, 200))
		}
	}
	n.Delete("$ref")
	n.Set("anyOf", schema.NewArray(inner))
	if restricts {
		x.widen("separateRefs", n, "keywords beside a reference are not taken")
	} else {
		x.say("separateRefs", n, "keywords beside a reference are not taken")
	}
}

// definitionName is a name for a definition, unique among those hoisted.
func (x *expansion) definitionName(target *schema.Node) string {
	path := x.doc.Path(target)
	name := path[strings.LastIndexByte(path, '/')+1:]
	if name == "" {
		name = "Root"
	}
	name = legalName(name)
	for i := 2; ; i++ {
		taken := false
		for _, d := range x.definitions {
			taken = taken || d.Name == name
		}
		if !taken {
			return name
		}
		name = strings.TrimRight(name, "0123456789") + strconv.Itoa(i)
	}
}

// cutRecursion ends a schema that was written out inside itself.
func (x *expansion) cutRecursion(n *schema.Node) {
	x.widen("unrollRecursion", n, "recursion is not taken; from here on anything goes")
	words := schema.NewObject()
	if d := n.Get("description"); d != nil {
		words.Set("description", d)
	}
	n.Become(words)
	x.spill(n, "nested like the level above")
}

// dropDefinitions takes all definitions away; those in use were copied.
func (c *conversion) dropDefinitions() {
	c.each(func(n *schema.Node) {
		for _, keyword := range []string{"$defs", "definitions"} {
			n.Delete(keyword)
		}
	})
}

// prefixDefinitions gives definitions names that no other tool's have.
func (c *conversion) prefixDefinitions() {
	definitions := c.root.Get("$defs")
	if len(definitions.Members()) == 0 {
		return
	}
	prefix := legalName(c.tool) + "__"
	for _, m := range append([]schema.Member(nil), definitions.Members()...) {
		definitions.Rename(m.Name, prefix+m.Name)
	}
	c.each(func(n *schema.Node) {
		if name, ok := strings.CutPrefix(n.Get("$ref").Text(), "#/$defs/"); ok {
			n.Set("$ref", schema.NewString("#/$defs/"+prefix+name))
		}
	})
	c.say("prefixDefinitions", c.root, "the definitions of all tools share one space of names")
}

var illegal = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// legalName replaces what a name must not hold.
func legalName(name string) string { return illegal.ReplaceAllString(name, "_") }
