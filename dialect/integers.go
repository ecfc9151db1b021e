package dialect

import (
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// plainIntegers writes integers as integers: many programs refuse 1.0 for one.
// The values themselves do not change.
func (p *Plan) plainIntegers(value *schema.Node) (*schema.Node, []Repair) {
	if !hasFraction(value) {
		return value, nil
	}
	w := integers{doc: p.admitted}
	w.walk(value, []*schema.Node{p.admitted.Root}, "", func(*schema.Node) {})
	return value, w.repairs
}

// hasFraction reports whether a number in v is an integer in the spelling of a
// fraction.
func hasFraction(v *schema.Node) bool {
	if v.Kind() == schema.Number {
		_, integer := v.Integer()
		return integer && strings.ContainsAny(v.Text(), ".eE")
	}
	for _, m := range v.Members() {
		if hasFraction(m.Value) {
			return true
		}
	}
	for _, item := range v.Items() {
		if hasFraction(item) {
			return true
		}
	}
	return false
}

type integers struct {
	doc     *schema.Document
	repairs []Repair
}

func (w *integers) walk(v *schema.Node, schemas []*schema.Node, path string, put func(*schema.Node)) {
	all := w.inPlace(schemas)
	switch v.Kind() {
	case schema.Number:
		plain, ok := v.Integer()
		if !ok || !strings.ContainsAny(v.Text(), ".eE") {
			return
		}
		integer := false
		for _, n := range all {
			t := typesOf(n)
			if contains(t, "number") {
				return
			}
			integer = integer || contains(t, "integer")
		}
		if integer {
			put(schema.NewNumber(plain))
			w.repairs = append(w.repairs, Repair{Rule: "plainInteger", Path: path})
		}
	case schema.Object:
		for _, m := range v.Members() {
			var inner []*schema.Node
			for _, n := range all {
				if s := n.Get("properties").Get(m.Name); s != nil {
					inner = append(inner, s)
				} else if s := n.Get("additionalProperties"); s != nil {
					inner = append(inner, s)
				}
			}
			w.walk(m.Value, inner, path+schema.Pointer(m.Name), func(to *schema.Node) { v.Set(m.Name, to) })
		}
	case schema.Array:
		for i, item := range v.Items() {
			var inner []*schema.Node
			for _, n := range all {
				if prefix := n.Get("prefixItems").Items(); i < len(prefix) {
					inner = append(inner, prefix[i])
				} else if s := n.Get("items"); s != nil {
					inner = append(inner, s)
				}
			}
			w.walk(item, inner, path+"/"+strconv.Itoa(i), func(to *schema.Node) {
				items := append([]*schema.Node(nil), v.Items()...)
				items[i] = to
				v.SetItems(items)
			})
		}
	}
}

// inPlace adds to schemas those that judge the same value.
func (w *integers) inPlace(schemas []*schema.Node) []*schema.Node {
	seen := map[*schema.Node]bool{}
	var all []*schema.Node
	var add func(n *schema.Node)
	add = func(n *schema.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		all = append(all, n)
		add(w.doc.Target(n))
		for sub := range n.Subschemas() {
			if sub.InPlace() && sub.Keyword != "not" && sub.Keyword != "if" {
				add(sub.Node)
			}
		}
	}
	for _, n := range schemas {
		add(n)
	}
	return all
}
