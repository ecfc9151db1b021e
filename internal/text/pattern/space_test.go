package pattern

import (
	"regexp"
	"testing"
)

// TestSpellSpaces: each character is a space where ECMAScript says so (ECMA-262, 22.2.2.9),
// in and outside of classes.
func TestSpellSpaces(t *testing.T) {
	isSpace := map[rune]bool{
		'\t': true, '\n': true, '\v': true, '\f': true, '\r': true, ' ': true, 0xa0: true, 0x1680: true, 0x2028: true, 0x2029: true, 0x202f: true, 0x205f: true, 0x3000: true, 0xfeff: true,
	}
	for r := rune(0x2000); r <= 0x200a; r++ {
		isSpace[r] = true
	}
	compiled := func(expr string) *regexp.Regexp { return regexp.MustCompile(SpellSpaces(expr)) }
	space, no, in, not := compiled(`^\s$`), compiled(`^\S$`), compiled(`^[\s]$`), compiled(`^[^\s]$`)
	noIn, notNo, all := compiled(`^[\S]$`), compiled(`^[^\S]$`), compiled(`^[\s\S]$`)
	for r := rune(0); r <= 0x10ffff; r++ {
		if r >= 0x3100 && r%97 != 0 && r < 0xfe00 || r >= 0x10100 && r%997 != 0 || r >= 0xd800 && r < 0xe000 {
			continue
		}
		s, want := string(r), isSpace[r]
		if space.MatchString(s) != want || no.MatchString(s) == want || in.MatchString(s) != want || not.MatchString(s) == want ||
			noIn.MatchString(s) == want || notNo.MatchString(s) != want || !all.MatchString(s) {
			t.Errorf("%U is a space: %t, and taken for something else", r, want)
		}
	}
	for expr, want := range map[string]string{
		`^[a-z]+$`: `^[a-z]+$`, `a\\s`: `a\\s`, `\`: `\`, `[\]\s]`: `[\]\s` + spaces + `\s]`, `\[\s`: `\[[\s` + spaces + `]`,
	} {
		if got := SpellSpaces(expr); got != want {
			t.Errorf("%s is spelled %s, want %s", expr, got, want)
		}
	}
}
