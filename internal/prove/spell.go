package prove

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/dragoman-mcp/dragoman/schema"
)

// spellings are the texts in which a model may write a value: engines fix the
// order of members, and take some escapes and not others. A value can be written
// where one of its spellings can.
func spellings(root, value *schema.Node) []string {
	declared := ordered(root, root, value, false)
	needed := ordered(root, root, value, true)
	texts := []string{string(declared.Append(nil)), string(needed.Append(nil))}
	for _, n := range []*schema.Node{declared, needed} {
		texts = append(texts, escaped(n, byNumber), escaped(n, slashes))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// ordered returns a value with the members of its objects in the order of the
// schema's properties, and of all those that are needed before the others where
// that is wanted. What is not declared comes last. Integers are spelled plainly.
func ordered(root, n, v *schema.Node, neededFirst bool) *schema.Node {
	n = branchFor(root, n, v)
	switch v.Kind() {
	case schema.String:
		return schema.NewString(v.Text()) // however the schema spells it
	case schema.Number:
		if plain, ok := v.Integer(); ok {
			return schema.NewNumber(plain)
		}
	case schema.Array:
		prefix := n.Get("prefixItems").Items()
		items := make([]*schema.Node, 0, len(v.Items()))
		for i, item := range v.Items() {
			inner := n.Get("items")
			if i < len(prefix) {
				inner = prefix[i]
			}
			items = append(items, ordered(root, inner, item, neededFirst))
		}
		return schema.NewArray(items...)
	case schema.Object:
		members := make([]schema.Member, 0, len(v.Members()))
		for _, m := range v.Members() {
			inner := n.Get("properties").Get(m.Name)
			if inner == nil {
				inner = n.Get("additionalProperties")
			}
			members = append(members, schema.Member{Name: m.Name, Value: ordered(root, inner, m.Value, neededFirst)})
		}
		slices.SortStableFunc(members, func(a, b schema.Member) int {
			return rank(n, a.Name, neededFirst) - rank(n, b.Name, neededFirst)
		})
		return schema.NewObject(members...)
	}
	return v
}

// rank is the place of a member in the order of its schema.
func rank(n *schema.Node, name string, neededFirst bool) int {
	properties := n.Get("properties").Members()
	i := slices.IndexFunc(properties, func(m schema.Member) bool { return m.Name == name })
	if i < 0 {
		return 2 * (len(properties) + 1)
	}
	needed := slices.ContainsFunc(n.Get("required").Items(), func(r *schema.Node) bool { return r.IsString(name) })
	if neededFirst && !needed {
		i += len(properties)
	}
	return i
}

// branchFor follows references and picks the branch of a union that a value is
// most likely written by.
func branchFor(root, n, v *schema.Node) *schema.Node {
	for range 10 {
		if n = follow(root, n); n == nil {
			return nil
		}
		var best *schema.Node
		score := -1
		for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
			for _, b := range n.Get(keyword).Items() {
				if s := likeness(root, b, v); s > score {
					best, score = b, s
				}
			}
		}
		if best == nil || n.Has("properties") {
			return n
		}
		n = best
	}
	return n
}

// likeness says how well a schema suits a value, at a glance.
func likeness(root, n, v *schema.Node) (score int) {
	if n = follow(root, n); n == nil {
		return 0
	}
	kind := map[schema.Kind]string{schema.Null: "null", schema.Bool: "boolean", schema.String: "string", schema.Array: "array", schema.Object: "object"}[v.Kind()]
	if kinds := typesOf(n); slices.Contains(kinds, kind) || v.Kind() == schema.Number && (slices.Contains(kinds, "number") || slices.Contains(kinds, "integer")) {
		score += 2
	}
	for _, m := range v.Members() {
		p := n.Get("properties").Get(m.Name)
		if p == nil {
			continue
		}
		score++
		options := p.Get("enum").Items()
		if c := p.Get("const"); c != nil {
			options = []*schema.Node{c}
		}
		if len(options) > 0 && slices.ContainsFunc(options, func(o *schema.Node) bool { return schema.Equal(o, m.Value) }) {
			score += 10
		}
	}
	return score
}

// escaped is a value as JSON in which texts, except names, are spelled by quote.
func escaped(n *schema.Node, quote func(string) string) string {
	var b strings.Builder
	escape(&b, n, quote)
	return b.String()
}

func escape(b *strings.Builder, n *schema.Node, quote func(string) string) {
	switch n.Kind() {
	case schema.String:
		b.WriteString(quote(n.Text()))
	case schema.Array:
		b.WriteByte('[')
		for i, item := range n.Items() {
			if i > 0 {
				b.WriteByte(',')
			}
			escape(b, item, quote)
		}
		b.WriteByte(']')
	case schema.Object:
		b.WriteByte('{')
		for i, m := range n.Members() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(schema.NewString(m.Name).Append(nil)) // engines have names as they are
			b.WriteByte(':')
			escape(b, m.Value, quote)
		}
		b.WriteByte('}')
	default:
		b.Write(n.Append(nil))
	}
}

// byNumber writes every character that may need it by its number.
func byNumber(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c >= 0x10000:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		case c < ' ' || c == '"' || c == '\\' || c > '~':
			fmt.Fprintf(&b, "\\u%04x", c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// slashes writes a slash as XGrammar 0.1.27 wants it in the members of an enum.
func slashes(s string) string {
	return strings.ReplaceAll(string(schema.NewString(s).Append(nil)), "/", `\/`)
}
