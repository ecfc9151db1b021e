package rehearsal

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	numberPattern = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
	pathPattern   = regexp.MustCompile(`^(?:[\w.~-]*[/\\][^\s]*|[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5})$`)
	urlPattern    = regexp.MustCompile(`^[a-zA-Z][\w+.-]*:[^\s]+$`)
	mailPattern   = regexp.MustCompile(`^[^@\s]+@[^@\s]+$`)
	datePattern   = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:T[\d:.Z+-]*)?$`)
	idPattern     = regexp.MustCompile(`^(?:[A-Za-z]*[-_]?\d[\w-]*)$`)
	pairPattern   = regexp.MustCompile(`([\pL_][\pL\d_]*)\s*=\s*`)
)

// guess finds a value for a required property in what is left of the message.
func (f *filler) guess(p property) (string, bool) {
	if p.schema.get("enum").given() {
		return "", false // had it been mentioned, it would have been found
	}
	switch typeOf(p.schema) {
	case "string":
		return f.quoted(f.phrase(p))
	case "integer":
		return f.number(true)
	case "number":
		return f.number(false)
	case "boolean":
		return f.flag()
	case "array":
		return f.array(p)
	case "object":
		return f.nested(p)
	case "":
		if n, ok := f.number(false); ok {
			return n, true
		}
		return f.quoted(f.phrase(p))
	}
	return "", false
}

func (f *filler) quoted(s span) (string, bool) {
	if s.end == 0 {
		return "", false
	}
	f.used = append(f.used, s)
	return quote(f.text[s.start:s.end]), true
}

// numbers lists what is free and stands alone: the 001 of E001 does not.
func (f *filler) numbers() []span {
	var list []span
	for _, m := range numberPattern.FindAllStringIndex(f.text, -1) {
		s := span{m[0], m[1]}
		if f.text[s.start] == '-' && s.start > 0 && f.text[s.start-1] != ' ' {
			s.start++ // a hyphen, or the minus of a difference
		}
		if !f.overlaps(f.used, s.start, s.end) && boundary(f.text, s.start) && boundary(f.text, s.end) && json.Valid([]byte(f.text[s.start:s.end])) {
			list = append(list, s)
		}
	}
	return list
}

func (f *filler) number(whole bool) (string, bool) {
	for _, s := range f.numbers() {
		if text := f.text[s.start:s.end]; !whole || !strings.Contains(text, ".") {
			f.used = append(f.used, s)
			return text, true
		}
	}
	return "", false
}

// counted finds the number for an optional property only where its name
// stands beside it: "limit 10", "5 steps".
func (f *filler) counted(p property) (string, bool) {
	typ := typeOf(p.schema)
	if typ != "integer" && typ != "number" {
		return "", false
	}
	called := nameTerms(p.name)
	isName := func(w word) bool {
		return slices.ContainsFunc(called, func(t term) bool { return t.text == stem(w.text) })
	}
	for _, s := range f.numbers() {
		text := f.text[s.start:s.end]
		if typ == "integer" && strings.Contains(text, ".") {
			continue
		}
		for i, w := range f.words {
			first := w.start >= s.start && w.end <= s.end
			before := first && i > 0 && isName(f.words[i-1])
			after := first && w.end == s.end && i+1 < len(f.words) && isName(f.words[i+1])
			if before || after {
				f.used = append(f.used, s)
				return text, true
			}
		}
	}
	return "", false
}

func (f *filler) flag() (string, bool) {
	for _, answer := range []struct{ said, means string }{
		{"true", "true"}, {"false", "false"}, {"yes", "true"}, {"no", "false"}, {"是", "true"}, {"否", "false"},
	} {
		if f.find(answer.said) >= 0 {
			return answer.means, true
		}
	}
	return "", false
}

// switched sets an optional flag that the message names: "with subordinates"
// for includeSubordinates, "without" for its opposite.
func (f *filler) switched(p property) (string, bool) {
	if typeOf(p.schema) != "boolean" {
		return "", false
	}
	said, at := 0, 0
	called := slices.DeleteFunc(nameTerms(p.name), func(t term) bool { return flagVerbs[t.text] })
	for _, c := range called {
		for _, t := range f.terms {
			if t.text == c.text {
				said, at = said+1, t.start
				break
			}
		}
	}
	if said == 0 || said < len(called) {
		return "", false
	}
	for _, not := range []string{"without ", "no ", "not ", "不", "无"} {
		if before := strings.ToLower(f.text[:at]); strings.HasSuffix(before, not) {
			return "false", true
		}
	}
	return "true", true
}

// flagVerbs are the words in a flag's name that the message need not say.
var flagVerbs = set("include show return enable add list")

// array takes a JSON array, or all numbers, quoted strings, paths or names.
func (f *filler) array(p property) (string, bool) {
	if s, ok := f.literal('['); ok {
		return s, true
	}
	items := settle(f.root, p.schema.get("items"))
	var found []span
	switch typeOf(items) {
	case "number", "integer":
		found = f.numbers()
		if typeOf(items) == "integer" {
			found = slices.DeleteFunc(found, func(s span) bool { return strings.Contains(f.text[s.start:s.end], ".") })
		}
	case "string", "":
		for _, look := range []func() []span{f.quotes, func() []span { return f.formed(p) }, func() []span { return f.fields(pathPattern) }, f.nouns} {
			if found = look(); len(found) > 0 {
				break
			}
		}
		if one := f.phrase(p); len(found) == 0 && one.end > 0 {
			found = []span{one}
		}
	}
	var list []string
	for _, s := range found {
		f.used = append(f.used, s)
		text := f.text[s.start:s.end]
		if typ := typeOf(items); typ == "string" || typ == "" {
			text = quote(text)
		}
		list = append(list, text)
	}
	return "[" + strings.Join(list, ",") + "]", len(list) > 0
}

// formed are the words that look as the name of a list promises of its items: the ids
// of ids.
func (f *filler) formed(p property) []span {
	p.name = strings.TrimSuffix(p.name, "s")
	for _, form := range forms {
		if found := f.fields(form.pattern); form.wanted(p) && len(found) > 0 {
			return found
		}
	}
	return nil
}

// nested takes a JSON object, or fills the properties the schema declares, or
// collects name=value pairs where it declares none.
func (f *filler) nested(p property) (string, bool) {
	if s, ok := f.literal('{'); ok {
		return s, true
	}
	if len(p.schema.get("properties").members) > 0 {
		text, missing := f.object(p.schema, false)
		return text, len(missing) == 0
	}
	var b strings.Builder
	for _, m := range pairPattern.FindAllStringSubmatchIndex(f.text, -1) {
		literal, length := leadingValue(f.text[m[1]:])
		s := span{m[0], m[1] + length}
		if f.overlaps(f.used, s.start, s.end) || literal == "" {
			continue
		}
		f.used = append(f.used, s)
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		v, _ := coerce(value{}, literal)
		b.WriteString(quote(f.text[m[2]:m[3]]) + ":" + v)
	}
	return "{" + b.String() + "}", b.Len() > 0
}

// literal takes the first JSON value in the message that opens so.
func (f *filler) literal(opening byte) (string, bool) {
	for i := range len(f.text) {
		if f.text[i] != opening || f.overlaps(f.used, i, i+1) {
			continue
		}
		if n := jsonLength(f.text[i:]); n > 0 {
			f.used = append(f.used, span{i, i + n})
			return f.text[i : i+n], true
		}
	}
	return "", false
}

// form is what the words of a property's name or format promise of its value.
type form struct {
	words   string
	pattern *regexp.Regexp
}

var forms = []form{
	{"url uri link", urlPattern}, {"mail", mailPattern}, {"date day", datePattern},
	{"path file dir folder csv uri source destination", pathPattern}, {"id number code key", idPattern},
}

func (o form) wanted(p property) bool {
	for _, t := range nameTerms(p.name + " " + p.schema.get("format").text) {
		for w := range strings.FieldsSeq(o.words) {
			if t.text == w || len(w) > 3 && strings.Contains(t.text, stem(w)) {
				return true
			}
		}
	}
	return false
}

func pathLike(p property) bool {
	return typeOf(p.schema) != "object" && slices.ContainsFunc(forms, func(o form) bool { return o.pattern == pathPattern && o.wanted(p) })
}

// phrase finds the text for a string property: a quoted one, one that looks
// as the property's name or format says, what follows the name or a
// preposition, a name, or what is left.
func (f *filler) phrase(p property) span {
	name := strings.ToLower(p.name)
	for _, form := range forms {
		if found := f.fields(form.pattern); form.wanted(p) && len(found) > 0 {
			return found[0]
		}
	}
	if q := f.quotes(); len(q) > 0 {
		return q[0]
	}
	rest := f.leftover()
	if p.loose && len(rest) > 0 {
		return span{rest[0].start, rest[len(rest)-1].end}
	}
	if s := f.afterName(p); s.end > 0 {
		return s
	}
	if s := f.afterPreposition(name); s.end > 0 {
		return s
	}
	if n := f.nouns(); len(n) > 0 {
		return n[0]
	}
	if len(rest) > 0 {
		return rest[0]
	}
	return span{}
}

// fields are the words between spaces that match, without the punctuation
// around them.
func (f *filler) fields(pattern *regexp.Regexp) []span {
	var list []span
	at := 0
	for _, field := range strings.FieldsFunc(f.text, unicode.IsSpace) {
		at += strings.Index(f.text[at:], field)
		s := span{at, at + len(field)}
		at = s.end
		text := strings.TrimLeft(field, `("'<[`)
		s.start = s.end - len(text)
		text = strings.TrimRight(text, `.,;:?!)"'>]。，；：？！`)
		s.end = s.start + len(text)
		if pattern.MatchString(text) && !f.overlaps(f.used, s.start, s.end) {
			list = append(list, s)
		}
	}
	return list
}

