package result

import (
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

const (
	isQuote   = 1 + iota
	isControl // below space: not allowed in a string
	isOther   // needs a closer look: unit
)

// class sorts the bytes in strings: 0 is ASCII that stands for itself.
var class = func() (t [256]byte) {
	for c := range 256 {
		switch {
		case c == '"':
			t[c] = isQuote
		case c < ' ':
			t[c] = isControl
		case c == '\\', c >= 0x7f:
			t[c] = isOther
		}
	}
	return t
}()

// short maps the letter of each escape of two characters to what it stands for.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unit looks at the one decoded character that b, the inside of a string
// literal, begins with: its size in bytes, and its width in characters as
// appendClean writes it. clean reports that it is written as it stands. A size
// of 0 means a broken escape.
func unit(b []byte) (size, width int, clean bool) {
	if b[0] == '\\' {
		return escape(b)
	}
	if b[0] < utf8.RuneSelf {
		if b[0] == 0x7f {
			return 1, 6, false
		}
		return 1, 1, true
	}
	r, size := utf8.DecodeRune(b)
	switch {
	case !invisible.Stray(r):
		return size, 1, true
	case r > 0xffff:
		return size, 12, false
	default:
		return size, 6, false
	}
}

// escape is unit for what begins with a backslash.
func escape(b []byte) (size, width int, clean bool) {
	if len(b) < 2 {
		return 0, 0, false
	}
	if b[1] == '/' {
		return 2, 1, false
	}
	if short[b[1]] != 0 {
		return 2, 2, true
	}
	r := hex4(b)
	if r < 0 {
		return 0, 0, false
	}
	size = 6
	if r >= 0xd800 && r < 0xdc00 {
		if low := hex4(b[6:]); low >= 0xdc00 && low < 0xe000 {
			size = 12
		}
	}
	if needless(decoded(b, size)) {
		return size, 1, false
	}
	return size, size, true
}

// needless reports whether a character is readable without the escape that a server
// wrote. Escaped it costs a model several times as much.
func needless(r rune) bool {
	return r >= ' ' && r != '"' && r != '\\' && !invisible.Stray(r)
}

// hex4 returns the number of a \uXXXX escape that b begins with, or -1.
func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
