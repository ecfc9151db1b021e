package dialect

import (
	"regexp"
	"strconv"
	"strings"
)

// rawPattern judges a pattern for an engine that reads it as the text of a JSON
// string: it has only parts that such engines know, and whatever it matches can
// stand in a string.
func (k *checker) rawPattern(p, at string) {
	body := p[1 : len(p)-1]
	for i := 0; i < len(body); {
		if escape := strings.HasPrefix(body[i:], `[\x5C]`); escape && k.rules.EscapedPatterns {
			end := i + len(`[\x5C]`) + len(rawEscape.FindString(body[i+len(`[\x5C]`):]))
			if end == i+len(`[\x5C]`) || end < len(body) && strings.IndexByte("*+?{", body[end]) >= 0 {
				k.wrong(at, "the pattern has an escape that JSON does not know")
				return
			}
			i = end
			continue
		}
		length, why := rawPart(body[i:])
		if why != "" {
			k.wrong(at, why)
			return
		}
		i += length
	}
	for _, m := range repetition.FindAllStringSubmatch(p, -1) {
		for _, digits := range m[1:] {
			if n, _ := strconv.Atoi(digits); k.rules.MaxRepeat > 0 && n > k.rules.MaxRepeat {
				k.wrong(at, "the pattern repeats too often")
			}
		}
	}
}

// rawEscape is what may follow a backslash in a JSON string, as patterns say it.
var rawEscape = func() *regexp.Regexp {
	short := `(?:\["?[/bfnrt]*(?:\\x5C)?\]|[bfnrt]|\[\\x5C\])`
	number := `u00(?:\[01\]\[0-9A-Fa-f\]|\([01]\[[0-9A-Fa-f]+\](?:\|1\[[0-9A-Fa-f]+\])?\))`
	return regexp.MustCompile(`^(?:` + short + `|` + number + `|\(` + short + `\|` + number + `\))`)
}()

// rawPart judges the part with which a pattern begins, and returns its length.
func rawPart(p string) (length int, why string) {
	switch ch := p[0]; {
	case strings.HasPrefix(p, `\^`):
		return 2, ""
	case ch == '[':
		end := strings.IndexByte(p, ']')
		if end < 0 {
			return 0, "the pattern has a class without an end"
		}
		return end + 1, rawClass(p[1:end])
	case strings.HasPrefix(p, "(?"), strings.IndexByte(`.^$\`, ch) >= 0:
		return 0, "the pattern has a part that the engine does not know"
	case ch == '"', ch < ' ', ch == 0x7f:
		return 0, "the pattern has what cannot stand in a JSON string"
	}
	return 1, ""
}

// rawClass judges the inside of a class: what it is made of, and which characters
// lie in its ranges.
func rawClass(class string) (why string) {
	text, negated := strings.CutPrefix(class, "^")
	var list []rune // the characters, with numbers read; -1 is a hyphen between two
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == '\\':
			if i+3 >= len(runes) || runes[i+1] != 'x' {
				return "the pattern has a class that the engine does not know"
			}
			n, err := strconv.ParseUint(string(runes[i+2:i+4]), 16, 8)
			if err != nil || i+4 < len(runes) && strings.ContainsRune("0123456789abcdefABCDEF", runes[i+4]) {
				return "the pattern has a number that the engine reads as another" // XGrammar takes a third digit
			}
			list = append(list, rune(n))
			i += 3
		case r == '-' && i > 0 && i < len(runes)-1:
			list = append(list, -1)
		case r == '^' || r < ' ':
			return "the pattern has a class that the engine does not know"
		default:
			list = append(list, r)
		}
	}
	in := map[rune]bool{}
	for i, r := range list {
		if r == -1 && i > 0 && i < len(list)-1 {
			for c := list[i-1]; c <= min(list[i+1], '\\'); c++ {
				in[c] = true
			}
			continue
		}
		in[r] = true
	}
	for r := range rune(0x80) {
		if escaped := r < ' ' || r == '"' || r == '\\'; escaped && in[r] != negated {
			return "the pattern has a class with what cannot stand in a JSON string"
		}
	}
	return ""
}
