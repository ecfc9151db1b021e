package schema

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	patterns "github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

// maxPatternCost bounds the patterns of one schema together: enough for
// hundreds of ordinary ones. Compiling one costs time and memory by the number
// of its repetitions and character classes, not by its length alone.
const maxPatternCost = 64 << 10

// patternCost estimates what compiling a pattern costs.
func patternCost(pattern string) int {
	cost := len(pattern) + 500*(strings.Count(pattern, `\p`)+strings.Count(pattern, `\P`)+strings.Count(pattern, "(?")) +
		30*(strings.Count(pattern, `\s`)+strings.Count(pattern, `\S`))
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

var errPatternCost = errors.New("the patterns of this schema are too costly")

// compilePattern compiles a pattern within a budget. JSON Schema's patterns are
// those of ECMAScript. Go's own engine, which is linear in time, takes nearly
// all of them, one harmless difference apart, once their spaces are spelled out;
// those with lookaround, back references or large repetitions go to an engine that
// may take long, under a limit of time.
func compilePattern(pattern string, budget *int) (jsonschema.Regexp, error) {
	if *budget -= patternCost(pattern); *budget < 0 {
		return nil, errPatternCost
	}
	if re, err := compileSpelled(patterns.SpellSpaces(pattern)); err == nil {
		return re, nil
	}
	return compileSpelled(pattern)
}

// compileSpelled compiles a pattern whose spaces are those that the engines know.
func compileSpelled(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	if strings.Contains(pattern, `\u`) {
		if re, err := regexp.Compile(patterns.SpellCodePoints(pattern, `\x{%s}`)); err == nil {
			return re, nil
		}
		pattern = patterns.SpellCodePoints(pattern, `\u%s`)
	}
	slow, err := regexp2.Compile(pattern, regexp2.ECMAScript)
	if err != nil {
		if slow, err = regexp2.Compile(pattern, regexp2.None); err != nil {
			return nil, err
		}
	}
	slow.MatchTimeout = maxMatchTime
	return &backtracking{Regexp: slow}, nil
}

// maxMatchTime is how long one pattern may look at one string. A pattern that
// needs more is given up: the server itself judges by it.
const maxMatchTime = 25 * time.Millisecond

// A backtracking pattern may need time that grows exponentially.
type backtracking struct {
	*regexp2.Regexp
	givenUp atomic.Bool
}

// MatchString reports whether s matches, or could not be looked at in time.
func (b *backtracking) MatchString(s string) bool {
	if b.givenUp.Load() {
		return true
	}
	ok, err := b.Regexp.MatchString(s)
	if err != nil {
		b.givenUp.Store(true)
		return true
	}
	return ok
}

// rational reads a number literal exactly.
func rational(literal string) (*big.Rat, bool) {
	if !sane(literal) {
		return nil, false
	}
	return new(big.Rat).SetString(literal)
}
