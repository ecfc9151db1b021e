package dialect

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A record maps whole arguments by the schema that was sent.
type record struct {
	root   *schema.Node // as sent; read only
	marks  map[*schema.Node]*mark
	mapped map[*schema.Node]bool // schemas with a mapping in or below them
	paths  map[*schema.Node]string
	// flattens reports that objects were flattened, so that a model may write
	// members that the schema that is sent does not name.
	flattens bool
	sent     *schema.Validator // of root
	judge    *schema.Validator // of the admitted schema
	budget   *schema.Budget    // of one decoding; nil otherwise
}

// A walk maps one value, in one direction.
type walk struct {
	*record
	forward bool
}

// stepsOfWalk is what a schema costs that one value meets, in the steps of a
// [schema.Budget]. A union of recursive schemas can ask for any number.
const stepsOfWalk = 10

var errWalk = errors.New("the value has too many possible readings")

func (r *record) decode(value *schema.Node) (*schema.Node, error) {
	return walk{r.paid(value), false}.value(r.root, value, 0)
}

func (r *record) encode(value *schema.Node) (*schema.Node, error) {
	return walk{r.paid(value), true}.value(r.root, value, 0)
}

// paid is r with a budget, its own where none came with it.
func (r *record) paid(value *schema.Node) *record {
	if r.budget != nil {
		return r
	}
	inside := *r
	inside.budget = schema.NewBudget(value, decodingTimes)
	inside.sent, inside.judge = r.sent.Within(inside.budget), r.judge.Within(inside.budget)
	return &inside
}

// maxMapDepth bounds recursion through recursive schemas; values are bounded by
// schema.MaxNesting already.
const maxMapDepth = 2 * schema.MaxNesting

var errAmbiguous = errors.New("the value fits several alternatives with different meanings")

// value maps v, which n describes.
func (r walk) value(n, v *schema.Node, depth int) (*schema.Node, error) {
	if n.Kind() != schema.Object || !r.mapped[n] || depth > maxMapDepth {
		return v, nil
	}
	if !r.budget.Spend(stepsOfWalk) {
		return nil, errWalk
	}
	var ops []mapping
	if m := r.marks[n]; m != nil {
		ops = m.ops
	}
	var err error
	if r.forward {
		if v, err = encodeAll(ops, v); err != nil {
			return nil, err
		}
	}
	if v, err = r.inside(n, v, depth); err != nil {
		return nil, err
	}
	if !r.forward {
		return decodeAll(ops, v)
	}
	return v, nil
}

