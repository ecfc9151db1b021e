package result

import (
	"bytes"
	"strings"
)

// sameText reports whether text is the JSON of n, in any order of members and
// any spelling of numbers and strings.
func (d *doc) sameText(n node, text []byte) bool {
	i := skip(text, 0)
	if i == len(text) || kindOf(text[i]) != n.kind {
		return false
	}
	value := d.b[n.start:n.end]
	if sameTokens(value, text) {
		return true
	}
	// Only members in another order are left to try.
	if n.chars > 1<<20 || bytes.IndexByte(value, '{') < 0 {
		return false
	}
	other, err := scan(text)
	return err == nil && equal(d, n, other, other.root, 0)
}

func kindOf(c byte) byte {
	if c == '-' || c-'0' <= 9 {
		return '0'
	}
	return c
}

// sameTokens compares JSON that scan has read with any other text, token by
// token.
func sameTokens(a, b []byte) bool {
	i, j := 0, 0
	for {
		i, j = skip(a, i), skip(b, j)
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		switch c := a[i]; {
		case c == '"':
			if b[j] != '"' {
				return false
			}
			endA, endB := i+literalEnd(a[i:]), j+literalEnd(b[j:])
			if !sameString(a[i:endA], b[j:endB]) {
				return false
			}
			i, j = endA, endB
		case kindOf(c) == '0':
			endA, endB := i+numberEnd(a[i:]), j+numberEnd(b[j:])
			if !sameNumber(a[i:endA], b[j:endB]) {
				return false
			}
			i, j = endA, endB
		default:
			if c != b[j] {
				return false
			}
			i++
			j++
		}
	}
}

func sameString(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return false
	}
	if s := (scanner{b: b}); len(b) < 2 {
		return false
	} else if _, err := s.str(); err != nil || s.i != len(b) {
		return false
	}
	return bytes.Equal(appendDecoded(nil, a), appendDecoded(nil, b))
}

func numberEnd(b []byte) int {
	for i, c := range b {
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return i
		}
	}
	return len(b)
}

// sameNumber compares the values of two number literals.
func sameNumber(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if s := (scanner{b: b}); s.number() != nil || s.i != len(b) {
		return false
	}
	digitsA, expA, okA := decimal(string(a))
	digitsB, expB, okB := decimal(string(b))
	return okA && okB && digitsA == digitsB && expA == expB
}

// decimal takes a number literal apart: its sign and digits without zeros on
// either side, and the power of ten of the last digit. It gives up on exponents
// that nobody means.
func decimal(s string) (digits string, exp int, ok bool) {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		power := strings.TrimPrefix(s[i+1:], "+")
		negative := strings.HasPrefix(power, "-")
		power = strings.TrimLeft(strings.TrimPrefix(power, "-"), "0")
		if len(power) > 6 {
			return "", 0, false
		}
		for _, c := range power {
			exp = exp*10 + int(c-'0')
		}
		if negative {
			exp = -exp
		}
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	exp -= len(fraction)
	s = strings.TrimLeft(whole+fraction, "0")
	digits = strings.TrimRight(s, "0")
	exp += len(s) - len(digits)
	if digits == "" {
		return "0", 0, true
	}
	return sign + digits, exp, true
}

// equal compares two values as JSON Schema does: members in any order, 1 = 1.0.
func equal(x *doc, a node, y *doc, b node, depth int) bool {
	if a.kind != b.kind || depth > maxDepth {
		return false
	}
	switch a.kind {
	case '"':
		return sameString(x.b[a.start:a.end], y.b[b.start:b.end])
	case '0':
		return sameNumber(x.b[a.start:a.end], y.b[b.start:b.end])
	case '[', '{':
		if a.count != b.count {
			return false
		}
	default:
		return true
	}
	var byName map[string]node
	if a.kind == '{' {
		byName = make(map[string]node, b.count)
		for _, m := range y.children(b) {
			byName[string(appendDecoded(nil, m.name))] = m.node
		}
		if len(byName) < b.count {
			return false // duplicate names
		}
	}
	other := y.cursor(b)
	for _, part := range x.children(a) {
		ch, _ := other.next()
		match := ch.node
		if a.kind == '{' {
			name := string(appendDecoded(nil, part.name))
			found, ok := byName[name]
			if !ok {
				return false
			}
			delete(byName, name)
			match = found
		}
		if !equal(x, part.node, y, match, depth+1) {
			return false
		}
	}
	return true
}
