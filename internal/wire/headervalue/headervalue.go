// Package headervalue writes texts as values of headers and reads them (MCP 2026-07-28,
// "Streamable HTTP", Value Encoding): what a header cannot carry travels in base64.
package headervalue

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

const prefix, suffix = "=?base64?", "?="

// Encode returns s in the form in which it can stand in a header.
func Encode(s string) string {
	plain := s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, prefix) && strings.HasSuffix(s, suffix))
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] < 0x7f || s[i] == '\t'
	}
	if plain {
		return s
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(s)) + suffix
}

// Decode undoes [Encode]. It reports false for what nobody may send.
func Decode(v string) (string, bool) {
	inner, ok := strings.CutPrefix(v, prefix)
	if !ok || !strings.HasSuffix(inner, suffix) {
		return v, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, suffix))
	return string(b), err == nil && utf8.Valid(b)
}
