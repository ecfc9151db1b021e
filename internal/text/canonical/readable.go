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
func Readable(value json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(value) {
		switch {
		case r == '\n' || !invisible.Blank(r):
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
