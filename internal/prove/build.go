package prove

import (
	"strconv"

	"github.com/dragoman-mcp/dragoman/schema"
)

// A builder makes values of a schema. What it makes need not fit: whoever asks
// judges it.
type builder struct {
	root *schema.Node
	full bool // objects have all their properties, not only those they need
	made *int // values since the last one that was asked for from outside
}

// Bounds of one value that is made, for schemas that have no end.
const (
	maxBuild = 12
	maxMade  = 1_000
)

func newBuilder(root *schema.Node) builder { return builder{root: root, made: new(int)} }

// as is the builder with another wish, and a new allowance.
func (b builder) as(full bool) builder { return builder{root: b.root, full: full, made: new(int)} }

// value makes the smallest value of a schema, or the fullest one.
func (b builder) value(n *schema.Node, depth int) *schema.Node {
	*b.made++
	if n = follow(b.root, n); n == nil || n.Kind() != schema.Object || depth > maxBuild || *b.made > maxMade {
		return schema.NewNull()
	}
	if c := n.Get("const"); c != nil {
		return c.Clone()
	}
	if v := shortest(n.Get("enum").Items()); v != nil {
		return v.Clone()
	}
	var v *schema.Node
	if options := append(n.Get("anyOf").Items(), n.Get("oneOf").Items()...); len(options) > 0 {
		v = b.best(options, depth)
	}
	for _, part := range n.Get("allOf").Items() {
		v = over(v, b.value(part, depth+1))
	}
	if v != nil && v.Kind() != schema.Object {
		return v
	}
	return over(v, b.typed(n, depth))
}

// best makes the value of the branch that is best as a start: the shortest, or
// the longest where fullness is wanted.
func (b builder) best(options []*schema.Node, depth int) (best *schema.Node) {
	for _, o := range options {
		v := b.value(o, depth+1)
		if best == nil || (len(v.Bytes()) > len(best.Bytes())) == b.full && len(v.Bytes()) != len(best.Bytes()) {
			best = v
		}
	}
	return best
}

func (b builder) typed(n *schema.Node, depth int) *schema.Node {
	switch kind := typeOf(n); kind {
	case "object":
		return b.object(n, depth)
	case "array":
		return b.array(n, depth)
	default:
		if values := scalars(n, kind); len(values) > 0 {
			return values[0]
		}
		return schema.NewNull()
	}
}

func (b builder) object(n *schema.Node, depth int) *schema.Node {
	v := schema.NewObject()
	needed := map[string]bool{}
	for _, name := range n.Get("required").Items() {
		needed[name.Text()] = true
	}
	for _, p := range n.Get("properties").Members() {
		if needed[p.Name] || b.full && depth < 4 {
			v.Set(p.Name, b.value(p.Value, depth+1))
			delete(needed, p.Name)
		}
	}
	for _, name := range n.Get("required").Items() {
		if needed[name.Text()] {
			v.Set(name.Text(), b.undeclared(n, depth))
		}
	}
	least := number(n, "minProperties")
	for _, p := range n.Get("properties").Members() {
		if len(v.Members()) >= least {
			break
		}
		if !v.Has(p.Name) {
			v.Set(p.Name, b.value(p.Value, depth+1))
		}
	}
	for i := 0; len(v.Members()) < min(least, 20); i++ {
		v.Set("k"+strconv.Itoa(i), b.undeclared(n, depth))
	}
	return v
}

// undeclared is the value of a member that properties does not name.
func (b builder) undeclared(n *schema.Node, depth int) *schema.Node {
	if free := n.Get("additionalProperties"); free.Kind() == schema.Object {
		return b.value(free, depth+1)
	}
	return schema.NewString("")
}

func (b builder) array(n *schema.Node, depth int) *schema.Node {
	length := min(number(n, "minItems"), 200)
	if b.full && depth < 4 {
		length = max(length, len(n.Get("prefixItems").Items()), 1)
	}
	if n.Has("contains") {
		length = max(length, 1)
	}
	if limit := n.Get("maxItems"); limit != nil {
		length = min(length, number(n, "maxItems"))
	}
	return b.items(n, length, depth)
}

