package canonical

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// Readable returns a JSON value for a person to read: each character that shows
// nothing, or shows others in another order, is escaped as JSON escapes it. So it
// stays the same value.
func Readable(value json.RawMessage) string { return escaped(string(value), invisible.Blank) }

// Printable returns a JSON document for a terminal, which obeys some characters: those, and
// those that have no place in a text for people, are escaped as JSON escapes them. So it
// stays the same value. A carriage return can stand between values alone, where it becomes
// a line feed.
func Printable(document []byte) string {
	return escaped(strings.ReplaceAll(string(document), "\r", "\n"), invisible.Hidden)
}

// escaped escapes some characters of JSON, but no line feeds.
func escaped(value string, some func(rune) bool) string {
	var b strings.Builder
	for _, r := range value {
		switch {
		case r == '\n' || !some(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Spelled returns a text in which each character that shows nothing is spelled out, as
// <U+200B>.
func Spelled(text string) string {
	var b strings.Builder
	for _, r := range text {
		if invisible.Blank(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
