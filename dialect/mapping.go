package dialect

import (
	"fmt"
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

func (m rename) lead(v *schema.Node, tokens []string) []string {
	for _, p := range m.pairs {
		if p.original == tokens[0] && !v.Has(p.original) {
			return append([]string{p.sent}, tokens[1:]...)
		}
	}
	return tokens
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

func (pairs) lead(v *schema.Node, tokens []string) []string {
	if v.Kind() != schema.Array {
		return tokens
	}
	for i, item := range v.Items() {
		if key := item.Get("key"); key.IsString(tokens[0]) {
			return append([]string{itoa(i), "value"}, tokens[1:]...)
		}
	}
	return nil
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

func (jsonText) lead(v *schema.Node, tokens []string) []string {
	if v.Kind() == schema.String {
		return nil // inside the text there are no places
	}
	return tokens
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
	name     string // of the property that held the object
	names    []renamed
	inner    []mapping       // those of the object that is no more
	required bool            // so without any part it is empty, not absent
	open     bool            // the object may have members that nobody declared
	beside   map[string]bool // the properties beside it
}

// extra reports whether a member is one that nobody declared of the object that
// was flattened.
func (m flatten) extra(name string) bool {
	rest, ok := strings.CutPrefix(name, flatName(m.name, ""))
	return ok && rest != "" && m.open && !m.beside[name]
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
	if len(object.Members()) == 0 && !m.required {
		return nil, fmt.Errorf("%q is empty, which its flat form cannot tell from absent", m.name)
	}
	v.Delete(m.name)
	for _, member := range v.Members() {
		if m.extra(member.Name) {
			return nil, fmt.Errorf("%q would be taken for a part of %q", member.Name, m.name)
		}
	}
	for _, member := range object.Members() {
		sent := ""
		if m.open {
			sent = flatName(m.name, member.Name)
		}
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
	for _, member := range append([]schema.Member(nil), v.Members()...) {
		if m.extra(member.Name) {
			v.Delete(member.Name)
			object.Set(strings.TrimPrefix(member.Name, flatName(m.name, "")), member.Value)
		}
	}
	if len(object.Members()) == 0 && !m.required {
		return v, nil
	}
	object, err := decodeAll(m.inner, object)
	if err != nil {
		return nil, err
	}
	v.Set(m.name, object)
	return v, nil
}

func (m flatten) lead(v *schema.Node, tokens []string) []string {
	if tokens[0] != m.name || v.Has(m.name) {
		return tokens
	}
	if len(tokens) == 1 {
		return []string{m.names[0].sent}
	}
	inner := lead(m.inner, v, tokens[1:])
	if len(inner) == 0 {
		return []string{m.names[0].sent}
	}
	for _, n := range m.names {
		if n.original == inner[0] || n.sent == inner[0] {
			return append([]string{n.sent}, inner[1:]...)
		}
	}
	return tokens
}

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

// flatName is the name of a property of a flattened object.
func flatName(outer, inner string) string { return outer + "__" + inner }