// items makes an array of a length. Where its items must differ, they do as far
// as their schema has values for that.
func (b builder) items(n *schema.Node, length, depth int) *schema.Node {
	prefix := n.Get("prefixItems").Items()
	items := make([]*schema.Node, 0, length)
	var others []*schema.Node
	for i := range length {
		switch {
		case i < len(prefix):
			items = append(items, b.value(prefix[i], depth+1))
		case n.Has("contains") && i == len(prefix):
			items = append(items, b.value(n.Get("contains"), depth+1))
		case n.Get("items").Kind() == schema.Object:
			if n.Get("uniqueItems").IsBool(true) {
				if others == nil {
					others = b.distinct(n.Get("items"), length)
				}
				if i < len(others) {
					items = append(items, others[i])
					continue
				}
			}
			items = append(items, b.value(n.Get("items"), depth+1))
		default:
			items = append(items, schema.NewString(""))
		}
	}
	return schema.NewArray(items...)
}

// set returns base with the value at the end of steps replaced by leaf; what is
// missing on the way is made. base is not changed, but shared.
func (b builder) set(n, base *schema.Node, steps []step, leaf *schema.Node) *schema.Node {
	if len(steps) == 0 {
		return leaf
	}
	if n = follow(b.root, n); n == nil {
		return leaf
	}
	s := steps[0]
	switch s.kind {
	case branch:
		v := b.set(s.into, b.value(s.into, 0), steps[1:], leaf)
		if v.Kind() == schema.Object && base.Kind() == schema.Object {
			return over(v, b.ownMembers(n, base))
		}
		return v
	case item:
		if base.Kind() != schema.Array {
			base = schema.NewArray()
		}
		items := base.Items()
		if len(items) <= s.index {
			items = append(append([]*schema.Node{}, items...), b.items(n, s.index+1, 0).Items()[len(items):]...)
		} else {
			items = append([]*schema.Node{}, items...)
		}
		items[s.index] = b.set(s.into, items[s.index], steps[1:], leaf)
		return schema.NewArray(items...)
	}
	if base.Kind() != schema.Object {
		base = b.object(n, 0)
	}
	inner := base.Get(s.name)
	if inner == nil {
		inner = b.value(s.into, 0)
	}
	return with(base, s.name, b.set(s.into, inner, steps[1:], leaf))
}

// ownMembers are the members of base that the schema itself speaks of, beside its
// branches.
func (b builder) ownMembers(n, base *schema.Node) *schema.Node {
	own := b.object(n, 0)
	for _, m := range base.Members() {
		if n.Get("properties").Has(m.Name) {
			own = with(own, m.Name, m.Value)
		}
	}
	return own
}

// with returns an object with a member set.
func with(n *schema.Node, name string, value *schema.Node) *schema.Node {
	members := make([]schema.Member, 0, len(n.Members())+1)
	set := false
	for _, m := range n.Members() {
		if m.Name == name {
			m.Value, set = value, true
		}
		members = append(members, m)
	}
	if !set {
		members = append(members, schema.Member{Name: name, Value: value})
	}
	return schema.NewObject(members...)
}

// over returns the members of both objects, those of v first; v where one of them
// is no object.
func over(v, more *schema.Node) *schema.Node {
	if v == nil {
		return more
	}
	if v.Kind() != schema.Object || more.Kind() != schema.Object {
		return v
	}
	for _, m := range more.Members() {
		if !v.Has(m.Name) {
			v = with(v, m.Name, m.Value)
		}
	}
	return v
}

// number is a keyword's value where that is a count, else 0.
func number(n *schema.Node, keyword string) int {
	i, err := strconv.Atoi(n.Get(keyword).Text())
	if err != nil || i < 0 {
		return 0
	}
	return i
}

func shortest(values []*schema.Node) (best *schema.Node) {
	for _, v := range values {
		if best == nil || len(v.Bytes()) < len(best.Bytes()) {
			best = v
		}
	}
	return best
}