// inside maps what is inside v, and v by the schemas that judge it in place.
func (r walk) inside(n, v *schema.Node, depth int) (*schema.Node, error) {
	if target := resolveRef(r.root, n); target != nil {
		var err error
		if v, err = r.value(target, v, depth+1); err != nil {
			return nil, err
		}
	}
	for _, branch := range n.Get("allOf").Items() {
		var err error
		if v, err = r.value(branch, v, depth+1); err != nil {
			return nil, err
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if union := n.Get(keyword); union != nil && r.anyMapped(union) {
			var err error
			if v, err = r.union(n, union, v, depth); err != nil {
				return nil, err
			}
		}
	}
	properties, extra, prefix := n.Get("properties"), n.Get("additionalProperties"), n.Get("prefixItems").Items()
	var wrong error
	v.Map(func(i int, value *schema.Node) *schema.Node {
		inner, name := n.Get("items"), ""
		switch {
		case v.Kind() == schema.Object:
			name = v.Members()[i].Name
			if inner = properties.Get(name); inner == nil && extra.Kind() == schema.Object {
				inner = extra
			}
		case i < len(prefix):
			inner = prefix[i]
		}
		if wrong != nil || inner == nil || !r.mapped[inner] {
			return value
		}
		mapped, err := r.value(inner, value, depth+1)
		switch {
		case err == nil:
			return mapped
		case v.Kind() == schema.Object:
			wrong = fmt.Errorf("in %q: %w", name, err)
		default:
			wrong = fmt.Errorf("in item %d: %w", i, err)
		}
		return value
	})
	if wrong != nil {
		return nil, wrong
	}
	return v, nil
}

func (r *record) anyMapped(union *schema.Node) bool {
	for _, branch := range union.Items() {
		if r.mapped[branch] {
			return true
		}
	}
	return false
}

// A reading is what one alternative of a union makes of a value.
type reading struct {
	value *schema.Node
	names bool // the alternative has a property for each member of the value
}

// union maps v by the alternative that it is of. The one whose result is valid
// on the other side counts. Where results differ, an alternative that names the
// members goes before one that takes any object: that is the form that was asked
// for. Beyond that, results that differ are an error, because guessing would
// make calls that nobody meant.
func (r walk) union(n, union, v *schema.Node, depth int) (*schema.Node, error) {
	var found []reading
	var first error
	for _, asSent := range []bool{true, false} {
		for i, branch := range union.Items() {
			if !r.forward && asSent {
				if ok, err := r.valid(r.sent, r.branchPath(n, i), v); err != nil {
					return nil, err
				} else if !ok {
					continue
				}
			}
			if !r.budget.SpendOn(v) {
				return nil, errWalk
			}
			mapped, err := r.value(branch, v.Clone(), depth+1)
			if errors.Is(err, errWalk) {
				return nil, err
			}
			if err != nil {
				first = err
				continue
			}
			if ok, err := r.fits(n, branch, i, v, mapped); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			found = append(found, reading{mapped, r.namesMembers(branch, v)})
		}
		if r.forward || len(found) > 0 {
			break
		}
	}
	return r.choose(found, v, first)
}

// choose returns the reading that counts.
func (r walk) choose(found []reading, v *schema.Node, first error) (*schema.Node, error) {
	if len(found) == 0 {
		if first != nil && r.forward {
			return nil, first
		}
		return v, nil
	}
	if r.forward {
		return found[0].value, nil
	}
	chosen := found[0]
	for _, f := range found[1:] {
		switch {
		case f.names == chosen.names && !schema.Equal(f.value, chosen.value):
			if !f.names {
				continue // settled below: perhaps one that names the members follows
			}
			return nil, errAmbiguous
		case f.names && !chosen.names:
			chosen = f
		}
	}
	if !chosen.names {
		for _, f := range found {
			if !schema.Equal(f.value, chosen.value) {
				return nil, errAmbiguous
			}
		}
	}
	return chosen.value, nil
}

// namesMembers reports whether a branch, as it is sent, has a property for each
// member of an object.
func (r walk) namesMembers(branch, v *schema.Node) bool {
	if v.Kind() != schema.Object || len(v.Members()) == 0 {
		return false
	}
	for range schema.MaxDepth {
		target := resolveRef(r.root, branch)
		if target == nil {
			break
		}
		branch = target
	}
	for _, m := range v.Members() {
		if !branch.Get("properties").Has(m.Name) {
			return false
		}
	}
	return true
}

// fits reports whether a mapped value is valid where it is going: as the
// original union wants it, or as the branch that is sent wants it.
func (r walk) fits(n, branch *schema.Node, i int, v, mapped *schema.Node) (bool, error) {
	if !r.forward {
		m := r.marks[n]
		if m == nil || !m.judge {
			return true, nil
		}
		return r.valid(r.judge, m.path, mapped)
	}
	if ok, err := r.valid(r.sent, r.branchPath(n, i), mapped); !ok || err != nil {
		return false, err
	}
	// And only if it comes back as it went.
	if !r.budget.SpendOn(mapped) {
		return false, errWalk
	}
	again, err := walk{r.record, false}.value(branch, mapped.Clone(), 0)
	if errors.Is(err, errWalk) {
		return false, err
	}
	return err == nil && schema.Equal(again, v), nil
}

// valid judges a value, which the budget pays for.
func (r walk) valid(judge *schema.Validator, path string, v *schema.Node) (bool, error) {
	violations := judge.ValidateAt(path, v)
	if len(violations) == 1 && violations[0].Keyword == schema.CostKeyword {
		return false, errWalk
	}
	return len(violations) == 0, nil
}

func (r *record) branchPath(n *schema.Node, i int) string {
	keyword := "anyOf"
	if !n.Has(keyword) {
		keyword = "oneOf"
	}
	return r.paths[n] + "/" + keyword + "/" + strconv.Itoa(i)
}

// finish notes which schemas have mappings in or below them, and where all are.
func (r *record) finish() (any bool) {
	r.mapped, r.paths = map[*schema.Node]bool{}, map[*schema.Node]string{}
	var place func(n *schema.Node, at string)
	place = func(n *schema.Node, at string) {
		r.paths[n] = at
		if m := r.marks[n]; m != nil && len(m.ops) > 0 {
			r.mapped[n], any = true, true
			for _, op := range m.ops {
				_, flat := op.(flatten)
				r.flattens = r.flattens || flat
			}
		}
		for sub := range n.Subschemas() {
			place(sub.Node, at+sub.Pointer())
		}
	}
	place(r.root, "")
	if !any {
		return false
	}
	for changed := true; changed; { // through references, which may be circular
		changed = false
		for n := range r.paths {
			if r.mapped[n] {
				continue
			}
			below := r.mapped[resolveRef(r.root, n)]
			for sub := range n.Subschemas() {
				below = below || sub.Keyword != "$defs" && r.mapped[sub.Node]
			}
			if below {
				r.mapped[n], changed = true, true
			}
		}
	}
	return true
}
