package lint

import (
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// plainFields are the last words of names whose values need no explanation, or are those
// that another tool returned.
var plainFields = words(`
	id ids uuid key slug name names title label description text message comment content summary subject note password secret token
	cursor page url uri link email mail address phone number count limit offset size index color colour host port username user
	owner repo repository organization org team project workspace city country street company first last etag match tld domain hostname prefix suffix
	body query search term keyword surname sha element reason path file folder directory branch tag version status type kind language model prompt question answer`)

// explains are the words by which a description shows what a value looks like.
var explains = pattern.Of("`[^`]+`|\"[^\"]+\"|'[^']+'|(?i)\\b(such as|e\\.?g\\b|for example|for instance|like|format|must be|one of|iso[ -]?8601|rfc ?\\d+|yyyy)|[(:]\\s*\\w+(, \\w+| or \\w+)")

// doubt returns the name of the first argument whose value a model has to guess: a text
// that neither an enum, a format, a pattern nor a word about its form narrows, or an
// object of which nothing is said. Empty for none.
func doubt(t *Tool) (name string) {
	walk(t.Input, "", func(n *schema.Node, pointer string, _ int) {
		field, ok := property(pointer)
		if !ok || name != "" {
			return
		}
		if slices.ContainsFunc([]string{"enum", "const", "format", "pattern", "$ref", "anyOf", "oneOf", "allOf", "examples", "default", "items", "properties"}, n.Has) {
			return
		}
		open := false
		switch n.Get("type").Text() {
		case "string":
			w := splitWords(field)
			open = len(w) > 0 && !plainFields[w[len(w)-1]] && !plainFields[strings.TrimSuffix(w[len(w)-1], "s")]
		case "object", "array", "":
			open = n.Get("additionalProperties").Kind() != schema.Object && n.Get("type").Kind() != schema.Array
		}
		if open && !explains.MatchString(n.Get("description").Text()) {
			name = field
		}
	})
	return name
}
