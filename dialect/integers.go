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
	return w.walk(value, []*schema.Node{p.admitted.Root}, ""), w.repairs
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

// walk returns v, or what stands for it.
func (w *integers) walk(v *schema.Node, schemas []*schema.Node, path string) *schema.Node {
	all := inPlace{target: w.doc.Target}.all(schemas)
	switch v.Kind() {
	case schema.Number:
		plain, ok := v.Integer()
		if !ok || !strings.ContainsAny(v.Text(), ".eE") {
			return v
		}
		integer := false
		for _, n := range all {
			t := typesOf(n)
			if slices.Contains(t, "number") {
				return v
			}
			integer = integer || slices.Contains(t, "integer")
		}
		if integer {
			w.repairs = append(w.repairs, Repair{Rule: "plainInteger", Path: path})
			return schema.NewNumber(plain)
		}
	case schema.Object:
		v.Map(func(i int, member *schema.Node) *schema.Node {
			name := v.Members()[i].Name
			return w.walk(member, membersOf(all, name), path+schema.Pointer(name))
		})
	case schema.Array:
		v.Map(func(i int, item *schema.Node) *schema.Node {
			return w.walk(item, itemsOf(all, i), path+"/"+strconv.Itoa(i))
		})
	}
	return v
}
