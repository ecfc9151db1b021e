package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// A schema that no value fits is a mistake of its author, and worse than that to
// who has to write one: llama.cpp answers a range that ends before it begins with
// bad_alloc, after ten seconds, for the whole host. So it is refused like an empty
// enum, and a type that no value fits beside others is taken away.

// allTypes are the types that a schema without a type takes, in the order in which
// they are named.
var allTypes = []string{"null", "boolean", "object", "array", "string", "number"}

// ranges are the keywords of which one must not be above the other, by the type
// that they speak of.
var ranges = []struct{ of, least, most string }{
	{"string", "minLength", "maxLength"},
	{"array", "minItems", "maxItems"},
	{"array", "minContains", "maxContains"},
	{"object", "minProperties", "maxProperties"},
}

// satisfy refuses schemas that no value fits.
func (a *admission) satisfy() *Refusal {
	for _, n := range a.order {
		if n.Kind() != Object {
			continue
		}
		if r := a.satisfyTypes(n); r != nil {
			return r
		}
		if r := a.satisfyLiterals(n); r != nil {
			return r
		}
	}
	return nil
}

// Satisfiable reports whether what n itself says, the schemas inside it aside,
// leaves a value of some type: false for a length, a number of things or a bound
// that ends before it begins, and for an enum or const with no value of n's type.
func Satisfiable(n *Node) bool {
	types := namedTypes(n)
	if len(types) == 0 {
		types = allTypes
	}
	possible := slices.ContainsFunc(types, func(t string) bool {
		why, _ := contradiction(n, t)
		return why == ""
	})
	why, _ := contradictoryLiterals(n)
	return possible && why == ""
}

// satisfyTypes takes away the types for which the keywords of n leave no value.
func (a *admission) satisfyTypes(n *Node) *Refusal {
	types := namedTypes(n)
	if len(types) == 0 {
		types = allTypes
	}
	var kept []string
	why, at := "", ""
	for _, t := range types {
		reason, keyword := contradiction(n, t)
		if reason == "" {
			kept = append(kept, t)
			continue
		}
		why, at = reason, keyword
	}
	switch {
	case why == "":
		return nil
	case len(kept) == 0:
		return &Refusal{a.origin[n] + Pointer(at), why + ", so nothing would ever fit"}
	}
	items := make([]*Node, len(kept))
	for i, t := range kept {
		items[i] = NewString(t)
	}
	if n.Set("type", NewArray(items...)); len(items) == 1 {
		n.Set("type", items[0])
	}
	a.note("dropImpossible", n, Pointer(at), "the schema "+why+", so no such value fits; those of other types do", true)
	for _, m := range slices.Clone(n.members) {
		for _, r := range ranges {
			if (m.Name == r.least || m.Name == r.most) && !slices.Contains(kept, r.of) {
				n.Delete(m.Name)
			}
		}
		if numeric[m.Name] && !slices.Contains(kept, "number") && !slices.Contains(kept, "integer") {
			n.Delete(m.Name)
		}
	}
	return nil
}