type quotation struct {
	text       string
	start, end int // with the quotation marks
}

var closing = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '“': '”', '‘': '’', '「': '」', '『': '』', '《': '》', '«': '»'}

// quotedAt reads the quoted text that begins at a place. An apostrophe within
// a word begins none.
func quotedAt(s string, at int) (quotation, bool) {
	open, size := utf8.DecodeRuneInString(s[at:])
	end, ok := closing[open]
	if !ok || open == '\'' && !boundaryBefore(s, at) {
		return quotation{}, false
	}
	for i, c := range s[at+size:] {
		stop := at + size + i + utf8.RuneLen(c)
		if c == end && i > 0 && (c != '\'' || boundary(s, stop) && (stop == len(s) || !unicode.IsLetter(rune(s[stop])))) {
			return quotation{s[at+size : at+size+i], at, stop}, true
		}
	}
	return quotation{}, false
}

func boundaryBefore(s string, at int) bool {
	c, _ := utf8.DecodeLastRuneInString(s[:at])
	return at == 0 || !unicode.IsLetter(c) && !unicode.IsDigit(c) || isCJK(c)
}

// quotes are the free quoted texts, without their marks.
func (f *filler) quotes() []span {
	var list []span
	for at := 0; at < len(f.text); at++ {
		if !utf8.RuneStart(f.text[at]) {
			continue
		}
		q, ok := quotedAt(f.text, at)
		if !ok {
			continue
		}
		_, mark := utf8.DecodeRuneInString(f.text[q.start:])
		inner := span{q.start + mark, q.start + mark + len(q.text)}
		if !f.overlaps(f.used, inner.start, inner.end) {
			list = append(list, inner)
		}
		at = q.end - 1
	}
	return list
}

// coerce writes a piece of text as the JSON that the schema wants.
func coerce(schema value, text string) (string, bool) {
	for _, e := range schema.get("enum").items {
		if strings.EqualFold(e.text, text) && e.kind == isString || string(e.raw) == text {
			return string(e.raw), true
		}
	}
	if schema.get("enum").given() || text == "" {
		return "", false
	}
	v, err := parse([]byte(text))
	switch typeOf(schema) {
	case "string":
		return quote(text), true
	case "number":
		return text, err == nil && v.kind == isNumber
	case "integer":
		_, whole := v.integer()
		return text, err == nil && whole
	case "boolean":
		return text, err == nil && v.kind == isBool
	case "object":
		return text, err == nil && v.kind == isObject
	case "array":
		return text, err == nil && v.kind == isArray
	case "null":
		return "null", true
	}
	if err == nil {
		return text, true
	}
	return quote(text), true
}
