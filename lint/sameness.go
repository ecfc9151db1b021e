package lint

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// reordered reports whether two documents hold the same in another order.
func reordered(a, b *schema.Node) bool {
	return a != nil && b != nil && !schema.Equal(a, b) && sorted(a, 0) == sorted(b, 0)
}

// sorted writes a document with the entries of each list in order.
func sorted(n *schema.Node, depth int) string {
	if depth > schema.MaxNesting {
		return ""
	}
	var parts []string
	switch n.Kind() {
	case schema.Array:
		for _, item := range n.Items() {
			parts = append(parts, sorted(item, depth+1))
		}
		slices.Sort(parts)
		return "[" + strings.Join(parts, ",") + "]"
	case schema.Object:
		for _, m := range n.Members() {
			parts = append(parts, schema.Pointer(m.Name)+":"+sorted(m.Value, depth+1))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return string(n.Bytes())
}

// fewValues is how many values a structured result must have, so that a text without any
// of them is about something else, and mostValues how many are looked for.
const fewValues, mostValues = 3, 200

// foreignWords reports whether the texts of a result have none of the values that its
// structured part has. A text in words may leave most of them out, and write numbers in
// its own way.
func foreignWords(r *result) bool {
	n, err := schema.Parse(r.structured)
	if err != nil {
		return false
	}
	values := map[string]bool{}
	gatherValues(n, 0, values)
	if len(values) < fewValues || len(values) >= mostValues {
		return false
	}
	text := strings.ToLower(strings.Join(r.texts, "\n"))
	bare := strings.NewReplacer(",", "", "'", "", "_", "", "\u202f", "", "\u00a0", "", "\u2009", "").Replace(text)
	for v := range values {
		if strings.Contains(text, v) || strings.Contains(bare, v) {
			return false
		}
	}
	return true
}

// gatherValues collects the numbers and the beginnings of the texts in a document.
func gatherValues(n *schema.Node, depth int, into map[string]bool) {
	if depth > schema.MaxNesting || len(into) >= mostValues {
		return
	}
	switch n.Kind() {
	case schema.Array:
		for _, item := range n.Items() {
			gatherValues(item, depth+1, into)
		}
	case schema.Object:
		for _, m := range n.Members() {
			gatherValues(m.Value, depth+1, into)
		}
	case schema.Number:
		whole, _, _ := strings.Cut(string(n.Bytes()), ".")
		into[strings.ToLower(whole)] = true
	case schema.String:
		var runes []rune
		for _, r := range strings.ToLower(strings.TrimSpace(n.Text())) {
			if r < ' ' || r == '"' || r == '\\' || len(runes) == 20 {
				break // further on it may be written in another way
			}
			runes = append(runes, r)
		}
		if len(runes) >= 2 {
			into[string(runes)] = true
		}
	}
}
