package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// quantifier is how often what stands before it is to stand there, in braces.
var quantifier = regexp.MustCompile(`^\{\d+(,\d*)?\}`)

// Portable says what in an expression that [regexp] knows is none of ECMAScript's, by which
// clients read the pattern of a schema (JSON Schema, section 6.4), with the flag u as most do.
func Portable(expr string) error {
	class := false
	var groups []string
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch c := expr[i]; {
		case c == '\\':
			length, err := escape(rest, class)
			if err != nil {
				return err
			}
			i += length - 1
			switch behind := expr[i+1:]; {
			case class && strings.IndexByte("dDwWsSpP", rest[1]) >= 0 && strings.HasPrefix(behind, "-") && !strings.HasPrefix(behind, "-]"):
				return fmt.Errorf(`- behind %s is written \-`, rest[:length])
			case !class && (rest[1] == 'b' || rest[1] == 'B') && repeated(behind):
				return fmt.Errorf("%s cannot be repeated", rest[:length])
			}
		case class:
			if strings.HasPrefix(rest, "[:") && strings.Contains(rest[len("[:"):], ":]") { // else it is [ and :
				return fmt.Errorf("[:…:] is none of ECMAScript; write out the letters")
			}
			class = c != ']'
		case strings.HasPrefix(rest, "[]"), strings.HasPrefix(rest, "[^]"):
			return fmt.Errorf(`] at the beginning of a class is written \]`)
		case c == '[':
			class = true
		case (c == '^' || c == '$') && repeated(rest[1:]):
			return fmt.Errorf("%c cannot be repeated", c)
		case c == '(' && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?<"):
			return fmt.Errorf("%.4s… is none of ECMAScript; groups are (…), (?:…) and (?<name>…)", rest)
		case strings.HasPrefix(rest, "(?<"):
			name, _, _ := strings.Cut(rest[len("(?<"):], ">")
			if err := group(name, groups); err != nil {
				return err
			}
			groups = append(groups, name)
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

// group says what is wrong with the name of a group behind those of others.
func group(name string, others []string) error {
	switch {
	case name != "" && name[0] >= '0' && name[0] <= '9':
		return fmt.Errorf("the name of the group (?<%s>…) begins with a digit", name)
	case slices.Contains(others, name):
		return fmt.Errorf("the name of the group (?<%s>…) is there twice", name)
	}
	return nil
}

// property says what is wrong with the name of a class of letters, \p{name}: ECMAScript takes
// those of general categories as Unicode spells them, and Go those of scripts alike.
func property(name string) error {
	_, category := unicode.Categories[name]
	_, alias := unicode.CategoryAliases[name]
	if category || alias || name == "Any" || name == "ASCII" || name == "Assigned" {
		return nil
	}
	return fmt.Errorf(`\p{%s} is none of ECMAScript; write a general category, as \p{L}, or the letters`, name)
}

// escape returns the length of what begins with a backslash.
func escape(text string, class bool) (length int, err error) {
	c := text[1] // Go knows no pattern that ends with a backslash
	switch {
	case strings.IndexByte(`^$\.*+?()[]{}|/dDwWsSfnrtv`, c) >= 0, class && c == '-', !class && (c == 'b' || c == 'B'):
		return 2, nil
	case c == '0' && (len(text) == 2 || text[2] < '0' || text[2] > '9'):
		return 2, nil
	case c == 'x' && !strings.HasPrefix(text, `\x{`):
		return 4, nil
	case (c == 'p' || c == 'P') && strings.HasPrefix(text[2:], "{"):
		name, _, _ := strings.Cut(text[len(`\p{`):], "}")
		return len(`\p{}`) + len(name), property(name)
	case c == 'p', c == 'P':
		return 0, fmt.Errorf(`\%c%c is written \%[1]c{%[2]c}`, c, text[2])
	case c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z':
		return 0, fmt.Errorf(`\%c is written %[1]c`, c)
	}
	return 0, fmt.Errorf(`\%c is none of ECMAScript`, c)
}
