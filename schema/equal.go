package schema

import (
	"slices"
	"strconv"
	"strings"
)

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
		for i, m := range a.members {
			other := b.members[i].Value // mostly in the same order
			if b.members[i].Name != m.Name {
				other = b.Get(m.Name)
			}
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
		if a.text == b.text || plainInteger(a.text) && plainInteger(b.text) {
			return a.text == b.text
		}
		x, ok1 := rational(a.text)
		y, ok2 := rational(b.text)
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	return a.Text() == b.Text()
}

// plainInteger reports whether a number is spelled as only that integer is.
func plainInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return !strings.ContainsAny(digits, ".eE") && (digits != "0" || digits == text)
}

// Identity returns a text that values have in common exactly where they are [Equal],
// so that many can be told apart in a map.
func (n *Node) Identity() string { return string(n.appendIdentity(nil)) }

func (n *Node) appendIdentity(b []byte) []byte {
	switch n.Kind() {
	case Object:
		members := slices.SortedFunc(slices.Values(n.members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		b = append(b, '{')
		for _, m := range members {
			b = m.Value.appendIdentity(append(strconv.AppendQuote(b, m.Name), ':'))
		}
		return append(b, '}')
	case Array:
		b = append(b, '[')
		for _, item := range n.items {
			b = append(item.appendIdentity(b), ',')
		}
		return append(b, ']')
	case Number:
		return appendDecimal(b, n.text)
	case String:
		return strconv.AppendQuote(b, n.Text())
	}
	return append(b, n.Text()...)
}

// appendDecimal appends what the spellings of one number have in common: its digits
// without zeros around them, and where the point is. It computes nothing, so that a
// large exponent is no large number.
func appendDecimal(b []byte, literal string) []byte {
	if !sane(literal) {
		return append(append(b, '#'), literal...)
	}
	mantissa, power := literal, 0
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa = literal[:i]
		power, _ = strconv.Atoi(strings.TrimPrefix(literal[i+1:], "+"))
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	if i := strings.IndexByte(digits, '.'); i >= 0 {
		power -= len(digits) - i - 1
		digits = digits[:i] + digits[i+1:]
	}
	digits = strings.TrimLeft(digits, "0")
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short)
	if short == "" {
		return append(b, '0')
	}
	if negative {
		b = append(b, '-')
	}
	b = append(b, short...)
	if power != 0 {
		b = strconv.AppendInt(append(b, 'e'), int64(power), 10)
	}
	return b
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
