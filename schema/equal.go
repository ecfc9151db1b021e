package schema

// Equal reports whether two values are equal as JSON Schema sees it: 1 and 1.0
// are, and the order of members does not matter.
func Equal(a, b *Node) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case Object:
		if len(a.members) != len(b.members) {
			return false
		}
		for _, m := range a.members {
			other := b.Get(m.Name)
			if other == nil || !Equal(m.Value, other) {
				return false
			}
		}
		return true
	case Array:
		if len(a.items) != len(b.items) {
			return false
		}
		for i := range a.items {
			if !Equal(a.items[i], b.items[i]) {
				return false
			}
		}
		return true
	case Number:
		if a.text == b.text {
			return true
		}
		x, ok1 := rational(a.text)
		y, ok2 := rational(b.text)
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	return a.Text() == b.Text()
}

// Compare compares two number nodes; ok is false where one of them is none.
func Compare(a, b *Node) (sign int, ok bool) {
	if a.Kind() != Number || b.Kind() != Number {
		return 0, false
	}
	x, ok1 := rational(a.text)
	y, ok2 := rational(b.text)
	if !ok1 || !ok2 {
		return 0, false
	}
	return x.Cmp(y), true
}

// Integer returns the plain spelling of a number that is an integer, such as 3
// for 3.0 and 1500 for 1.5e3. It reports false for any other value, and for
// numbers of more than 40 digits, which are better left as they are.
func (n *Node) Integer() (string, bool) {
	if n.Kind() != Number {
		return "", false
	}
	r, ok := rational(n.text)
	if !ok || !r.IsInt() || r.Num().BitLen() > 130 {
		return "", false
	}
	return r.Num().String(), true
}
