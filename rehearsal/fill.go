package rehearsal

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// span is a stretch of bytes in the message.
type span struct{ start, end int }

// filler finds arguments in a message. What one argument took, the next does
// not get.
type filler struct {
	text    string
	words   []word
	terms   []term
	whole   []span // paths, addresses, dates: more than their words
	root    value  // the schema that $refs point into
	used    []span // taken by arguments
	covered []span // the words that chose the tool
}

// fill writes the arguments of a call as a JSON object in the order of the
// schema's properties, and names the required ones that the message does not
// hold. Forced, it makes those up, as small as the schema allows.
func fill(text string, t tool, forced bool) (arguments string, missing []string) {
	f := newFiller(text, t)
	f.cover(t)
	return f.object(t.parameters, forced)
}

func newFiller(text string, t tool) *filler {
	f := &filler{text: text, words: words(text), terms: terms(text), root: t.parameters}
	f.whole = f.fields(wholePattern)
	return f
}

// cover marks the words of the message that stand in the tool's name or
// description: they said which tool, so they are no arguments. What is a name
// on either side, or only an example in the description, stays free.
func (f *filler) cover(t tool) {
	known := make(map[string]bool)
	for _, w := range nameTerms(t.name) {
		known[w.text] = true
	}
	said := newFiller(subject(head(t.description)), tool{})
	for _, w := range said.terms {
		if !said.properNoun(w.start) && !strings.ContainsAny(w.text, "0123456789") {
			known[w.text] = true
		}
	}
	for _, w := range f.terms {
		if known[w.text] && !f.properNoun(w.start) {
			f.covered = append(f.covered, span{w.start, w.end})
		}
	}
}

// subject is a description without what it quotes and gives as examples.
func subject(description string) string {
	marks := exampleMark.FindAllStringIndex(description, -1)
	var b strings.Builder
	for i := 0; i < len(description); {
		if q, ok := quotedAt(description, i); ok {
			b.WriteByte(' ')
			i = q.end
			continue
		}
		for len(marks) > 0 && marks[0][0] < i {
			marks = marks[1:]
		}
		if len(marks) > 0 && marks[0][0] == i {
			i = marks[0][1]
			end := strings.IndexAny(description[i:], ".;)。；）")
			if end < 0 {
				break
			}
			i += end
			continue
		}
		_, size := utf8.DecodeRuneInString(description[i:])
		b.WriteString(description[i : i+size])
		i += size
	}
	return b.String()
}

// exampleMark leads to examples in a description.
var exampleMark = regexp.MustCompile(`(?i)e\.g\.,?|\bexamples?:|for example|such as|\blike\b|例如|比如|示例|例：|如`)

type property struct {
	name     string
	schema   value // settled
	required bool
	loose    bool // takes whatever is left of the message
}

// object fills the properties of an object schema: first what the message
// names outright, then what is required, the properties that take free text
// last.
func (f *filler) object(schema value, forced bool) (text string, missing []string) {
	list := f.properties(schema)
	found := make(map[string]string)
	pass := func(wanted func(property) bool, look func(property) (string, bool)) {
		for _, p := range list {
			if found[p.name] == "" && wanted(p) {
				if v, ok := look(p); ok {
					found[p.name] = v
				}
			}
		}
	}
	pass(func(property) bool { return true }, f.assigned)
	pass(func(property) bool { return true }, f.mentioned)
	pass(func(p property) bool { return !p.required }, f.counted)
	pass(func(p property) bool { return !p.required }, f.switched)
	literal := func(p property) bool { typ := typeOf(p.schema); return typ == "object" || typ == "array" }
	pass(func(p property) bool { return p.required && literal(p) && strings.ContainsAny(f.text, "{[") }, f.guess)
	pass(func(p property) bool { return p.required && !p.loose }, f.guess)
	pass(func(p property) bool { return p.required && p.loose }, f.guess)
	pass(func(p property) bool { return p.required }, f.standard)
	var b strings.Builder
	for _, p := range list {
		v := found[p.name]
		if v == "" && p.required && forced {
			v = minimal(f.root, p.schema)
		}
		if v == "" {
			if p.required {
				missing = append(missing, p.name)
			}
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(p.name) + ":" + v)
	}
	return "{" + b.String() + "}", missing
}

func (f *filler) properties(schema value) []property {
	var list []property
	for _, m := range schema.get("properties").members {
		if slices.ContainsFunc(list, func(p property) bool { return p.name == m.name }) {
			continue
		}
		p := property{name: m.name, schema: settle(f.root, m.value)}
		p.required = slices.ContainsFunc(schema.get("required").items, func(v value) bool { return v.is(m.name) })
		for _, t := range nameTerms(m.name) {
			p.loose = p.loose || looseNames[t.text]
		}
		list = append(list, p)
	}
	return list
}

// looseNames are words in the names of properties that take free text.
var looseNames = set(`query text message prompt question topic thought content search keyword input body sentence note description`)

