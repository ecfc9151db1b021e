package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Pointer returns the JSON pointer (RFC 6901) of a path of member names and
// indexes: "" for none, "/a~1b/0" for "a/b", "0".
func Pointer(path ...string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(p))
	}
	return b.String()
}

var (
	pointerEscape   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// At returns the value at a JSON pointer in URI fragment form, with or without
// the percent encoding, or nil.
func (n *Node) At(pointer string) *Node { return n.at(pointer, (*Node).Get) }

func (n *Node) at(pointer string, member func(n *Node, name string) *Node) *Node {
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	if pointer == "" {
		return n
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = pointerUnescape.Replace(token)
		if n.Kind() == Array {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil
			}
			n = n.items[i]
			continue
		}
		n = member(n, token)
	}
	return n
}

// A lookup finds members of objects as [Node.Get] does, and in those that have many
// without looking at each: thousands of references into one object would take a
// second. It knows an object as it was when it first found something there.
type lookup map[*Node]map[string]*Node

// many is from how many members on an object is worth a map of them.
const many = 32

func (l lookup) get(n *Node, name string) *Node {
	if n == nil || len(n.members) < many {
		return n.Get(name)
	}
	members := l[n]
	if members == nil {
		members = make(map[string]*Node, len(n.members))
		for _, m := range n.members {
			members[m.Name] = m.Value
		}
		l[n] = members
	}
	return members[name]
}

// Words says in a few words what values a schema asks for, as far as its type,
// enum or const tells.
func (n *Node) Words() string {
	if c := n.Get("const"); c != nil {
		return list([]*Node{c})
	}
	if enum := n.Get("enum"); enum.Kind() == Array {
		return "one of " + list(enum.items)
	}
	switch t := n.Get("type"); t.Kind() {
	case String:
		return t.text
	case Array:
		var names []string
		for _, item := range t.items {
			names = append(names, item.text)
		}
		return types(names)
	}
	return "a value"
}

// types names alternatives, null last.
func types(names []string) string {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case a == "null" && b != "null":
			return 1
		case b == "null" && a != "null":
			return -1
		}
		return 0
	})
	return strings.Join(names, " or ")
}

// maxListed is the number of values that a text names before it gives up.
const maxListed = 20

// list names values: strings in single quotes, everything else as JSON.
func list(values []*Node) string {
	var b strings.Builder
	for i, v := range values {
		if i == maxListed {
			fmt.Fprintf(&b, " and %d more", len(values)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if v.Kind() == String {
			b.WriteString("'" + v.text + "'")
			continue
		}
		var text bytes.Buffer
		if err := json.Compact(&text, v.Bytes()); err == nil {
			b.Write(text.Bytes())
		}
	}
	return b.String()
}

// quoted is a text in quotes, clipped.
func quoted(s string) string { return strconv.Quote(clip(s)) }

// decimal writes a number without a fraction where it has none.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if n, exact := r.FloatPrec(); exact {
		return r.FloatString(n)
	}
	return r.FloatString(10)
}
