package dialect

import (
	"slices"
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
	return slices.ContainsFunc(v.Items(), hasFraction)
}

type integers struct {
	doc     *schema.Document
	repairs []Repair
}

func (w *integers) walk(v *schema.Node, schemas []*schema.Node, path string, put func(*schema.Node)) {
	all := inPlace{target: w.doc.Target}.all(schemas)
	switch v.Kind() {
	case schema.Number:
		plain, ok := v.Integer()
		if !ok || !strings.ContainsAny(v.Text(), ".eE") {
			return
		}
		integer := false
		for _, n := range all {
			t := typesOf(n)
			if slices.Contains(t, "number") {
				return
			}
			integer = integer || slices.Contains(t, "integer")
		}
		if integer {
			put(schema.NewNumber(plain))
			w.repairs = append(w.repairs, Repair{Rule: "plainInteger", Path: path})
		}
	case schema.Object:
		for _, m := range v.Members() {
			w.walk(m.Value, membersOf(all, m.Name), path+schema.Pointer(m.Name), func(to *schema.Node) { v.Set(m.Name, to) })
		}
	case schema.Array:
		for i, item := range v.Items() {
			w.walk(item, itemsOf(all, i), path+"/"+strconv.Itoa(i), func(to *schema.Node) {
				items := append([]*schema.Node(nil), v.Items()...)
				items[i] = to
				v.SetItems(items)
			})
		}
	}
}
