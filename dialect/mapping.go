package dialect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A mapping is how values of one schema differ between the form that the server
// asked for and the form that the model was asked for. It works on the value of
// that schema alone; what is inside is mapped by the schemas inside.
type mapping interface {
	// encode takes a value in the server's form. It may change the value.
	encode(*schema.Node) (*schema.Node, error)
	// decode takes a value in the model's form, or in the server's: models do
	// answer in a form that they were not asked for. It may change the value.
	decode(*schema.Node) (*schema.Node, error)
}

// nullAbsent makes optional properties required: null stands for absence.
type nullAbsent struct {
	names []string
	drop  bool // encode does not write nulls: the properties stay optional
}

func (m nullAbsent) encode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.Object || m.drop {
		return v, nil
	}
	for _, name := range m.names {
		if !v.Has(name) {
			v.Set(name, schema.NewNull())
		}
	}
	return v, nil
}

func (m nullAbsent) decode(v *schema.Node) (*schema.Node, error) {
	for _, name := range m.names {
		if v.Get(name).Kind() == schema.Null {
			v.Delete(name)
		}
	}
	return v, nil
}

// rename gives properties other names.
type rename struct{ pairs []renamed }

type renamed struct{ original, sent string }

func (m rename) encode(v *schema.Node) (*schema.Node, error) {
	for _, p := range m.pairs {
		if v.Has(p.original) && !v.Rename(p.original, p.sent) {
			return nil, fmt.Errorf("both %q and %q are there", p.original, p.sent)
		}
	}
	return v, nil
}

func (m rename) decode(v *schema.Node) (*schema.Node, error) {
	for _, p := range m.pairs {
		if v.Has(p.sent) && !v.Rename(p.sent, p.original) {
			return nil, fmt.Errorf("both %q and %q are there", p.original, p.sent)
		}
	}
	return v, nil
}

// pairs writes an object with arbitrary names as an array of key and value.
type pairs struct{}

func (pairs) encode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.Object {
		return v, nil
	}
	items := make([]*schema.Node, 0, len(v.Members()))
	for _, m := range v.Members() {
		items = append(items, schema.NewObject(
			schema.Member{Name: "key", Value: schema.NewString(m.Name)},
			schema.Member{Name: "value", Value: m.Value}))
	}
	return schema.NewArray(items...), nil
}

func (pairs) decode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.Array {
		return v, nil
	}
	object := schema.NewObject()
	for _, item := range v.Items() {
		key, value := item.Get("key"), item.Get("value")
		if key.Kind() != schema.String || value == nil || len(item.Members()) != 2 {
			return v, nil // not in the form we asked for: left to the validation
		}
		if object.Has(key.Text()) {
			return nil, fmt.Errorf("the key %q is there twice", key.Text())
		}
		object.Set(key.Text(), value)
	}
	return object, nil
}

// jsonText writes a value as a string of JSON.
type jsonText struct{}

func (jsonText) encode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.Object {
		return v, nil
	}
	return schema.NewString(string(v.Bytes())), nil
}

func (jsonText) decode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.String {
		return v, nil
	}
	if inner, err := schema.Parse([]byte(v.Text())); err == nil && inner.Kind() == schema.Object {
		return inner, nil
	}
	return v, nil
}

// enumText writes enum members that are no strings as strings.
type enumText struct {
	texts   []string
	members []*schema.Node
}

func (m enumText) encode(v *schema.Node) (*schema.Node, error) {
	for i, member := range m.members {
		if schema.Equal(member, v) {
			return schema.NewString(m.texts[i]), nil
		}
	}
	return v, nil
}

func (m enumText) decode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.String {
		return v, nil
	}
	for i, text := range m.texts {
		if text == v.Text() {
			return m.members[i].Clone(), nil
		}
	}
	return v, nil
}

// flatten writes the properties of an object property beside it: a.b as a__b.
type flatten struct {
	name  string // of the property that held the object
	names []renamed
	inner []mapping // those of the object that is no more
}

func (m flatten) encode(v *schema.Node) (*schema.Node, error) {
	object := v.Get(m.name)
	if object.Kind() != schema.Object {
		return v, nil
	}
	object, err := encodeAll(m.inner, object)
	if err != nil {
		return nil, err
	}
	if len(object.Members()) == 0 {
		return nil, fmt.Errorf("%q is empty, which its flat form can not tell from absent", m.name)
	}
	v.Delete(m.name)
	for _, member := range object.Members() {
		sent := ""
		for _, n := range m.names {
			if n.original == member.Name {
				sent = n.sent
			}
		}
		if sent == "" || v.Has(sent) {
			return nil, fmt.Errorf("%q has no place in the flat form", member.Name)
		}
		v.Set(sent, member.Value)
	}
	return v, nil
}

func (m flatten) decode(v *schema.Node) (*schema.Node, error) {
	if v.Kind() != schema.Object || v.Has(m.name) {
		return v, nil
	}
	object := schema.NewObject()
	for _, n := range m.names {
		if value := v.Get(n.sent); value != nil {
			v.Delete(n.sent)
			object.Set(n.original, value)
		}
	}
	if len(object.Members()) == 0 {
		return v, nil
	}
	object, err := decodeAll(m.inner, object)
	if err != nil {
		return nil, err
	}
	v.Set(m.name, object)
	return v, nil
}

