package dialect

import (
	"slices"

	"github.com/dragoman-mcp/dragoman/schema"
)

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
		alone := len(union.Items()) == 1 && !n.Has("anyOf")
		if n.Has("anyOf") {
			n.Delete("oneOf")
			c.spill(n, "exactly one of "+snippet(union, 200))
		} else {
			n.Rename("oneOf", "anyOf")
			c.mark(n).one = true
		}
		n.Delete("discriminator")
		if alone {
			c.say("replaceOneOf", n, "oneOf is not taken; of one alternative anyOf says the same")
			return
		}
		c.widen("replaceOneOf", n, "oneOf is not taken; with anyOf several alternatives may fit")
	})
}

// relaxOneOf writes oneOf as anyOf where a value that fits one alternative of the server's
// might fit two of what is sent, since one became wider, or two of the server's, since what
// tells them apart is what silence alone says.
func (c *conversion) relaxOneOf() {
	seen := map[*schema.Node]bool{}
	c.each(func(n *schema.Node) {
		branches := n.Get("oneOf").Items()
		if len(branches) < 2 {
			return
		}
		clear(seen)
		why := ""
		switch {
		case slices.ContainsFunc(branches, func(branch *schema.Node) bool { return c.becameWider(branch, seen) }):
			why = "an alternative of oneOf became wider; with anyOf several may fit"
		case c.toldApartBySilence(branches):
			why = "silence closes alternatives of oneOf that are open to the server, for which several may fit"
		default:
			return
		}
		if n.Has("anyOf") {
			c.narrow("relaxOneOf", n, why+", and beside anyOf one has to")
			return
		}
		n.Rename("oneOf", "anyOf")
		n.Delete("discriminator")
		c.widen("relaxOneOf", n, why)
	})
}

// toldApartBySilence reports whether an object that is written by one of some alternatives may
// fit another one, too, and would not if that were closed, as silence closes it.
func (c *conversion) toldApartBySilence(branches []*schema.Node) bool {
	if !c.rules.ClosedBySilence {
		return false
	}
	t := telling{c, map[*schema.Node]map[string]bool{}}
	for i, a := range branches {
		for j, b := range branches {
			if i != j && t.passesFor(c.referred(a), c.referred(b)) {
				return true
			}
		}
	}
	return false
}

// A telling tells alternatives apart.
type telling struct {
	*conversion
	values map[*schema.Node]map[string]bool // identities of the values that enums and consts name
}

// passesFor reports whether an object of a, with all of its properties, may be one of b if b
// is open, and is none if silence closes it.
func (t *telling) passesFor(a, b *schema.Node) bool {
	if !t.closesByItself(b) || conflict(a, b) {
		return false
	}
	mine, theirs := a.Get("properties"), b.Get("properties")
	more := false
	for _, p := range mine.Members() {
		other := theirs.Get(p.Name)
		more = more || other == nil
		if other != nil && (slices.Contains(required(a), p.Name) || slices.Contains(required(b), p.Name)) && t.apart(t.referred(p.Value), t.referred(other)) {
			return false
		}
	}
	for _, name := range required(b) {
		if !mine.Has(name) {
			return false
		}
	}
	return more
}

// closesByItself reports whether silence closes n, which is open to the server.
func (c *conversion) closesByItself(n *schema.Node) bool {
	types := typesOf(n)
	return !c.mark(n).closed && (len(types) == 0 || slices.Contains(types, "object")) && len(n.Get("properties").Members()) > 0 &&
		!n.Has("additionalProperties") && !n.Has("patternProperties") && !n.Has("unevaluatedProperties")
}

// apart reports whether no value fits both of two schemas, as far as their types and values say.
func (t *telling) apart(a, b *schema.Node) bool {
	if conflict(a, b) {
		return true
	}
	few, many := t.named(a), t.named(b)
	if len(few) > len(many) {
		few, many = many, few
	}
	for identity := range few {
		if many[identity] {
			return false
		}
	}
	return len(few) > 0
}

// named are the identities of the values that the enum or const of n names.
func (t *telling) named(n *schema.Node) map[string]bool {
	if known, ok := t.values[n]; ok {
		return known
	}
	identities := map[string]bool{}
	for _, v := range literals(n) {
		identities[v.Identity()] = true
	}
	t.values[n] = identities
	return identities
}
