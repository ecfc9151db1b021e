package lint

import (
	"math"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// inPlace are the keywords whose schemas judge the same value as the schema that has
// them (JSON Schema 2020-12, 10.2). What stands below others needs a deeper value to cost
// anything.
var inPlace = words("allOf anyOf oneOf not if then else dependentSchemas")

// mostJudges is how many schemas may judge one value with references written out. Honest
// ones have dozens.
const mostJudges = 10_000

// doubling returns the schema whose references double until more than mostJudges schemas
// judge one value: 22 definitions, each with twice the next one, are four million.
func doubling(root *schema.Node) (pointer string, judges float64) {
	judging := map[*schema.Node]float64{}
	var count func(n *schema.Node) float64
	count = func(n *schema.Node) float64 {
		if n == nil || n.Kind() != schema.Object {
			return 0
		}
		if known, ok := judging[n]; ok {
			return known
		}
		judging[n] = 1 // a circle is found by another rule
		sum := 1.0
		if fragment, ok := strings.CutPrefix(n.Get("$ref").Text(), "#"); ok && n.Has("$ref") {
			sum += count(root.At(fragment))
		}
		for sub := range n.Subschemas() {
			if inPlace[sub.Keyword] {
				sum += count(sub.Node)
			}
		}
		judging[n] = math.Min(sum, math.MaxInt32)
		return judging[n]
	}
	walk(root, "", func(n *schema.Node, at string, _ int) {
		if most := count(n); most > judges {
			pointer, judges = at, most
		}
	})
	if judges <= mostJudges {
		return "", 0
	}
	return pointer, judges
}

// tooLarge reports whether a schema was refused for its size or depth.
func tooLarge(t *Tool) bool {
	if t.Refusal == nil {
		return false
	}
	deep := false
	walk(t.Input, "", func(n *schema.Node, _ string, depth int) {
		if depth == schema.MaxDepth {
			for range n.Subschemas() {
				deep = true
			}
		}
	})
	return deep || t.Refusal.Pointer == "" // the rest is about a place
}
