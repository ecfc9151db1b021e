// Package base64text reads base64 as servers write it: line breaks, the URL alphabet and missing
// padding are forgiven, and anything else is not base64.
package base64text

import (
	"bytes"
	"strings"
)

// Canonical returns b in the standard alphabet with padding: b itself where it is so already.
// ok is false for what is no base64.
func Canonical(b []byte) ([]byte, bool) {
	clean, canonical := 0, true
	for i, c := range b {
		switch {
		case base64Class[c] == 1:
			clean++
		case c == '-', c == '_', c == ' ', c == '\n', c == '\r', c == '\t':
			canonical = false
		case c == '=' && i >= len(b)-2:
		default:
			if rest := bytes.TrimRight(b[i:], "= \r\n\t"); len(rest) > 0 {
				return nil, false
			}
			canonical = false
		}
	}
	if canonical && len(b)%4 == 0 && clean >= len(b)-2 && strings.Trim(string(b[clean:]), "=") == "" {
		return b, true
	}
	out := make([]byte, 0, len(b)+3)
	for _, c := range b {
		switch c {
		case '-':
			out = append(out, '+')
		case '_':
			out = append(out, '/')
		case ' ', '\n', '\r', '\t', '=':
		default:
			out = append(out, c)
		}
	}
	if len(out)%4 == 1 {
		return nil, false
	}
	for len(out)%4 != 0 {
		out = append(out, '=')
	}
	return out, true
}

var base64Class = func() (t [256]byte) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = 1
	}
	return t
}()
