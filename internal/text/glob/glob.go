// Package glob matches names against the patterns that people write in the
// configuration: * stands for any text, also none, ? for one character, and
// everything else for itself. There are no classes and no escapes, and * does
// not stop at a slash, because model names hold slashes.
package glob

import "unicode/utf8"

// Match reports whether pattern matches the whole of name. Its time is at most
// the product of the two lengths, whatever the pattern is.
func Match(pattern, name string) bool {
	// On a mismatch go back to the last star and let it take one character
	// more; earlier stars never need to be tried again.
	p, n := 0, 0
	star, taken := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, taken = p, n
			p++
			continue
		}
		if p < len(pattern) {
			want, wantLen := utf8.DecodeRuneInString(pattern[p:])
			got, gotLen := utf8.DecodeRuneInString(name[n:])
			if want == '?' || pattern[p:p+wantLen] == name[n:n+gotLen] && want == got {
				p += wantLen
				n += gotLen
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[taken:])
		taken += size
		p, n = star+1, taken
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// MatchAny reports whether one of the patterns matches name.
func MatchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}

// Begins reports whether pattern matches any name that begins with prefix.
func Begins(pattern, prefix string) bool {
	p := 0
	for n := 0; n < len(prefix); {
		if p == len(pattern) {
			return false
		}
		want, wantLen := utf8.DecodeRuneInString(pattern[p:])
		got, gotLen := utf8.DecodeRuneInString(prefix[n:])
		switch {
		case want == '*':
			return true // of the rest, too
		case want != '?' && (want != got || pattern[p:p+wantLen] != prefix[n:n+gotLen]):
			return false
		}
		p, n = p+wantLen, n+gotLen
	}
	return true
}

// Literal reports whether pattern matches nothing but itself.
func Literal(pattern string) bool {
	for i := range len(pattern) {
		if pattern[i] == '*' || pattern[i] == '?' {
			return false
		}
	}
	return true
}
