package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// String returns the text of a JSON string, or "" and false for anything else.
func String(b []byte) (string, bool) {
	if Kind(b) != '"' {
		return "", false
	}
	s, err := Unquote(bytes.TrimSpace(b))
	return s, err == nil
}

// Text is [String] without a string: what is returned is a part of b, or of room where b has
// escapes, which grows as it needs.
func Text(b []byte, room *[]byte) ([]byte, bool) {
	if Kind(b) != '"' {
		return nil, false
	}
	b = bytes.TrimSpace(b)
	if n := len(b); n >= 2 && b[n-1] == '"' && bytes.IndexByte(b, '\\') < 0 {
		return b[1 : n-1], true
	}
	text, err := jsontext.AppendUnquote((*room)[:0], b)
	if *room = text; err != nil {
		return nil, false
	}
	return text, true
}

// IsString reports whether b is one valid JSON string literal and nothing else.
func IsString(b []byte) bool {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return false
	}
	for i := 1; i < len(b)-1; i++ {
		switch c := b[i]; {
		case c < ' ' || c == '"':
			return false
		case c == '\\':
			i++
			if i >= len(b)-1 {
				return false
			}
			if b[i] == 'u' {
				for range 4 {
					if i++; i >= len(b)-1 || !isHex(b[i]) {
						return false
					}
				}
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), b[i]) < 0 {
				return false
			}
		}
	}
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// Unquote decodes a JSON string literal.
func Unquote(b []byte) (string, error) {
	if s, ok := known.text(b); ok {
		return s, nil
	}
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' && bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : n-1]), nil
	}
	s, err := jsontext.AppendUnquote(nil, b)
	if err != nil {
		return "", fmt.Errorf("decoding a JSON string: %w", err)
	}
	return string(s), nil
}

// Quote returns s as a JSON string literal, with no more escapes than JSON asks
// for. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) json.RawMessage { return AppendQuote(nil, s) }

// Literal is [Quote] for a literal that nobody will change: those of texts that occur most
// are shared.
func Literal(s string) json.RawMessage {
	if l := known.literal(s); l != nil {
		return l
	}
	return Quote(s)
}

// AppendQuote appends s to dst as a JSON string literal.
func AppendQuote(dst []byte, s string) []byte {
	if spellsItself(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	out, _ := jsontext.AppendQuote(dst, s) // invalid UTF-8 is replaced and reported
	return out
}

// spellsItself reports whether a text consists of ASCII characters that need no escapes.
func spellsItself(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if special(x)|x&highBits != 0 {
			return false
		}
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// JoinStrings returns the literal of texts with something between them, of their literals:
// as it is where there is one, and that of no text where there is none. What is no string
// counts as no text.
func JoinStrings(between string, literals []json.RawMessage) json.RawMessage {
	if len(literals) == 1 && Kind(literals[0]) == '"' {
		return literals[0]
	}
	if len(literals) == 0 {
		return Literal("")
	}
	texts := make([]string, len(literals))
	for i, literal := range literals {
		texts[i], _ = String(literal)
	}
	return Quote(strings.Join(texts, between))
}
