package result

import (
	"bytes"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/invisible"
)

// appendClean appends JSON that scan has read without the space between tokens, with
// hidden characters spelled as escapes and no others that JSON does not ask for, and
// with U+FFFD for lone surrogates.
// Parsed again it is the same value, so nothing is lost that JSON can carry
// from one program to another.
func appendClean(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		switch b[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			end := i + literalEnd(b[i:])
			dst = append(dst, '"')
			dst = appendInside(dst, b[i+1:end-1])
			dst = append(dst, '"')
			i = end
		default:
			from := i
			for i < len(b) && b[i] != '"' && b[i] > ' ' {
				i++
			}
			dst = append(dst, b[from:i]...)
		}
	}
	return dst
}

// literalEnd returns the length of the string literal that b begins with.
func literalEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

// appendInside is appendClean for the inside of a string literal.
func appendInside(dst, b []byte) []byte {
	from := 0
	for i := 0; i < len(b); {
		if class[b[i]] == 0 {
			i++
			continue
		}
		size, _, clean := unit(b[i:])
		if !clean {
			dst = append(dst, b[from:i]...)
			if b[i] == '\\' {
				dst = utf8.AppendRune(dst, decoded(b[i:], size))
			} else {
				r, _ := utf8.DecodeRune(b[i:])
				dst = appendEscape(dst, r)
			}
			from = i + size
		}
		i += size
	}
	return append(dst, b[from:]...)
}

// appendEscape appends r as a \u escape, or as two for one above U+FFFF.
func appendEscape(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	if r > 0xffff {
		r -= 0x10000
		dst = appendEscape(dst, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// appendQuoted appends s as a JSON string literal in the form of appendClean.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case invisible.Stray(r):
			dst = appendEscape(dst, r)
		case r == utf8.RuneError:
			dst = utf8.AppendRune(dst, r) // invalid bytes too
		default:
			dst = append(dst, s[i:i+utf8.RuneLen(r)]...)
		}
	}
	return append(dst, '"')
}

// appendClipped is appendQuoted, but takes at most limit characters, quotes
// included, and marks what it cut with an ellipsis.
func appendClipped(dst []byte, s string, limit int) []byte {
	start := len(dst)
	dst = appendQuoted(dst, s)
	if utf8.RuneCount(dst[start:]) <= limit {
		return dst
	}
	inside := string(dst[start+1 : len(dst)-1])
	dst = append(dst[:start], '"')
	width := 3 // quotes and the ellipsis
	for i := 0; i < len(inside); {
		size, w, _ := unit([]byte(inside[i:min(len(inside), i+12)]))
		if width += w; width > limit {
			break
		}
		dst = append(dst, inside[i:i+size]...)
		i += size
	}
	return append(dst, "…\""...)
}

// appendDecoded appends the text of a scanned string literal.
func appendDecoded(dst, literal []byte) []byte {
	b := literal[1 : len(literal)-1]
	for i := 0; i < len(b); {
		from := i
		if n := bytes.IndexByte(b[i:min(len(b), i+32)], '\\'); n >= 0 {
			i += n
		} else if n = bytes.IndexByte(b[i:], '\\'); n >= 0 {
			i += n
		} else {
			return append(dst, b[from:]...)
		}
		dst = append(dst, b[from:i]...)
		if c := short[b[i+1]]; c != 0 {
			dst = append(dst, c)
			i += 2
			continue
		}
		size, _, _ := unit(b[i:])
		dst = utf8.AppendRune(dst, decoded(b[i:], size))
		i += size
	}
	return dst
}

// decoded returns the character that an escape of the given size stands for.
func decoded(b []byte, size int) rune {
	switch size {
	case 12:
		return 0x10000 + (hex4(b)-0xd800)<<10 + (hex4(b[6:]) - 0xdc00)
	case 6:
		if r := hex4(b); r < 0xd800 || r >= 0xe000 {
			return r
		}
		return utf8.RuneError
	}
	return rune(short[b[1]])
}
