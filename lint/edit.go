package lint

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// A span is where a value stands in a JSON text.
type span struct{ begin, end int }

// spanOf returns where the value is that a JSON pointer leads to; the zero span where
// there is none.
func spanOf(text []byte, pointer string) span {
	offset, ok := find(text, jsontext.Pointer(pointer))
	if !ok {
		return span{}
	}
	d := jsontext.NewDecoder(bytes.NewReader(text[offset:]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadValue(); err != nil { // a member's name, as find says
		return span{}
	}
	begin := offset + int(d.InputOffset())
	begin += leading(text[begin:], " \t\r\n:")
	d = jsontext.NewDecoder(bytes.NewReader(text[begin:]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value, err := d.ReadValue()
	if err != nil {
		return span{}
	}
	return span{begin, begin + len(value)}
}

// leading is how many bytes of some kinds a text begins with.
func leading(text []byte, kinds string) int {
	return len(text) - len(bytes.TrimLeft(text, kinds))
}

// kind is the first byte of the value, 0 where there is none.
func (s span) kind(text []byte) byte {
	if s.end == 0 {
		return 0
	}
	return text[s.begin]
}

// bare reports whether the value is an object or an array without members.
func (s span) bare(text []byte) bool {
	return len(bytes.TrimSpace(text[s.begin+1:s.end-1])) == 0
}

// replace puts another value in the place of this one.
func (s span) replace(text []byte, value string) []byte {
	return slices.Concat(text[:s.begin], []byte(value), text[s.end:])
}

// insert puts a member in front of the others of an object, spaced as the first of them.
func insert(text []byte, object span, member string) []byte {
	object.begin += leading(text[object.begin:], " \t\r\n")
	behind := object.begin + 1
	if rest := text[behind:object.end]; len(rest) > 0 && bytes.TrimSpace(rest)[0] == '}' {
		return slices.Concat(text[:behind], []byte(member), text[behind:])
	}
	gap := string(text[behind : behind+leading(text[behind:object.end], " \t\r\n")])
	apart := gap
	if !strings.Contains(gap, "\n") {
		apart = " "
	}
	return slices.Concat(text[:behind], []byte(gap+member+","+apart), text[behind+len(gap):])
}

// withoutHidden returns a JSON text without the hidden characters in its strings, be
// they written as they are or escaped.
func withoutHidden(text []byte) []byte {
	var out []byte
	for len(text) > 0 {
		begin := bytes.IndexByte(text, '"')
		if begin < 0 {
			break
		}
		end := stringEnd(text, begin+1)
		out = append(append(out, text[:begin+1]...), shown(text[begin+1:end])...)
		text = text[end:]
		if len(text) > 0 { // the quote behind it
			out, text = append(out, '"'), text[1:]
		}
	}
	return append(out, text...)
}

// stringEnd returns the offset of the quote that ends a string, or of the end.
func stringEnd(text []byte, at int) int {
	for at < len(text) && text[at] != '"' {
		if text[at] == '\\' {
			at++
		}
		at++
	}
	return min(at, len(text))
}

// shown returns the inside of a JSON string without what is hidden in it.
func shown(inside []byte) []byte {
	var text strings.Builder
	var from []int // of each byte of text: where its character begins in inside
	for at := 0; at < len(inside); {
		r, n := character(inside[at:])
		size := text.Len()
		text.WriteRune(r)
		for range text.Len() - size {
			from = append(from, at)
		}
		at += n
	}
	from = append(from, len(inside))
	var out []byte
	kept := 0
	for at, r := range invisible.Find(text.String()) {
		out = append(out, inside[kept:from[at]]...)
		kept = from[at+utf8.RuneLen(r)]
	}
	return append(out, inside[kept:]...)
}

// character returns the first character of the inside of a JSON string, and how many
// bytes it is written with.
func character(inside []byte) (rune, int) {
	if inside[0] != '\\' || len(inside) < 2 {
		return utf8.DecodeRune(inside)
	}
	unit := func(at int) (rune, bool) {
		if len(inside) < at+6 || inside[at] != '\\' || inside[at+1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(inside[at+2:at+6]), 16, 16)
		return rune(n), err == nil
	}
	high, ok := unit(0)
	if !ok {
		if at := strings.IndexByte("bfnrt", inside[1]); at >= 0 {
			return rune("\b\f\n\r\t"[at]), 2
		}
		return rune(inside[1]), 2
	}
	if low, ok := unit(6); ok && utf16.IsSurrogate(high) {
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, 12
		}
	}
	return high, 6
}
