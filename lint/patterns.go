package lint

import (
	"regexp"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// longPattern is how many characters of a pattern are looked at.
const longPattern = 1024

// nestedRepeat finds a group that is nothing but a repetition, or one with optional
// parts behind it, and is repeated itself: (a+)+. With something that must stand
// between, as in (,[^,]+)*, there is but one way to match.
var nestedRepeat = func() *pattern.Pattern {
	const atom = `(?:\[[^\]]*\]|\\[a-zA-Z]|[\w.])`
	return pattern.Of(`\((?:\?:)?` + atom + `[+*](?:` + atom + `[?*])*\)(?:[+*]|\{\d+,\})`)
}()

// checkPatterns looks at patterns for texts, and for the names of members: whether model APIs
// take those of an input, and clients can read those that RE2 knows.
func checkPatterns(t *Tool, say Say) {
	check := func(root *schema.Node, where string, sent bool) {
		walk(root, where, func(n *schema.Node, pointer string, _ int) {
			if p := n.Get("pattern"); p.Kind() == schema.String {
				checkPattern(p.Text(), pointer+"/pattern", sent, say)
			}
			for _, p := range n.Get("patternProperties").Members() {
				checkPattern(p.Name, pointer+"/patternProperties", false, say)
			}
		})
	}
	check(t.Input, "/inputSchema", true)
	check(t.Output, "/outputSchema", false)
}

// checkPattern looks at a pattern, which is sent to models where it is of a text of an input.
func checkPattern(text, pointer string, sent bool, say Say) {
	_, err := regexp.Compile(text)
	switch {
	case !sent:
	case len(text) > longPattern:
		say(at(pointer), "the pattern has %d characters", len(text))
	case err != nil:
		say(at(pointer), "the pattern %s is not one of RE2", quote(text))
	case nestedRepeat.MatchString(text):
		say(at(pointer), "the pattern %s repeats what repeats", quote(text))
	}
	if err != nil || len(text) > longPattern {
		return
	}
	if err := pattern.Portable(text); err != nil {
		say(at(pointer), "clients that read the pattern %s as ECMAScript cannot: %v", quote(text), err)
	}
}
