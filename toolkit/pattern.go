package toolkit

import (
	"fmt"
	"regexp"
	"strings"
)

// quantifier is how often what stands before it is to stand there, in braces.
var quantifier = regexp.MustCompile(`^\{\d+(,\d*)?\}`)

// portable says what in a regular expression of Go's is none of ECMAScript's, by which
// clients read the pattern of a schema (JSON Schema, section 6.4), with the flag u as
// most do: one that they cannot read costs them the list of all tools.
func portable(pattern string) error {
	class := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case c == '\\':
			length, err := escape(rest, class)
			if err != nil {
				return err
			}
			i += length - 1
			switch behind := pattern[i+1:]; {
			case class && strings.IndexByte("dDwWsSpP", rest[1]) >= 0 && strings.HasPrefix(behind, "-") && !strings.HasPrefix(behind, "-]"):
				return fmt.Errorf(`- behind %s is written \-`, rest[:length])
			case !class && (rest[1] == 'b' || rest[1] == 'B') && repeated(behind):
				return fmt.Errorf("%s cannot be repeated", rest[:length])
			}
		case class:
			if strings.HasPrefix(rest, "[:") {
				return fmt.Errorf("[:…:] is Go's alone; write out the letters")
			}
			class = c != ']'
		case strings.HasPrefix(rest, "[]"), strings.HasPrefix(rest, "[^]"):
			return fmt.Errorf(`] at the beginning of a class is written \]`)
		case c == '[':
			class = true
		case (c == '^' || c == '$') && repeated(rest[1:]):
			return fmt.Errorf("%c cannot be repeated", c)
		case c == '(' && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?<"):
			return fmt.Errorf("%.4s… is Go's alone; groups are (…), (?:…) and (?<name>…)", rest)
		case c == '{':
			times := quantifier.FindString(rest)
			if times == "" {
				return fmt.Errorf(`{ is written \{`)
			}
			i += len(times) - 1
		case c == '}', c == ']':
			return fmt.Errorf(`%c is written \%[1]c`, c)
		}
	}
	return nil
}

// repeated reports whether what stands before a piece of a pattern is repeated by it.
func repeated(by string) bool { return by != "" && strings.IndexByte("*+?{", by[0]) >= 0 }

// escape returns the length of what begins with a backslash.
func escape(text string, class bool) (length int, err error) {
	c := text[1] // Go knows no pattern that ends with a backslash
	switch {
	case strings.IndexByte(`^$\.*+?()[]{}|/dDwWsSfnrtv`, c) >= 0, class && c == '-', !class && (c == 'b' || c == 'B'):
		return 2, nil
	case c == 'x' && !strings.HasPrefix(text, `\x{`):
		return 4, nil
	case (c == 'p' || c == 'P') && strings.HasPrefix(text[2:], "{"):
		return strings.IndexByte(text, '}') + 1, nil
	case c == 'p', c == 'P':
		return 0, fmt.Errorf(`\%c%c is written \%[1]c{%[2]c}`, c, text[2])
	case c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z':
		return 0, fmt.Errorf(`\%c is written %[1]c`, c)
	}
	return 0, fmt.Errorf(`\%c is Go's alone`, c)
}
