package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/text/canonical"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A line is one of a JSON document that is laid out, and the pointer (RFC 6901) to the
// value that begins there.
type line struct {
	Text    string
	Pointer string
	begins  bool
}

// maxNested bounds how deep a document is laid out; what is deeper stands on one line.
const maxNested = 64

// lines lays a JSON document out. What is none is one line.
func lines(document json.RawMessage) []line {
	root, err := schema.Parse(document)
	if err != nil {
		return []line{{Text: canonical.Readable(document), begins: true}}
	}
	var l layout
	l.value("", "", root, 0, "")
	return l.all
}

type layout struct{ all []line }

func (l *layout) add(depth int, text, pointer string, begins bool) {
	l.all = append(l.all, line{strings.Repeat("  ", depth) + text, pointer, begins})
}

// value lays a value out behind a prefix, such as the name of its member, with a suffix.
func (l *layout) value(prefix, pointer string, n *schema.Node, depth int, suffix string) {
	members, items := n.Members(), n.Items()
	if len(members)+len(items) == 0 || depth >= maxNested || short(n) {
		l.add(depth, prefix+canonical.Readable(n.Bytes())+suffix, pointer, true)
		return
	}
	open, shut := "{", "}"
	if n.Kind() == schema.Array {
		open, shut = "[", "]"
	}
	l.add(depth, prefix+open, pointer, true)
	for i, m := range members {
		l.value(canonical.Readable(schema.NewString(m.Name).Bytes())+": ", pointer+schema.Pointer(m.Name), m.Value, depth+1, comma(i, len(members)))
	}
	for i, item := range items {
		l.value("", pointer+"/"+strconv.Itoa(i), item, depth+1, comma(i, len(items)))
	}
	l.add(depth, shut+suffix, pointer, false)
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

// short reports whether a value is a list of plain values that fits on a line.
func short(n *schema.Node) bool {
	if n.Kind() != schema.Array || len(n.Bytes()) > 72 {
		return false
	}
	for _, item := range n.Items() {
		if item.Kind() == schema.Object || item.Kind() == schema.Array {
			return false
		}
	}
	return true
}

// A pair is a line of the original beside the one of what was made of it; nil for none.
type pair struct {
	Left, Right *line
	Same        bool
	Changes     []int // which changes are at the left line, from 1
}

// maxAligned bounds what lines are compared, as the product of their numbers: what is more
// stands side by side from the top.
const maxAligned = 4 << 20

// beside puts what a server sent beside what a model gets, line to line, and each change
// at the line that it is about.
func beside(original, made json.RawMessage, changes []dialect.Change) []pair {
	left, right := lines(original), lines(made)
	all := align(left, right)
	at := map[string][]int{}
	for i, c := range changes {
		at[c.Pointer] = append(at[c.Pointer], i+1)
	}
	for i := range all {
		if l := all[i].Left; l != nil && l.begins {
			all[i].Changes = at[l.Pointer]
		}
	}
	return all
}

// align finds the longest sequence of lines that both have (commas do not count), and
// puts the others beside each other between them.
func align(left, right []line) (all []pair) {
	if len(left)*len(right) > maxAligned {
		return rest(left, right)
	}
	same := func(i, j int) bool {
		return strings.TrimSuffix(left[i].Text, ",") == strings.TrimSuffix(right[j].Text, ",")
	}
	width := len(right) + 1
	longest := make([]int32, (len(left)+1)*width)
	for i := len(left) - 1; i >= 0; i-- {
		for j := len(right) - 1; j >= 0; j-- {
			if same(i, j) {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	i, j, fromI, fromJ := 0, 0, 0, 0
	for i < len(left) && j < len(right) {
		switch {
		case same(i, j):
			all = append(all, rest(left[fromI:i], right[fromJ:j])...)
			all = append(all, pair{Left: &left[i], Right: &right[j], Same: true})
			i, j = i+1, j+1
			fromI, fromJ = i, j
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return append(all, rest(left[fromI:], right[fromJ:])...)
}

// rest puts lines beside each other that have nothing in common.
func rest(left, right []line) (all []pair) {
	for i := range max(len(left), len(right)) {
		var p pair
		if i < len(left) {
			p.Left = &left[i]
		}
		if i < len(right) {
			p.Right = &right[i]
		}
		all = append(all, p)
	}
	return all
}