// wrapUnion and the like are not here: a union at the root is merged, since a
// model reads one object more easily than an object in an object.

func encodeAll(ops []mapping, v *schema.Node) (*schema.Node, error) {
	var err error
	for _, op := range ops {
		if v, err = op.encode(v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func decodeAll(ops []mapping, v *schema.Node) (*schema.Node, error) {
	var err error
	for i := len(ops) - 1; i >= 0; i-- {
		if v, err = ops[i].decode(v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// A record maps whole arguments by the schema that was sent.
type record struct {
	root    *schema.Node // as sent; read only
	marks   map[*schema.Node]*mark
	mapped  map[*schema.Node]bool // schemas with a mapping in or below them
	paths   map[*schema.Node]string
	sent    *schema.Validator // of root
	judge   *schema.Validator // of the admitted schema
	forward bool
}

// maxMapDepth bounds recursion through recursive schemas; values are bounded by
// schema.MaxNesting already.
const maxMapDepth = 2 * schema.MaxNesting

var errAmbiguous = errors.New("the value fits several alternatives with different meanings")

// walk maps v, which n describes, in one direction.
func (r *record) walk(n, v *schema.Node, depth int) (*schema.Node, error) {
	if n.Kind() != schema.Object || !r.mapped[n] || depth > maxMapDepth {
		return v, nil
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
func (r *record) inside(n, v *schema.Node, depth int) (*schema.Node, error) {
	if target := resolveRef(r.root, n); target != nil {
		var err error
		if v, err = r.walk(target, v, depth+1); err != nil {
			return nil, err
		}
	}
	for _, branch := range n.Get("allOf").Items() {
		var err error
		if v, err = r.walk(branch, v, depth+1); err != nil {
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
	switch v.Kind() {
	case schema.Object:
		for _, m := range v.Members() {
			inner := n.Get("properties").Get(m.Name)
			if inner == nil {
				if extra := n.Get("additionalProperties"); extra.Kind() == schema.Object {
					inner = extra
				}
			}
			if inner == nil || !r.mapped[inner] {
				continue
			}
			mapped, err := r.walk(inner, m.Value, depth+1)
			if err != nil {
				return nil, fmt.Errorf("in %q: %w", m.Name, err)
			}
			if mapped != m.Value {
				v.Set(m.Name, mapped)
			}
		}
	case schema.Array:
		prefix := n.Get("prefixItems").Items()
		items := v.Items()
		for i, item := range items {
			inner := n.Get("items")
			if i < len(prefix) {
				inner = prefix[i]
			}
			if inner == nil || !r.mapped[inner] {
				continue
			}
			mapped, err := r.walk(inner, item, depth+1)
			if err != nil {
				return nil, fmt.Errorf("in item %d: %w", i, err)
			}
			if mapped != item {
				items = append([]*schema.Node(nil), items...)
				items[i] = mapped
				v.SetItems(items)
			}
		}
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

// union maps v by the alternative that it is of. The one whose result is valid
// on the other side counts; results that differ are an error, because guessing
// would make calls that nobody meant.
func (r *record) union(n, union, v *schema.Node, depth int) (*schema.Node, error) {
	var found []*schema.Node
	var first error
	for _, asSent := range []bool{true, false} {
		for i, branch := range union.Items() {
			if !r.forward && asSent && len(r.sent.ValidateAt(r.branchPath(n, i), v)) > 0 {
				continue
			}
			mapped, err := r.walk(branch, v.Clone(), depth+1)
			if err != nil {
				first = err
				continue
			}
			if !r.fits(n, branch, i, v, mapped) {
				continue
			}
			if len(found) == 0 || !schema.Equal(found[0], mapped) {
				found = append(found, mapped)
			}
		}
		if r.forward || len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) == 0 && first != nil && r.forward:
		return nil, first
	case len(found) == 0:
		return v, nil
	case len(found) > 1 && !r.forward:
		return nil, errAmbiguous
	}
	return found[0], nil
}

// fits reports whether a mapped value is valid where it is going: as the
// original union wants it, or as the branch that is sent wants it.
func (r *record) fits(n, branch *schema.Node, i int, v, mapped *schema.Node) bool {
	if !r.forward {
		m := r.marks[n]
		return m == nil || !m.judge || len(r.judge.ValidateAt(m.path, mapped)) == 0
	}
	if len(r.sent.ValidateAt(r.branchPath(n, i), mapped)) > 0 {
		return false
	}
	// And only if it comes back as it went.
	back := *r
	back.forward = false
	again, err := back.walk(branch, mapped.Clone(), 0)
	return err == nil && schema.Equal(again, v)
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

// flatName is the name of a property of a flattened object.
func flatName(outer, inner string) string { return outer + "__" + inner }

// literal is a value as text for a person: strings in single quotes.
func literal(v *schema.Node) string {
	if v.Kind() == schema.String {
		return "'" + v.Text() + "'"
	}
	return strings.TrimSpace(string(v.Bytes()))
}
