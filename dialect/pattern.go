package dialect

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/schema"
)

// lookaround finds what RE2, and every grammar engine, cannot do.
var lookaround = regexp.MustCompile(`\(\?(=|!|<=|<!)|\\[1-9]|\\k<`)

// anchored reports whether a pattern has to match the whole string.
func anchored(p string) bool {
	return strings.HasPrefix(p, "^") && strings.HasSuffix(p, "$") && !strings.HasSuffix(p, `\$`) &&
		!strings.Contains(topLevel(p), "|")
}

// topLevel is a pattern without what stands in groups, classes and escapes.
func topLevel(p string) string {
	var b strings.Builder
	depth, class := 0, false
	for i := 0; i < len(p); i++ {
		switch ch := p[i]; {
		case ch == '\\':
			i++
		case class:
			class = ch != ']'
		case ch == '[':
			class = true
		case ch == '(':
			depth++
		case ch == ')':
			depth--
		case depth == 0:
			b.WriteByte(ch)
		}
	}
	return b.String()
}

var escapes = regexp.MustCompile(`\\[dDwWsS]`)

// spellPattern writes a pattern in the way that the dialect reads patterns;
// false where that is not possible.
func (c *conversion) spellPattern(p string) (string, bool) {
	if lookaround.MatchString(p) {
		return p, false
	}
	if c.rules.RawPatterns {
		raw, ok := rawPattern(p, c.rules.MaxRepeat)
		return raw, ok && (c.rules.EscapedPatterns || !escaping(raw))
	}
	if c.rules.bad(PatternUnanchored) && !anchored(p) {
		anything := `[\s\S]*`
		if c.rules.bad(PatternEscapes) {
			anything = `(.|[\r\n])*`
		}
		p = "^(?:" + anything + ")(?:" + p + ")(?:" + anything + ")$"
		if strings.Contains(p, "(?:^") || strings.Contains(p, "$)") {
			return p, false // anchors inside cannot be said so
		}
		p = strings.ReplaceAll(p, "(?:", "(")
	}
	if c.rules.bad(PatternEscapes) && escapes.MatchString(p) {
		p = expandEscapes(p)
		if p == "" {
			return "", false
		}
	}
	if _, err := syntax.Parse(p, syntax.Perl); err != nil {
		return p, false
	}
	return p, true
}

// expandEscapes replaces shorthand classes; "" where one that is negated stands
// in a class.
func expandEscapes(p string) string {
	inside := map[byte]string{'d': "0-9", 'w': "A-Za-z0-9_", 's': ` \t\n\r`}
	unsayable := false
	spelled := pattern.Respell(p, func(escaped byte, class bool) string {
		lower := escaped | 0x20
		set, shorthand := inside[lower]
		negated := escaped != lower
		switch {
		case !shorthand:
			return ""
		case class:
			unsayable = unsayable || negated
			return set
		case negated:
			return "[^" + set + "]"
		}
		return "[" + set + "]"
	})
	if unsayable {
		return ""
	}
	return spelled
}

// spillPattern moves a pattern that the dialect does not take, or does not
// understand, to the description.
func (c *conversion) spillPattern(n *schema.Node) {
	pattern := n.Get("pattern")
	if pattern == nil {
		return
	}
	p := pattern.Text()
	why := ""
	switch {
	case c.rules.bad(Pattern):
		why = "pattern is not taken; the description says it"
	case c.rules.bad(PatternLookaround) && lookaround.MatchString(p):
		why = "the pattern looks around or back, which is not taken; the description says it"
	case c.rules.RawPatterns && len(typesOf(n)) == 0:
		why = "the engine takes a pattern without a type for that of a text; the description says it"
	case c.rules.RawPatterns && !c.mark(n).raw:
		why = "the engine reads patterns as the text of a JSON string, which this one may not keep to; the description says it"
	case c.rules.bad(PatternUnanchored) && !anchored(p),
		c.rules.bad(PatternEscapes) && escapes.MatchString(p),
		c.rules.bad(PatternLookaround) && !parses(p):
		why = "the engine does not understand the pattern; the description says it"
	case c.rules.bad(PatternWithLength) && (n.Has("minLength") || n.Has("maxLength")):
		why = "pattern is not taken beside a length; the description says it"
	default:
		return
	}
	n.Delete("pattern")
	c.spill(n, "pattern "+cut(c.originalPattern(n, p), 200))
	c.widen("spillConstraints", n, why)
}

// originalPattern is the pattern as the server wrote it.
func (c *conversion) originalPattern(n *schema.Node, sent string) string {
	if m := c.marks[n]; m != nil && m.pattern != "" {
		return m.pattern
	}
	return sent
}

// maxPattern is the length of a pattern that is parsed only to know whether an
// engine could.
const maxPattern = 2000

func parses(p string) bool {
	if len(p) > maxPattern {
		return false
	}
	_, err := syntax.Parse(p, syntax.Perl)
	return err == nil
}
