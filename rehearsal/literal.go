package rehearsal

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
