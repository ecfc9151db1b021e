package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// writeTuples writes prefixItems as a union of the items, or in the way that an
// engine can write.
func (c *conversion) writeTuples() {
	if !c.rules.bad(PrefixItems) && c.rules.Tuples == "" {
		return
	}
	c.each(func(n *schema.Node) {
		prefix := n.Get("prefixItems").Items()
		if len(prefix) == 0 || !c.rules.bad(PrefixItems) && c.writeWhole(n, prefix) {
			return
		}
		n.Delete("prefixItems")
		branches := append([]*schema.Node(nil), prefix...)
		rest := n.Get("items")
		n.Delete("items")
		open := rest == nil || rest.IsBool(true)
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

// maxTupleForms is the number of lengths of a tuple that are written out.
const maxTupleForms = 5

// writeWhole writes a tuple for an engine that writes one whole or not at all:
// each shorter one that the server takes is an alternative. It reports whether
// that could be done.
func (c *conversion) writeWhole(n *schema.Node, prefix []*schema.Node) bool {
	least, ok := count(n, "minItems", 0)
	most, bounded := count(n, "maxItems", -1)
	types, rest := typesOf(n), n.Get("items")
	if !ok || !bounded || !slices.Contains(types, "array") || len(types) > 2 || len(types) == 2 && !slices.Contains(types, "null") ||
		n.Has("anyOf") || n.Has("oneOf") || n.Has("$ref") || n.Has("enum") || n.Has("const") {
		return false
	}
	closed := most >= 0 && most <= len(prefix)
	if closed {
		prefix = prefix[:most]
	}
	exact := c.rules.Tuples == "exact"
	if len(prefix) == 0 || least > len(prefix) && (closed || exact) || len(prefix)-least >= maxTupleForms ||
		!closed && exact && rest != nil && !unrestricted(rest) {
		return false
	}
	whole := c.tupleForm(n, prefix, max(least, len(prefix)))
	switch {
	case closed, exact:
		whole.Set("maxItems", schema.NewNumber(itoa(len(prefix))))
	case rest == nil || unrestricted(rest):
		whole.Set("items", schema.NewObject())
	default:
		whole.Set("items", rest)
	}
	if !closed && !exact && most >= 0 {
		whole.Set("maxItems", schema.NewNumber(itoa(most)))
	}
	if !closed && exact {
		c.narrow("writeTuples", n, "the engine writes a tuple whole, and nothing after it")
	}
	c.chooseForm(n, whole, prefix, least)
	return true
}

// chooseForm makes n the whole tuple, or a union of that and of each shorter one.
func (c *conversion) chooseForm(n, whole *schema.Node, prefix []*schema.Node, least int) {
	forms := []*schema.Node{whole}
	for length := len(prefix) - 1; length >= least; length-- {
		var items []*schema.Node
		for _, item := range prefix[:length] {
			items = append(items, c.clone(item))
		}
		form := c.tupleForm(n, items, length)
		form.Set("maxItems", schema.NewNumber(itoa(length)))
		if length == 0 { // an array without items is taken for any
			form.Set("items", c.clone(prefix[0]))
		}
		forms = append(forms, form)
	}
	if slices.Contains(typesOf(n), "null") {
		forms = append(forms, c.made(schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("null")}), n))
	}
	for _, m := range append([]schema.Member(nil), n.Members()...) {
		if judges(m.Name) {
			n.Delete(m.Name)
		}
	}
	if len(forms) > 1 {
		n.Set("anyOf", schema.NewArray(forms...))
		c.say("writeTuples", n, "a tuple is written whole or not at all; each of its lengths is an alternative")
		return
	}
	for _, m := range whole.Members() {
		n.Set(m.Name, m.Value)
	}
}

// tupleForm is a tuple of at least so many items, with what else n says of it.
func (c *conversion) tupleForm(n *schema.Node, items []*schema.Node, least int) *schema.Node {
	form := schema.NewObject(schema.Member{Name: "type", Value: schema.NewString("array")})
	if len(items) > 0 {
		form.Set("prefixItems", schema.NewArray(items...))
	}
	if least > 0 {
		form.Set("minItems", schema.NewNumber(itoa(least)))
	}
	for _, m := range n.Members() {
		if judges(m.Name) && !form.Has(m.Name) && !slices.Contains([]string{"items", "prefixItems", "minItems", "maxItems"}, m.Name) {
			form.Set(m.Name, m.Value.Clone())
		}
	}
	return c.made(form, n)
}

// count reads a keyword that is a number of items.
func count(n *schema.Node, keyword string, absent int) (int, bool) {
	v := n.Get(keyword)
	if v == nil {
		return absent, true
	}
	literal, ok := v.Integer()
	i, err := strconv.Atoi(literal)
	return i, ok && err == nil && i >= 0
}
