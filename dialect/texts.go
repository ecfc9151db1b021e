package dialect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/schema"
)

// rewriteText says what a schema wants of texts in one pattern, where patterns are
// what holds a model, and spells patterns as the dialect reads them.
func (c *conversion) rewriteText(n *schema.Node) {
	if c.rules.bad(Pattern) {
		return
	}
	theirs := n.Get("pattern")
	if c.rules.RawPatterns || c.rules.LengthsAsPatterns {
		c.writeFormat(n)
		c.foldLengths(n)
		if c.rules.bad(MinMaxLength) {
			c.writeLengths(n)
		}
	} else if c.rules.bad(FormatOther) && !n.Has("pattern") {
		c.writeFormat(n)
	}
	pattern := n.Get("pattern")
	if pattern == nil {
		return
	}
	spelled, ok := c.spellPattern(pattern.Text())
	c.mark(n).raw = ok && c.rules.RawPatterns
	if ok && spelled != pattern.Text() {
		if c.rules.RawPatterns && escaping(spelled) {
			c.mark(n).meant = pattern.Text()
			if theirs != nil { // in a form that a model can read
				c.spill(n, "pattern "+cut(theirs.Text(), 200))
			}
		}
		c.replacePattern(n, spelled)
		c.say("rewriteConstraints", n, "the pattern is spelled in the way that the engine understands")
	}
}

// replacePattern sets a pattern and remembers the server's.
func (c *conversion) replacePattern(n *schema.Node, p string) {
	if m := c.mark(n); m.pattern == "" {
		m.pattern = n.Get("pattern").Text()
	}
	n.Set("pattern", schema.NewString(p))
}

// spellable reports whether the engine can be told a pattern.
func (c *conversion) spellable(p string) bool {
	_, ok := c.spellPattern(p)
	return ok
}

// plainText reports whether n describes texts by what it says of them alone.
func plainText(n *schema.Node) bool {
	return slices.Contains(typesOf(n), "string") && !n.Has("enum") && !n.Has("const") && !n.Has("$ref")
}

// writeFormat writes a format as a pattern where the engine does not hold it, or
// holds the pattern that stands beside it alone.
func (c *conversion) writeFormat(n *schema.Node) {
	name := n.Get("format").Text()
	patterns := formatPatterns[name]
	if len(patterns) == 0 || !plainText(n) {
		return
	}
	pattern := n.Get("pattern")
	if pattern == nil {
		if slices.Contains(c.rules.Formats, name) || !c.spellable(patterns[0]) {
			return
		}
		n.Set("pattern", schema.NewString(patterns[0]))
		c.mark(n).pattern = patterns[0]
		c.sayFormat(n, name, "the format is not held; a pattern says the same")
		return
	}
	c.joinFormat(n, pattern.Text(), patterns)
}

// leftOut is what formats allow and their patterns do not.
var leftOut = map[string]string{
	"email":     "a quoted name, or numbers for a host, cannot be written in an email address",
	"uri":       "a character beyond ASCII only by its numbers, an IPv6 host only with ::, and something has to stand between scheme and query",
	"date-time": "a leap second cannot be written", "time": "a leap second cannot be written",
}

// sayFormat notes that a format became a pattern.
func (c *conversion) sayFormat(n *schema.Node, name, why string) {
	if left := leftOut[name]; left != "" {
		c.narrow("writeFormats", n, why+", but for one thing: "+left)
		return
	}
	c.say("writeFormats", n, why)
}

// joinFormat makes one pattern of a pattern and the format beside it, of which
// engines hold one. Where that cannot be done, an engine of raw patterns gets the
// pattern alone: it is the server's own.
func (c *conversion) joinFormat(n *schema.Node, p string, patterns []string) {
	if joined := c.join(p, patterns); joined != "" {
		why := "a pattern or a format is held; this pattern says what both say"
		if joined == p {
			c.say("writeFormats", n, why)
		} else {
			c.sayFormat(n, n.Get("format").Text(), why)
			c.replacePattern(n, joined)
		}
		if c.rules.RawPatterns {
			n.Delete("format")
		}
		return
	}
	if c.rules.RawPatterns && c.spellable(p) {
		c.spill(n, "format "+n.Get("format").Text())
		n.Delete("format")
		c.widen("writeFormats", n, "a pattern or a format is held; the description says the format")
	}
}

// join finds the pattern that says what p and a format say together, of which one
// may say it alone; "" where there is none.
func (c *conversion) join(p string, patterns []string) string {
	key := p + "\x00" + patterns[0]
	if joined, known := c.joined[key]; known {
		return joined
	}
	joined := ""
	format, ok := c.languageOf(patterns[0])
	theirs, known := c.languageOf(p)
	switch {
	case !ok || !known || !c.spellable(p):
	case theirs.within(format, &c.compare):
		joined = p
	default:
		for _, candidate := range patterns {
			both, ok := c.languageOf(candidate)
			if ok && both.within(theirs, &c.compare) && both.within(format, &c.compare) &&
				append(theirs[:1:1], format...).within(both, &c.compare) && c.spellable(candidate) {
				joined = candidate
				break
			}
		}
	}
	c.joined[key] = joined
	return joined
}

// maxCompare bounds what one conversion spends on comparing patterns: some ten
// milliseconds, for a few dozen patterns.
const maxCompare = 1_000_000

// maxCompared are the length of a pattern that is compared with others, and the
// product of all repetitions in it: what it becomes when they are written out.
const maxCompared, maxWrittenOut = 400, 20_000

