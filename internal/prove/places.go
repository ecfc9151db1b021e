package prove

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// Limits of a walk through a schema. What is beyond them is not looked at, and a
// proof says how many places were.
const (
	maxPlaces = 600
	maxSteps  = 24
	maxTurns  = 2 // through the same $ref on one way
)

// A step leads from a value to one inside it, or from a schema to a branch of it
// that judges the same value.
type step struct {
	kind  byte // one of the kinds below
	name  string
	index int
	into  *schema.Node // the schema that the step leads to
}

const (
	member byte = 'm' // a property that the schema declares
	extra  byte = 'x' // one that it allows without declaring it by name
	item   byte = 'i'
	branch byte = 'b' // of anyOf, oneOf, allOf, then, else
)

// A place is a schema inside another one, and the way to it.
type place struct {
	node    *schema.Node
	steps   []step
	pointer string
}

// A walker finds the places of a schema.
type walker struct {
	root   *schema.Node
	places []place
	turns  map[*schema.Node]int
	seen   map[judged]bool
}

// A judged is a schema that judges one part of a value, by whatever way: the ways
// double where a definition is used twice.
type judged struct {
	node  *schema.Node
	where string
}

// where is the part of a value that steps lead to.
func where(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		if s.kind != branch {
			fmt.Fprintf(&b, "%c%d%q", s.kind, s.index, s.name)
		}
	}
	return b.String()
}

// placesOf returns the places of a schema, the root first.
func placesOf(root *schema.Node) []place {
	w := &walker{root: root, turns: map[*schema.Node]int{}, seen: map[judged]bool{}}
	w.walk(root, nil, "")
	return w.places
}

// follow resolves references within root; nil where that leads nowhere.
func follow(root, n *schema.Node) *schema.Node {
	for range 20 {
		ref := n.Get("$ref")
		if ref == nil {
			return n
		}
		text := ref.Text()
		if text == "" || text[0] != '#' {
			return nil
		}
		if n = root.At(text[1:]); n == nil {
			return nil
		}
	}
	return nil
}

func (w *walker) walk(n *schema.Node, steps []step, pointer string) {
	if len(w.places) >= maxPlaces || len(steps) > maxSteps || n.Kind() != schema.Object {
		return
	}
	if n.Has("$ref") {
		target := follow(w.root, n)
		at := judged{target, where(steps)}
		if target == nil || w.turns[target] >= maxTurns || w.seen[at] {
			return
		}
		w.seen[at] = true
		w.turns[target]++
		defer func() { w.turns[target]-- }()
		w.walk(target, steps, pointer)
		return
	}
	w.places = append(w.places, place{n, steps, pointer})
	for sub := range n.Subschemas() {
		if s, ok := stepInto(n, sub); ok {
			w.walk(sub.Node, append(slices.Clone(steps), s), pointer+sub.Pointer())
		}
	}
}

// stepInto returns the step to a schema inside another one.
func stepInto(n *schema.Node, sub schema.Subschema) (step, bool) {
	switch sub.Keyword {
	case "properties":
		return step{kind: member, name: sub.Name, into: sub.Node}, true
	case "items":
		return step{kind: item, index: len(n.Get("prefixItems").Items()), into: sub.Node}, true
	case "prefixItems":
		i, err := strconv.Atoi(sub.Name)
		return step{kind: item, index: i, into: sub.Node}, err == nil
	case "contains":
		return step{kind: item, into: sub.Node}, true
	case "additionalProperties":
		return step{kind: extra, name: freeName(n), into: sub.Node}, sub.Node.Kind() == schema.Object
	case "patternProperties":
		name := matching(sub.Name)
		return step{kind: extra, name: name, into: sub.Node}, name != ""
	case "anyOf", "oneOf", "allOf", "then", "else":
		return step{kind: branch, into: sub.Node}, true
	}
	return step{}, false
}

// freeName is a name that the schema does not declare.
func freeName(n *schema.Node) string {
	name := "k"
	for n.Get("properties").Has(name) {
		name += "k"
	}
	return name
}
