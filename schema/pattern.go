package schema

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
)

// maxPatternCost bounds the patterns of one schema together: enough for
// hundreds of ordinary ones. Compiling one costs time and memory by the number
// of its repetitions and character classes, not by its length alone.
const maxPatternCost = 64 << 10

// patternCost estimates what compiling a pattern costs.
func patternCost(pattern string) int {
	cost := len(pattern) + 500*(strings.Count(pattern, `\p`)+strings.Count(pattern, `\P`)+strings.Count(pattern, "(?"))
	for rest := pattern; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			return cost
		}
		rest = rest[i+1:]
		n := 0
		for _, c := range []byte(rest) {
			switch {
			case c >= '0' && c <= '9':
				n = min(n*10+int(c-'0'), 1000)
				continue
			case c == ',':
				cost += n
				n = 0
				continue
			}
			break
		}
		cost += 4 * n
	}
}

// unicodeEscape is how ECMAScript spells a code point.
var unicodeEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})`)

var errPatternCost = errors.New("the patterns of this schema are too costly")

// compilePattern compiles a pattern within a budget. JSON Schema's patterns are
// those of ECMAScript; the one difference that is common and harmless is
// spelled as RE2 wants it.
func compilePattern(pattern string, budget *int) (*regexp.Regexp, error) {
	if *budget -= patternCost(pattern); *budget < 0 {
		return nil, errPatternCost
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		if spelled := unicodeEscape.ReplaceAllString(pattern, `\x{$1}`); spelled != pattern {
			return regexp.Compile(spelled)
		}
		return nil, err
	}
	return re, nil
}

// rational reads a number literal exactly.
func rational(literal string) (*big.Rat, bool) {
	if !sane(literal) {
		return nil, false
	}
	return new(big.Rat).SetString(literal)
}