// standard takes the value that the schema itself gives.
func (f *filler) standard(p property) (string, bool) {
	for _, word := range []string{"const", "default"} {
		if v := p.schema.get(word); v.kind != absent {
			return string(v.raw), true
		}
	}
	return "", false
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
		if !boundary(f.text, start) || rest == "" || strings.HasPrefix(rest, "://") {
			continue
		}
		after, found := strings.CutPrefix(rest, "=")
		if !found {
			if after, found = strings.CutPrefix(rest, ":"); !found {
				after, found = strings.CutPrefix(rest, "：")
			}
		}
		if !found {
			continue
		}
		after = strings.TrimLeft(after, " ")
		literal, length := leadingValue(after)
		if v, ok := coerce(p.schema, literal); ok {
			begin := len(f.text) - len(after)
			f.used = append(f.used, span{start, begin + length})
			return v, true
		}
	}
}

// leadingValue cuts the value off the front of what follows an equals sign: a
// quoted string, JSON, or all up to a space, a comma or a semicolon.
func leadingValue(s string) (literal string, length int) {
	if q, ok := quotedAt(s, 0); ok {
		return q.text, q.end
	}
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if n := jsonLength(s); n > 0 {
			return s[:n], n
		}
	}
	n := strings.IndexAny(s, " \t\n,;，；")
	if n < 0 {
		n = len(s)
	}
	literal = strings.TrimRight(s[:n], ".?!。？！)")
	return literal, len(literal)
}

// jsonLength returns the length of the JSON value that the text begins with.
func jsonLength(s string) int {
	var raw json.RawMessage
	dec := json.NewDecoder(strings.NewReader(s))
	if dec.Decode(&raw) != nil {
		return 0
	}
	return int(dec.InputOffset())
}

// mentioned finds one of the values that the schema allows or gives as
// examples, and flags that are named with yes or no.
func (f *filler) mentioned(p property) (string, bool) {
	if typeOf(p.schema) == "array" {
		var list []string
		for _, e := range settle(f.root, p.schema.get("items")).get("enum").items {
			if f.take(e.text, p.required) {
				list = append(list, string(e.raw))
			}
		}
		return "[" + strings.Join(list, ",") + "]", len(list) > 0
	}
	for _, e := range p.schema.get("enum").items {
		text := e.text
		if e.kind == isNumber {
			text = string(e.raw)
		}
		if f.take(text, p.required) {
			return string(e.raw), true
		}
	}
	if typ := typeOf(p.schema); typ != "string" && typ != "" || p.schema.get("enum").given() {
		return "", false
	}
	for _, e := range examples(p.schema) {
		if at := f.find(e); at >= 0 && !f.overlaps(f.covered, at, at+len(e)) && !stopWords[strings.ToLower(e)] {
			f.used = append(f.used, span{at, at + len(e)})
			return quote(f.text[at : at+len(e)]), true
		}
	}
	return "", false
}

// take finds an allowed value in the message and uses it up. Words like "all"
// count only where a value is required.
func (f *filler) take(text string, required bool) bool {
	if text == "" || !required && stopWords[strings.ToLower(text)] {
		return false
	}
	at := f.find(text)
	if at < 0 {
		return false
	}
	f.used = append(f.used, span{at, at + len(text)})
	return true
}

// find looks for a whole word or phrase that no argument has taken.
func (f *filler) find(phrase string) int {
	for from := 0; ; {
		at := indexFold(f.text[from:], phrase)
		if at < 0 {
			return -1
		}
		at += from
		if boundary(f.text, at) && boundary(f.text, at+len(phrase)) && !f.overlaps(f.used, at, at+len(phrase)) {
			return at
		}
		from = at + 1
	}
}

func (f *filler) overlaps(list []span, start, end int) bool {
	return slices.ContainsFunc(list, func(s span) bool { return s.start < end && start < s.end })
}

// indexFold is strings.Index that takes ASCII letters in either case. Other
// letters must agree, so that lengths do.
func indexFold(s, sub string) int {
	for i := 0; i+len(sub) <= len(s); i++ {
		if sub != "" && strings.EqualFold(s[i:i+len(sub)], sub) {
			return i
		}
	}
	return -1
}

// boundary is true between characters that are not of one word. Chinese has
// no spaces, so there every place is one.
func boundary(s string, at int) bool {
	if at <= 0 || at >= len(s) {
		return true
	}
	wordByte := func(b byte) bool {
		return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	return !wordByte(s[at-1]) || !wordByte(s[at])
}

// examples are the values that a schema or its description gives: its
// examples, what the description quotes, and what follows "e.g.".
func examples(schema value) []string {
	var list []string
	for _, e := range schema.get("examples").items {
		list = append(list, e.text)
	}
	description := head(schema.get("description").text)
	for i := range description {
		if q, ok := quotedAt(description, i); ok {
			list = append(list, q.text)
		}
	}
	if at := exampleMark.FindStringIndex(description); at != nil {
		after := description[at[1]:]
		if end := strings.IndexAny(after, ").;。；）"); end >= 0 {
			after = after[:end]
		}
		for e := range strings.SplitSeq(separators.Replace(after), ",") {
			list = append(list, strings.Trim(e, "'\"‘’“” "))
		}
	}
	return slices.DeleteFunc(list, func(e string) bool { return len(e) < 2 })
}

// separators stand between the examples in a description.
var separators = strings.NewReplacer("、", ",", "，", ",", "/", ",", " or ", ",", " and ", ",", "或", ",", "和", ",")
