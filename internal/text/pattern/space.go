package pattern

import "strings"

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
		switch escaped := expr[i]; {
		case escaped == 's' && class:
			b.WriteString(`\s` + spaces + `\s`) // so that a hyphen beside it stands beside the same
		case escaped == 's':
			b.WriteString(`[\s` + spaces + `]`)
		case escaped == 'S' && class:
			b.WriteString(noSpaces)
		case escaped == 'S':
			b.WriteString(`[^\s` + spaces + `]`)
		default:
			b.WriteString(expr[i-1 : i+1])
		}
	}
	return b.String()
}
