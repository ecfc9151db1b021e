package canonical

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Readable returns a JSON value for a person to read: each character that shows
// nothing, or shows others in another order, is escaped as JSON escapes it. So it
// stays the same value.
func Readable(value json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(value) {
		switch {
		case r == '\n' || !Blank(r):
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
		if Blank(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Blank reports whether nobody sees a character for what it is: controls, spaces
// that are not the plain one, direction marks, joiners, tags, and what Unicode calls
// letters and marks and shows as nothing.
func Blank(r rune) bool {
	switch {
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef: // variation selectors
		return true
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x2800, r == 0x3164, r == 0xffa0: // fillers
		return true
	}
	return !strconv.IsPrint(r)
}
