package pattern

import (
	"cmp"
	"strings"
)

// spaces are what \s stands for in ECMAScript and not in [regexp], which knows those of ASCII
// alone: a tabulator, the spaces of other scripts and of typography, and two ends of lines.
const spaces = "\v\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"

// noSpaces are what \S stands for.
const noSpaces = "\\x00-\\x08\\x0e-\\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"

// SpellSpaces spells what \s and \S stand for in ECMAScript, for engines whose \s is that of
// ASCII.
func SpellSpaces(expr string) string {
	if !strings.Contains(expr, `\s`) && !strings.Contains(expr, `\S`) {
		return expr
	}
	return Respell(expr, func(escaped byte, class bool) string {
		switch {
		case escaped == 's' && class:
			return `\s` + spaces + `\s` // so that a hyphen beside it stands beside the same
		case escaped == 's':
			return `[\s` + spaces + `]`
		case escaped == 'S' && class:
			return noSpaces
		case escaped == 'S':
			return `[^\s` + spaces + `]`
		}
		return ""
	})
}

// Respell returns an expression with its escapes as spell writes them, which is told the byte
// behind the backslash and whether a class is around it; what it writes nothing for stays.
func Respell(expr string, spell func(escaped byte, class bool) string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		if c != '\\' || i+1 == len(expr) {
			class = c == '[' || class && c != ']'
			b.WriteByte(c)
			continue
		}
		i++
		b.WriteString(cmp.Or(spell(expr[i], class), expr[i-1:i+1]))
	}
	return b.String()
}
