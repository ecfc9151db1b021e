package rehearsal

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a stretch of bytes in the message.
type span struct{ start, end int }

// A filler finds arguments in a message. What one argument took, the next does not get.
type filler struct {
	text string
	root value  // the schema that $refs point into
	used []span // taken by arguments, or by the words that chose the tool
	last int    // where the last of those words ends
}

// A property of a tool's arguments.
type property struct {
	name     string
	schema   value // settled
	required bool
}

// fill writes the arguments of a call as a JSON object in the order of the
// schema's properties, and names the required ones that the message does not
// hold. Forced, it makes those up, as small as the schema allows.
func fill(text string, t tool, forced bool) (arguments string, missing []string) {
	f := &filler{text: text, root: t.parameters}
	list, found := f.properties(t.parameters), map[string]string{}
	pass := func(look func(property) (string, bool)) {
		for _, p := range list {
			if found[p.name] == "" {
				if v, ok := look(p); ok {
					found[p.name] = v
				}
			}
		}
	}
	pass(f.assigned)
	pass(f.mentioned)
	f.cover(t)
	pass(f.guess)
	pass(f.standard)
	var b strings.Builder
	for _, p := range list {
		v := found[p.name]
		if v == "" && p.required && forced {
			v = minimal(f.root, p.schema)
		}
		switch {
		case v == "" && p.required:
			missing = append(missing, p.name)
		case v != "":
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(p.name) + ":" + v)
		}
	}
	return "{" + b.String() + "}", missing
}

// properties are those of a schema, each name once.
func (f *filler) properties(schema value) (list []property) {
	for _, m := range schema.get("properties").members {
		if slices.ContainsFunc(list, func(p property) bool { return p.name == m.name }) {
			continue
		}
		required := slices.ContainsFunc(schema.get("required").items, func(v value) bool { return v.is(m.name) })
		list = append(list, property{m.name, settle(f.root, m.value), required})
	}
	return list
}

// cover takes the words of the message that stand in the tool's name or description: they
// said which tool, so they are no arguments. A name, with a capital letter, stays free, and
// so do numbers and what is more than a word.
func (f *filler) cover(t tool) {
	known := map[string]bool{}
	for _, w := range append(nameTerms(t.name), terms(head(t.description))...) {
		known[w.text] = true
	}
	var said []span // pairs of characters overlap, so none is taken before all are seen
	shaped := shapedPattern.FindAllStringIndex(f.text, -1)
	for _, w := range terms(f.text) {
		part := slices.ContainsFunc(shaped, func(m []int) bool { return m[0] <= w.start && w.end <= m[1] })
		if known[w.text] && !part && f.free(w.start, w.end) && !f.capital(w.start) {
			f.last = max(f.last, w.end)
			said = append(said, span{w.start, w.end})
		}
	}
	f.used = append(f.used, said...)
}

// assigned finds name=value and name: value.
func (f *filler) assigned(p property) (string, bool) {
	for from := 0; ; {
		at := indexFold(f.text[from:], p.name)
		if at < 0 {
			return "", false
		}
		start := from + at
		from = start + len(p.name)
		rest := strings.TrimLeft(f.text[from:], " \"'`")
		if !boundary(f.text, start) || rest == "" || !strings.ContainsAny(rest[:1], "=:") || strings.HasPrefix(rest, "://") {
			continue
		}
		after := strings.TrimLeft(rest[1:], " ")
		literal, length := leadingValue(after)
		if v, ok := coerce(p.schema, literal); ok {
			begin := len(f.text) - len(after)
			f.used = append(f.used, span{start, begin + length})
			return v, true
		}
	}
}

// mentioned finds one of the values that the schema allows.
func (f *filler) mentioned(p property) (string, bool) {
	for _, e := range p.schema.get("enum").items {
		if s, ok := f.find(e.text); ok && !stopWords[strings.ToLower(e.text)] {
			f.used = append(f.used, s)
			return string(e.raw), true
		}
	}
	return "", false
}

// find looks for a whole word or phrase that nothing has taken.
func (f *filler) find(phrase string) (span, bool) {
	for from := 0; phrase != ""; {
		at := indexFold(f.text[from:], phrase)
		if at < 0 {
			break
		}
		s := span{from + at, from + at + len(phrase)}
		if boundary(f.text, s.start) && boundary(f.text, s.end) && f.free(s.start, s.end) {
			return s, true
		}
		from = s.start + 1
	}
	return span{}, false
}

// guess finds a value for a required property in what is left of the message.
func (f *filler) guess(p property) (string, bool) {
	if !p.required || p.schema.get("enum").given() {
		return "", false
	}
	if typeOf(p.schema) == "array" {
		if s, ok := f.literal(); ok {
			return f.take(p.schema, s)
		}
		return f.list(property{strings.TrimSuffix(p.name, "s"), settle(f.root, p.schema.get("items")), true})
	}
	for _, look := range f.looks(p) {
		if s, ok := look(); ok {
			return f.take(p.schema, s)
		}
	}
	return "", false
}

// formed are words in the names of properties whose values are more than words.
var formed = regexp.MustCompile(`(?i)path|file|dir|folder|ur[il]|mail|date|day|id$|source|dest|^to$`)

// looks are where the value of a property may be, the likeliest first.
func (f *filler) looks(p property) []func() (span, bool) {
	switch typeOf(p.schema) {
	case "integer", "number":
		return []func() (span, bool){f.number}
	case "object":
		return []func() (span, bool){f.literal}
	case "boolean":
		return nil
	}
	looks := []func() (span, bool){f.quoted, f.shaped, f.named, f.chinese, f.rest}
	if formed.MatchString(p.name) {
		looks[0], looks[1] = f.shaped, f.quoted
	}
	return looks
}

