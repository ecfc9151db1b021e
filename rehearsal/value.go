package rehearsal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// kind says which of JSON's six forms a value has. The zero kind is a value
// that is not there.
type kind byte

const (
	absent kind = iota
	isNull
	isBool
	isNumber
	isString
	isArray
	isObject
)

func (k kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// value is a JSON value that kept its order and the spelling of its numbers:
// a map would lose the first, a float64 the second, and answers quote both.
type value struct {
	kind    kind
	raw     []byte // the text as it came
	text    string // of a string, unescaped
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

// parse reads one JSON text. The error is encoding/json's, with its offset.
func parse(data []byte) (value, error) {
	if !json.Valid(data) {
		var discard any
		return value{}, json.Unmarshal(data, &discard)
	}
	p := reader{data: data}
	return p.value(), nil
}

// get returns the last member of that name, or an absent value.
func (v value) get(name string) value {
	for i := len(v.members) - 1; i >= 0; i-- {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return value{}
}

// given is false for values that are absent or null, which the API treats alike.
func (v value) given() bool { return v.kind > isNull }

func (v value) is(text string) bool { return v.kind == isString && v.text == text }

func (v value) isTrue() bool { return v.kind == isBool && v.raw[0] == 't' }

// integer returns the value of a number written without fraction or exponent.
func (v value) integer() (int, bool) {
	if v.kind != isNumber {
		return 0, false
	}
	n, err := strconv.Atoi(string(v.raw))
	return n, err == nil
}

// reader walks over text that json.Valid accepted, so it checks nothing.
type reader struct {
	data []byte
	at   int
}

func (p *reader) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

func (p *reader) value() value {
	p.space()
	start := p.at
	var v value
	switch p.data[p.at] {
	case '{':
		v.kind = isObject
		for p.enter('}') {
			name := p.string()
			p.space()
			p.at++ // the colon
			v.members = append(v.members, member{name, p.value()})
		}
	case '[':
		v.kind = isArray
		for p.enter(']') {
			v.items = append(v.items, p.value())
		}
	case '"':
		v.kind, v.text = isString, p.string()
	case 't', 'f':
		v.kind = isBool
		p.literal()
	case 'n':
		v.kind = isNull
		p.literal()
	default:
		v.kind = isNumber
		p.literal()
	}
	v.raw = p.data[start:p.at]
	return v
}

// enter steps over an opening bracket or a comma to the next element, or over
// the closing bracket.
func (p *reader) enter(closing byte) bool {
	p.space()
	if p.data[p.at] == closing {
		p.at++
		return false
	}
	p.at++
	p.space()
	if p.data[p.at] == closing {
		p.at++
		return false
	}
	return true
}

func (p *reader) literal() {
	if n := bytes.IndexAny(p.data[p.at:], " \t\r\n,]}"); n >= 0 {
		p.at += n
	} else {
		p.at = len(p.data)
	}
}

func (p *reader) string() string {
	start := p.at
	plain := true
	for p.at++; p.data[p.at] != '"'; p.at++ {
		if p.data[p.at] == '\\' {
			plain = false
			p.at++
		}
	}
	p.at++
	inner := p.data[start+1 : p.at-1]
	if plain && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	// The text is valid, so this cannot fail.
	_ = json.Unmarshal(p.data[start:p.at], &s)
	return s
}

// quote writes a Go string as JSON, leaving < > & and non-ASCII text readable.
func quote(s string) string {
	return string(encode(s))
}

// encode marshals without the escapes meant for HTML, which no model writes.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("rehearsal: encoding its own answer: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
