package dialect

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

// Engines that turn patterns into grammars match them against the text of a
// JSON string as it is written, whole, between its quotes. There "." also takes
// the quote that ends the string, and a value that holds a quotation mark is
// written \". And each engine knows a few escapes only. So a pattern is written
// anew for them, from what it means, in what all of them understand: literals,
// classes with \xHH, groups, alternatives and repetitions. Characters that JSON
// escapes are written as JSON writes them, whatever range they came in.
//
// Read in the sources: ggml-org/llama.cpp common/json-schema-to-grammar.cpp
// (_visit_pattern) and src/llama-grammar.cpp (parse_char, MAX_REPETITION_THRESHOLD),
// as of llama.rn 0.12.9; mlc-ai/xgrammar cpp/regex_converter.cc 0.1.27 and 0.2.5.

// rawPattern writes a pattern for such an engine; false where it cannot be.
func rawPattern(p string, maxRepeat int) (string, bool) {
	if len(p) > maxPattern {
		return "", false
	}
	re, err := syntax.Parse(pattern.SpellCodePoints(p, `\x{%s}`), syntax.Perl)
	if err != nil {
		return "", false
	}
	w := rawWriter{limit: maxRepeat}
	body := w.write(re, true, true)
	if w.failed || body == "" && !w.begins && !w.ends {
		return "", false
	}
	if !w.begins {
		body = w.anything() + body
	}
	if !w.ends {
		body += w.anything()
	}
	if body = "^" + body + "$"; len(body) > maxPattern {
		return "", false
	}
	return body, !w.failed && isRawPattern(body, maxRepeat)
}

// anything is any text, as JSON writes it.
func (w *rawWriter) anything() string { return w.class([]rune{0, unicode.MaxRune}) + "*" }

// A rawWriter writes a parsed pattern. begins and ends say whether what was
// written last is anchored on that side.
type rawWriter struct {
	begins, ends bool
	repeats      int
	limit        int
	failed       bool
}

func (w *rawWriter) fail() string {
	w.failed = true
	return ""
}

// write writes re; first and last say whether the value begins before it and
// ends behind it, so that it may be anchored there.
func (w *rawWriter) write(re *syntax.Regexp, first, last bool) string {
	w.begins, w.ends = false, false
	switch re.Op {
	case syntax.OpEmptyMatch:
		return ""
	case syntax.OpBeginText:
		w.begins = first
		return w.unless(!first)
	case syntax.OpEndText:
		w.ends = last
		return w.unless(!last)
	case syntax.OpLiteral:
		return w.literal(re)
	case syntax.OpCharClass:
		return w.class(re.Rune)
	case syntax.OpAnyChar:
		return w.class([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		return w.class([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpCapture:
		body := w.write(re.Sub[0], first, last)
		if body == "" || re.Sub[0].Op == syntax.OpAlternate {
			return body
		}
		return "(" + body + ")"
	case syntax.OpConcat:
		return w.concat(re.Sub, first, last)
	case syntax.OpAlternate:
		return w.alternate(re.Sub, first, last)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return w.repeat(re)
	}
	return w.fail() // a boundary, or nothing at all
}

// unless fails where something is wrong.
func (w *rawWriter) unless(wrong bool) string {
	if wrong {
		w.failed = true
	}
	return ""
}

func (w *rawWriter) concat(subs []*syntax.Regexp, first, last bool) string {
	var b strings.Builder
	begins, ends := false, false
	for i, sub := range subs {
		b.WriteString(w.write(sub, first && i == 0, last && i == len(subs)-1))
		begins, ends = begins || w.begins, ends || w.ends
	}
	w.begins, w.ends = begins, ends
	return b.String()
}

// alternate writes alternatives, which must all be anchored alike.
func (w *rawWriter) alternate(subs []*syntax.Regexp, first, last bool) string {
	var parts []string
	empty := false
	begins, ends := true, true
	some, someEnd := false, false
	for _, sub := range subs {
		part := w.write(sub, first, last)
		begins, ends = begins && w.begins, ends && w.ends
		some, someEnd = some || w.begins, someEnd || w.ends
		if part == "" {
			empty = true
			continue
		}
		parts = append(parts, part)
	}
	if some != begins || someEnd != ends {
		return w.fail()
	}
	w.begins, w.ends = begins, ends
	if len(parts) == 0 {
		return ""
	}
	text := "(" + strings.Join(parts, "|") + ")"
	if empty {
		text += "?"
	}
	return text
}

func (w *rawWriter) repeat(re *syntax.Regexp) string {
	least, most := re.Min, re.Max
	switch re.Op {
	case syntax.OpStar:
		least, most = 0, -1
	case syntax.OpPlus:
		least, most = 1, -1
	case syntax.OpQuest:
		least, most = 0, 1
	}
	before := w.repeats
	body := w.write(re.Sub[0], false, false)
	if body == "" || most == 0 {
		return ""
	}
	if !oneUnit(body) {
		body = "(" + body + ")"
	}
	times := max(least, most, 1)
	w.repeats = before + times*max(w.repeats-before, 1)
	if w.limit > 0 && w.repeats > w.limit {
		return w.fail()
	}
	switch {
	case least == 0 && most < 0:
		return body + "*"
	case least == 1 && most < 0:
		return body + "+"
	case most < 0:
		return body + "{" + strconv.Itoa(least) + "}" + body + "*"
	case least == 0 && most == 1:
		return body + "?"
	case least == most && least == 1:
		return body
	case least == most:
		return body + "{" + strconv.Itoa(least) + "}"
	}
	return body + "{" + strconv.Itoa(least) + "," + strconv.Itoa(most) + "}"
}

// oneUnit reports whether a piece of a pattern is one class or one group, so that
// what follows is about all of it.
func oneUnit(body string) bool {
	depth, class := 0, false
	for i, ch := range body {
		switch {
		case class:
			class = ch != ']'
		case ch == '[':
			class = true
		case ch == '(':
			depth++
		case ch == ')':
			depth--
		}
		if depth == 0 && !class {
			return i == len(body)-1 && i > 0
		}
	}
	return false
}

func (w *rawWriter) literal(re *syntax.Regexp) string {
	var b strings.Builder
	for _, r := range re.Rune {
		switch {
		case re.Flags&syntax.FoldCase != 0:
			b.WriteString(w.class(folded(r)))
		case r == '^':
			b.WriteString(`\^`)
		case strings.ContainsRune(`|.(){}*+?$`, r):
			b.WriteString("[" + string(r) + "]")
		case plainRune(r):
			b.WriteRune(r)
		default:
			b.WriteString(w.class([]rune{r, r}))
		}
	}
	return b.String()
}

// rawSyntax is what rawPattern writes.
var rawSyntax = regexp.MustCompile(`^\^(?:\\\^|[^"\\.\[\]^$\x00-\x1f\x7f]|\[\^?(?:[^\\\[\]^\x00-\x1f\x7f]|\\x[0-9A-F]{2})+\])*\$$`)

var repetition = regexp.MustCompile(`\{(\d+)(?:,(\d*))?\}`)

// isRawPattern reports whether a pattern is written as rawPattern writes them.
func isRawPattern(p string, maxRepeat int) bool {
	if !rawSyntax.MatchString(p) || strings.Contains(p, "(?") {
		return false
	}
	if maxRepeat == 0 {
		return true
	}
	for _, m := range repetition.FindAllStringSubmatch(p, -1) {
		for _, digits := range m[1:] {
			if n, err := strconv.Atoi(digits); digits != "" && (err != nil || n > maxRepeat) {
				return false
			}
		}
	}
	return true
}
