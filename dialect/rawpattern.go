package dialect

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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
	re, err := syntax.Parse(unicodeEscape.ReplaceAllString(p, `\x{$1}`), syntax.Perl)
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

// unicodeEscape is how ECMAScript spells a code point, which RE2 does not know.
var unicodeEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})`)

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

// folded are the spellings of a letter, as the ranges of a class.
func folded(r rune) []rune {
	all := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		all = append(all, f)
	}
	slices.Sort(all)
	var ranges []rune
	for _, f := range all {
		ranges = append(ranges, f, f)
	}
	return ranges
}

// class writes a class of ranges: those of its characters that are written as
// themselves, or else the escapes of the others.
func (w *rawWriter) class(ranges []rune) string {
	open := len(ranges) > 0 && ranges[len(ranges)-1] == unicode.MaxRune
	plain := w.plain(ranges, open)
	escapes := escapesOf(ranges)
	switch {
	case escapes == "":
		return plain
	case plain == "":
		return escapes
	}
	return "(" + plain + "|" + escapes + ")"
}

// plain writes the characters of a class that are written as themselves; "" where
// there are none. An open class is written by what is not in it.
func (w *rawWriter) plain(ranges []rune, open bool) string {
	if open {
		return "[^\"" + classText(minus(complement(ranges)), `\x00-\x1F\x5C`) + "]"
	}
	ranges = minus(ranges)
	if len(ranges) == 0 {
		return ""
	}
	for i := 0; i < len(ranges); i += 2 {
		if !plainRange(ranges[i], ranges[i+1]) {
			return w.fail()
		}
	}
	switch text := classText(ranges, ""); text {
	case `\x5E`:
		return `\^`
	case `\x5E-`:
		return `(\^|[-])`
	default:
		return "[" + text + "]"
	}
}

// minus takes from ranges what JSON escapes.
func minus(ranges []rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := max(ranges[i], ' '), ranges[i+1]
		for _, special := range []rune{'"', '\\'} {
			if lo <= special && special <= hi {
				if lo < special {
					out = append(out, lo, special-1)
				}
				lo = special + 1
			}
		}
		if lo <= hi {
			out = append(out, lo, hi)
		}
	}
	return out
}

// complement is what is in no range.
func complement(ranges []rune) []rune {
	var out []rune
	next := rune(0)
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] > next {
			out = append(out, next, ranges[i]-1)
		}
		next = ranges[i+1] + 1
	}
	return out
}

// escapesOf writes the characters of a class that JSON escapes as it does so; ""
// where there are none.
func escapesOf(ranges []rune) string {
	in := func(r rune) bool {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return true
			}
		}
		return false
	}
	short := ""
	for i, r := range []rune("\"\b\f\n\r\t\\") {
		if in(r) {
			short += []string{`"`, "b", "f", "n", "r", "t", `\x5C`}[i]
		}
	}
	var forms, numbers []string
	if short != "" {
		forms = append(forms, "["+short+"]")
	}
	for high := rune(0); high < 2; high++ {
		digits := ""
		for low := range rune(16) {
			if r := high<<4 | low; in(r) && !strings.ContainsRune("\b\f\n\r\t", r) {
				digits += strings.ToUpper(strconv.FormatInt(int64(low), 16))
				if low > 9 {
					digits += strconv.FormatInt(int64(low), 16)
				}
			}
		}
		if digits != "" {
			numbers = append(numbers, strconv.Itoa(int(high))+"["+digits+"]")
		}
	}
	switch {
	case all(in, 0, ' '-1):
		forms = append(forms, "u00[01][0-9A-Fa-f]")
	case len(numbers) > 0:
		forms = append(forms, "u00("+strings.Join(numbers, "|")+")")
	}
	switch len(forms) {
	case 0:
		return ""
	case 1:
		return `[\x5C]` + forms[0]
	}
	return `[\x5C](` + strings.Join(forms, "|") + ")"
}

// all reports whether something holds of all characters from one to another.
func all(holds func(rune) bool, from, to rune) bool {
	for r := from; r <= to; r++ {
		if !holds(r) {
			return false
		}
	}
	return true
}

// classText writes ranges as the inside of a class: first what is written as
// itself, then what has a number, with the numbers in escaped, and the hyphen last,
// where no engine takes it for anything else. A number that a digit follows would
// be read as a longer one by XGrammar.
func classText(ranges []rune, escaped string) string {
	var b strings.Builder
	hyphen := false
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for _, special := range []rune("-[]^") {
			if lo > special || special > hi {
				continue
			}
			if special == '-' {
				hyphen = true
			} else {
				escaped += fmt.Sprintf(`\x%02X`, special)
			}
			classRange(&b, lo, special-1)
			lo = special + 1
		}
		classRange(&b, lo, hi)
	}
	b.WriteString(escaped)
	if hyphen {
		b.WriteByte('-')
	}
	return b.String()
}

func classRange(b *strings.Builder, lo, hi rune) {
	if lo > hi {
		return
	}
	b.WriteRune(lo)
	if hi > lo+1 {
		b.WriteByte('-')
	}
	if hi > lo {
		b.WriteRune(hi)
	}
}

// plainRune reports whether a character is written as itself in JSON, and read
// as itself by all engines.
func plainRune(r rune) bool {
	return r >= 0x20 && !strings.ContainsRune(`"\[]`, r) && (r < 0x7f || r >= 0xa0) && utf8.ValidRune(r)
}

func plainRange(lo, hi rune) bool {
	for _, r := range []rune{'"', '\\', 0x7f, 0x9f, 0xd800} {
		if lo <= r && r <= hi {
			return false
		}
	}
	return lo >= ' ' && utf8.ValidRune(lo) && utf8.ValidRune(hi)
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
