package prove

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A conversion says in a description what a dialect does not take in a schema. A
// model that reads descriptions keeps to that, as far as it is said; read here are
// the words that package dialect writes, and nothing that a server's author wrote.

// said are the words for keywords with a value.
var said = []struct {
	keyword string
	words   *pattern.Pattern
}{
	{"minLength", pattern.Of(`[(,] ?minimum length (\d+)`)},
	{"maxLength", pattern.Of(`[(,] ?maximum length (\d+)`)},
	{"minItems", pattern.Of(`[(,] ?minimum items (\d+)`)},
	{"maxItems", pattern.Of(`[(,] ?maximum items (\d+)`)},
	{"minProperties", pattern.Of(`[(,] ?minimum members (\d+)`)},
	{"maxProperties", pattern.Of(`[(,] ?maximum members (\d+)`)},
	{"minimum", pattern.Of(`[(,] ?minimum (-?[\d.]+(?:[eE][-+]?\d+)?)`)},
	{"maximum", pattern.Of(`[(,] ?maximum (-?[\d.]+(?:[eE][-+]?\d+)?)`)},
	{"exclusiveMinimum", pattern.Of(`[(,] ?greater than (-?[\d.]+(?:[eE][-+]?\d+)?)`)},
	{"exclusiveMaximum", pattern.Of(`[(,] ?less than (-?[\d.]+(?:[eE][-+]?\d+)?)`)},
	{"multipleOf", pattern.Of(`[(,] ?multiple of (-?[\d.]+(?:[eE][-+]?\d+)?)`)},
	{"format", pattern.Of(`[(,] ?format ([a-z0-9-]+)`)},
	{"pattern", pattern.Of(`(?s)[(,] ?pattern (.+?)(?:, (?:format|minimum|maximum|required|one of|named) .*)?\)(?: \(default: .*\))?$`)},
	{"required", pattern.Of(`[(,] ?required: ([^()]+)\)`)},
}

// obeyed is a schema with what its description says of values.
func obeyed(n *schema.Node) *schema.Node {
	text := n.Get("description").Text()
	if !strings.Contains(text, "(") {
		return n
	}
	out, own := n, false
	set := func(keyword string, v *schema.Node) {
		if !own {
			out, own = shallow(n), true
		}
		out.Set(keyword, v)
	}
	for _, s := range said {
		found := s.words.FindStringSubmatch(text)
		if found == nil || n.Has(s.keyword) {
			continue
		}
		switch s.keyword {
		case "format", "pattern":
			set(s.keyword, schema.NewString(found[1]))
		case "required":
			var names []*schema.Node
			for name := range strings.SplitSeq(found[1], ", ") {
				names = append(names, schema.NewString(name))
			}
			set(s.keyword, schema.NewArray(names...))
		default:
			set(s.keyword, schema.NewNumber(strings.TrimRight(found[1], ".")))
		}
	}
	if strings.Contains(text, "no item twice") {
		set("uniqueItems", schema.NewBool(true))
	}
	return out
}

// shallow is an object with the members of another.
func shallow(n *schema.Node) *schema.Node { return schema.NewObject(slices.Clone(n.Members())...) }