// numeric are the keywords that bound numbers.
var numeric = map[string]bool{"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true}

func namedTypes(n *Node) (types []string) {
	switch t := n.Get("type"); t.Kind() {
	case String:
		return []string{t.text}
	case Array:
		for _, item := range t.items {
			types = append(types, item.text)
		}
	}
	return types
}

// contradiction says why no value of a type fits n, as the rest of a sentence that
// begins with the schema, and by which keyword; "" where one may.
func contradiction(n *Node, t string) (why, keyword string) {
	for _, r := range ranges {
		if r.of != t || r.least == "minContains" && !n.Has("contains") {
			continue
		}
		if least, most := n.Get(r.least), n.Get(r.most); least != nil && most != nil {
			if order, ok := Compare(least, most); ok && order > 0 {
				return fmt.Sprintf("wants a %s of %s and a %s of %s", r.least, clip(least.text), r.most, clip(most.text)), r.least
			}
		}
	}
	switch t {
	case "number", "integer":
		return emptyRange(n, t == "integer")
	case "object":
		return missingMember(n)
	case "array":
		return missingItem(n)
	}
	return "", ""
}

// missingItem reports an array that wants more items than it may have.
func missingItem(n *Node) (why, keyword string) {
	least := n.Get("minItems")
	if least == nil || !n.Get("items").IsBool(false) {
		return "", ""
	}
	if order, ok := Compare(least, NewNumber(strconv.Itoa(len(n.Get("prefixItems").Items())))); ok && order > 0 {
		return fmt.Sprintf("wants %s items at least and ends before", clip(least.text)), "minItems"
	}
	return "", ""
}

// emptyRange reports bounds of numbers between which there is none.
func emptyRange(n *Node, whole bool) (why, keyword string) {
	low, lowIn, lowBy := tightest(n, "minimum", "exclusiveMinimum", 1)
	high, highIn, highBy := tightest(n, "maximum", "exclusiveMaximum", -1)
	if low == nil || high == nil {
		return "", ""
	}
	from, to := new(big.Rat).Set(low), new(big.Rat).Set(high)
	if whole {
		from, to = nextWhole(low, lowIn, 1), nextWhole(high, highIn, -1)
		lowIn, highIn = true, true
	}
	if order := from.Cmp(to); order < 0 || order == 0 && lowIn && highIn {
		return "", ""
	}
	return fmt.Sprintf("has no number between its %s of %s and its %s of %s", lowBy, clip(n.Get(lowBy).text), highBy, clip(n.Get(highBy).text)), lowBy
}

// tightest is the tighter of two bounds on one side, of which the first includes its
// value; sign is 1 where the larger one is the tighter.
func tightest(n *Node, inclusive, exclusive string, sign int) (limit *big.Rat, in bool, by string) {
	if r, ok := rational(n.Get(inclusive).Text()); ok && n.Has(inclusive) {
		limit, in, by = r, true, inclusive
	}
	if r, ok := rational(n.Get(exclusive).Text()); ok && n.Has(exclusive) && (limit == nil || r.Cmp(limit)*sign >= 0) {
		limit, in, by = r, false, exclusive
	}
	return limit, in, by
}

// nextWhole is the first integer from a bound on, upwards where sign is 1.
func nextWhole(r *big.Rat, in bool, sign int64) *big.Rat {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: the denominator is positive
	switch {
	case r.IsInt() && in:
		return new(big.Rat).SetInt(floor)
	case r.IsInt():
		return new(big.Rat).SetInt(floor.Add(floor, big.NewInt(sign)))
	case sign > 0:
		floor.Add(floor, big.NewInt(1))
	}
	return new(big.Rat).SetInt(floor)
}

// missingMember reports members that are required and can never be there: too many
// of them, or one that a closed object does not have.
func missingMember(n *Node) (why, keyword string) {
	names := n.Get("required").Items()
	if most := n.Get("maxProperties"); most != nil && len(names) > 0 {
		if order, ok := Compare(NewNumber(strconv.Itoa(len(names))), most); ok && order > 0 {
			return fmt.Sprintf("requires %d members and takes at most %s", len(names), clip(most.text)), "required"
		}
	}
	if !n.Get("additionalProperties").IsBool(false) || len(n.Get("patternProperties").Members()) > 0 {
		return "", ""
	}
	for _, name := range names {
		if !n.Get("properties").Has(name.text) {
			return fmt.Sprintf("requires the member %q and takes none of that name", clip(name.text)), "required"
		}
	}
	if least := n.Get("minProperties"); least != nil {
		if order, ok := Compare(least, NewNumber(strconv.Itoa(len(n.Get("properties").Members())))); ok && order > 0 {
			return fmt.Sprintf("wants %s members at least and has fewer properties", clip(least.text)), "minProperties"
		}
	}
	return "", ""
}

// satisfyLiterals refuses an enum or const of which no value fits what n says
// beside it.
func (a *admission) satisfyLiterals(n *Node) *Refusal {
	if why, keyword := contradictoryLiterals(n); why != "" {
		return &Refusal{a.origin[n] + Pointer(keyword), why + ", so nothing would ever fit"}
	}
	return nil
}

func contradictoryLiterals(n *Node) (why, keyword string) {
	values, keyword := n.Get("enum").Items(), "enum"
	if c := n.Get("const"); c != nil {
		if len(values) > 0 && !slices.ContainsFunc(values, func(v *Node) bool { return Equal(v, c) }) {
			return "has a const that is not in its enum", "const"
		}
		values, keyword = []*Node{c}, "const"
	}
	if len(values) == 0 {
		return "", ""
	}
	fits := func(v *Node, judged string) bool {
		k := n.Get(judged)
		return k == nil || plainJudges[judged](n, k, v, 0)
	}
	var by []string
	for _, judged := range literalJudges {
		if !n.Has(judged) {
			continue
		}
		by = append(by, judged)
		if !slices.ContainsFunc(values, func(v *Node) bool { return fits(v, judged) }) {
			return fmt.Sprintf("has no value in its %s that fits its %s", keyword, judged), keyword
		}
	}
	if !slices.ContainsFunc(values, func(v *Node) bool {
		return !slices.ContainsFunc(by, func(judged string) bool { return !fits(v, judged) })
	}) {
		return fmt.Sprintf("has no value in its %s that fits its %s at once", keyword, strings.Join(by, " and ")), keyword
	}
	return "", ""
}

// literalJudges are the keywords by which the values of an enum are judged.
var literalJudges = []string{
	"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
	"minProperties", "maxProperties",
}