// take writes a stretch of the message as a value, and uses it up.
func (f *filler) take(schema value, s span) (string, bool) {
	v, ok := coerce(schema, f.text[s.start:s.end])
	if ok {
		f.used = append(f.used, s)
	}
	return v, ok
}

// list is all that the first look finds that finds anything.
func (f *filler) list(item property) (string, bool) {
	for _, look := range f.looks(item) {
		var items []string
		for s, ok := look(); ok && len(items) < maxItems; s, ok = look() {
			v, ok := f.take(item.schema, s)
			if !ok {
				break
			}
			items = append(items, v)
		}
		if len(items) > 0 {
			return "[" + strings.Join(items, ",") + "]", true
		}
	}
	return "", false
}

// maxItems is how many items of a list are looked for.
const maxItems = 16

// standard takes the value that the schema itself gives.
func (f *filler) standard(p property) (string, bool) {
	for _, word := range []string{"const", "default"} {
		if v := p.schema.get(word); p.required && v.kind != absent {
			return string(v.raw), true
		}
	}
	return "", false
}

var (
	numberPattern = regexp.MustCompile(`-?\d+(?:\.\d+)?`)
	shapedPattern = regexp.MustCompile(`[\w.~@:+-]*(?:[/\\@]|\d|\.\w)[\w.~@:/\\?=&%+-]*`)
)

// number is the next that stands alone: the 001 of E001 does not.
func (f *filler) number() (span, bool) {
	for _, m := range numberPattern.FindAllStringIndex(f.text, -1) {
		if f.free(m[0], m[1]) && boundary(f.text, m[0]) && boundary(f.text, m[1]) && json.Valid([]byte(f.text[m[0]:m[1]])) {
			return span{m[0], m[1]}, true
		}
	}
	return span{}, false
}

// literal is the first JSON object or array.
func (f *filler) literal() (span, bool) {
	at := strings.IndexAny(f.text, "{[")
	if at < 0 || !f.free(at, at+1) {
		return span{}, false
	}
	n := jsonLength(f.text[at:])
	return span{at, at + n}, n > 0
}

// quoted is the next text in quotation marks, without them.
func (f *filler) quoted() (span, bool) {
	for at := 0; at < len(f.text); at++ {
		if !utf8.RuneStart(f.text[at]) {
			continue
		}
		if q, ok := quotedAt(f.text, at); ok {
			_, mark := utf8.DecodeRuneInString(f.text[at:])
			if s := (span{at + mark, at + mark + len(q.text)}); f.free(s.start, s.end) {
				return s, true
			}
			at = q.end - 1
		}
	}
	return span{}, false
}

// shaped is the next that is more than a word: a path, an address, an id, a date.
func (f *filler) shaped() (span, bool) {
	for _, m := range shapedPattern.FindAllStringIndex(f.text, -1) {
		text := strings.TrimRight(f.text[m[0]:m[1]], ".:?")
		if text != "" && f.free(m[0], m[0]+len(text)) {
			return span{m[0], m[0] + len(text)}, true
		}
	}
	return span{}, false
}

// named is the next name: words with capital letters side by side, of which the first does
// not begin a sentence.
func (f *filler) named() (span, bool) {
	list := terms(f.text)
	for i, w := range list {
		before := strings.TrimRight(f.text[:w.start], " ")
		if !f.capital(w.start) || !f.free(w.start, w.end) || before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:\n") {
			continue
		}
		s := span{w.start, w.end}
		for _, next := range list[i+1:] {
			if f.text[s.end:next.start] != " " || !f.capital(next.start) {
				break
			}
			s.end = next.end
		}
		return s, true
	}
	return span{}, false
}

// chinese is the first stretch of Chinese, Japanese or Korean that is not taken, without
// the phrases that say nothing.
func (f *filler) chinese() (span, bool) {
	masked := []byte(f.text)
	blank := func(s span) { copy(masked[s.start:s.end], strings.Repeat(" ", s.end-s.start)) }
	for _, stop := range stopPhrases {
		for at := strings.Index(string(masked), stop); at >= 0; at = strings.Index(string(masked), stop) {
			blank(span{at, at + len(stop)})
		}
	}
	for _, s := range f.used {
		blank(s)
	}
	start := strings.IndexFunc(string(masked), isCJK)
	if start < 0 {
		return span{}, false
	}
	length := strings.IndexFunc(string(masked[start:]), func(c rune) bool { return !isCJK(c) })
	if length < 0 {
		length = len(masked) - start
	}
	return span{start, start + length}, true
}

// rest is what stands behind the words that chose the tool, or the first word before.
func (f *filler) rest() (span, bool) {
	list := slices.DeleteFunc(terms(f.text), func(w term) bool { return !f.free(w.start, w.end) })
	if len(list) == 0 {
		return span{}, false
	}
	behind := slices.IndexFunc(list, func(w term) bool { return w.start >= f.last })
	if behind < 0 {
		return span{list[0].start, list[0].end}, true
	}
	s := span{list[behind].start, list[len(list)-1].end}
	return s, f.free(s.start, s.end)
}

// capital is true for a word that begins with a capital letter.
func (f *filler) capital(at int) bool {
	c, _ := utf8.DecodeRuneInString(f.text[at:])
	return unicode.IsUpper(c)
}

// free is true for what nothing has taken.
func (f *filler) free(start, end int) bool {
	return !slices.ContainsFunc(f.used, func(s span) bool { return s.start < end && start < s.end })
}