func (c *conversion) languageOf(p string) (language, bool) {
	times := 1
	for _, m := range repetition.FindAllStringSubmatch(p, -1) {
		most, err := strconv.Atoi(cmp.Or(m[2], m[1]))
		if times *= max(most, 1); err != nil || times > maxWrittenOut {
			return nil, false
		}
	}
	if len(p) > maxCompared || c.compare <= 0 {
		return nil, false
	}
	l, ok := languageOf(p)
	if ok {
		c.compare -= len(l[0].Inst)
	}
	return l, ok
}

// foldLengths writes the lengths beside a pattern into it.
func (c *conversion) foldLengths(n *schema.Node) {
	pattern := n.Get("pattern")
	if pattern == nil || !n.Has("minLength") && !n.Has("maxLength") || !plainText(n) {
		return
	}
	want, ok := lengthsOf(n)
	if !ok {
		return
	}
	folded, ok := withLengths(pattern.Text(), want)
	if !ok || !c.spellable(folded) {
		return
	}
	n.Delete("minLength")
	n.Delete("maxLength")
	if folded != pattern.Text() {
		c.replacePattern(n, folded)
	}
	c.say("foldLengths", n, "a length beside a pattern is not held; the pattern says it")
}

// lengthsOf reads the lengths that n wants of a text; false where there is none
// that it could have, or one is no number of characters.
func lengthsOf(n *schema.Node) (span, bool) {
	least, known := count(n, "minLength", 0)
	most, bounded := count(n, "maxLength", -1)
	return span{least, most}, known && bounded && (most < 0 || least <= most)
}

// maxCounted is the largest number of repetitions in a pattern that Go's own
// engine, and whoever judges with it, takes.
const maxCounted = 1000

// writeLengths writes the lengths of a string as a pattern. What is too long
// for that stays, for the description.
func (c *conversion) writeLengths(n *schema.Node) {
	if n.Has("pattern") || n.Has("format") || !plainText(n) {
		return
	}
	count := func(keyword string) int {
		literal, ok := n.Get(keyword).Integer()
		i, err := strconv.Atoi(literal)
		if !ok || err != nil || i < 0 || i > maxCounted {
			return -1
		}
		return i
	}
	least, most := count("minLength"), count("maxLength")
	times := ""
	switch {
	case most >= 0 && max(least, 0) <= most:
		times = "{" + itoa(max(least, 0)) + "," + itoa(most) + "}"
	case least == 1:
		times = "+"
	case least > 1:
		times = "{" + itoa(least) + ",}"
	default:
		return
	}
	pattern := `^[\s\S]` + times + "$"
	if !c.spellable(pattern) {
		return
	}
	for _, k := range []struct {
		keyword, words string
		written        bool
	}{{"minLength", "minimum length ", least >= 0}, {"maxLength", "maximum length ", most >= 0}} {
		if v := n.Get(k.keyword); v != nil && k.written {
			n.Delete(k.keyword)
			c.spill(n, k.words+v.Text())
		}
	}
	n.Set("pattern", schema.NewString(pattern))
	c.mark(n).pattern = pattern
	c.say("writeLengths", n, "a length is not taken; a pattern says the same")
}

// escaping reports whether a raw pattern has characters as JSON escapes them, so
// that it means something else to whoever reads it as JSON Schema does.
func escaping(p string) bool { return strings.Contains(p, `[\x5C]`) }

// meaning is the schema that is sent as JSON Schema means it: with patterns that
// match texts, not what JSON writes for them.
func (c *conversion) meaning() *schema.Node {
	differs := false
	for _, m := range c.marks {
		differs = differs || m.meant != ""
	}
	if !differs {
		return c.root
	}
	meant := c.root.Clone()
	var walk func(sent, n *schema.Node)
	walk = func(sent, n *schema.Node) {
		if m := c.marks[sent]; m != nil && m.meant != "" && n.Has("pattern") {
			n.Set("pattern", schema.NewString(m.meant))
		}
		twins := make([]*schema.Node, 0, 8)
		for sub := range n.Subschemas() {
			twins = append(twins, sub.Node)
		}
		i := 0
		for sub := range sent.Subschemas() {
			walk(sub.Node, twins[i])
			i++
		}
	}
	walk(c.root, meant)
	return meant
}

// formatPatterns are patterns that say what a format says, as far as a pattern
// can: the first as RFC 3339 and 3986 have it, the others what remains of it beside
// the patterns that some servers add.
var formatPatterns = func() map[string][]string {
	date := `[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|[12][0-9]))`
	octet := `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	label := `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`
	host := label + `(?:[.]` + label + `)*`
	path := `(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})`
	six := `(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,3})?::(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,2})?`
	atom := `[^\x00-\x20"\\@.]+`
	wide := `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
	moments := []string{`^` + date + `[Tt]` + wide + `$`}
	for _, zone := range []string{`(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`, `Z`} {
		for _, fraction := range []string{`(?:[.][0-9]+)?`, `(?:[.][0-9]{1,12})?`, `(?:[.][0-9]{1,9})?`, `(?:[.][0-9]{1,7})?`, `(?:[.][0-9]{1,6})?`, `(?:[.][0-9]{3})?`, `[.][0-9]{3}`, ``} {
			moments = append(moments, `^`+date+`T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]`+fraction+zone+`$`)
		}
	}
	return map[string][]string{
		"date-time": moments,
		"date":      {`^` + date + `$`},
		"time":      {`^` + wide + `$`},
		"ipv4":      {`^(?:` + octet + `[.]){3}` + octet + `$`},
		"uuid":      {`^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`},
		"email":     {`^` + atom + `(?:[.]` + atom + `)*@` + host + `$`},
		"hostname":  {`^` + host + `[.]?$`},
		"uri":       {`^[A-Za-z][A-Za-z0-9+.-]*:(?://\[` + six + `\](?::[0-9]*)?(?:/` + path + `*)?|` + path + `+)(?:[?](?:` + path + `|[?])*)?(?:#(?:` + path + `|[?])*)?$`},
	}
}()
