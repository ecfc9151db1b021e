package schema

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
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

// codePoint is any escape, of which those that ECMAScript has for code points have their
// digits in groups: two halves of a pair, one unit, or braces.
var codePoint = regexp.MustCompile(`(?s)\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|.)`)

// spellCodePoints spells the code points of a pattern that ECMAScript alone escapes so: what
// takes more than four digits as itself, the others by unit, with four digits for %s.
func spellCodePoints(pattern, unit string) string {
	return codePoint.ReplaceAllStringFunc(pattern, func(escape string) string {
		m := codePoint.FindStringSubmatch(escape)
		code, err := strconv.ParseUint(m[3]+m[4], 16, 32)
		if m[1] != "" {
			high, _ := strconv.ParseUint(m[1], 16, 32)
			low, _ := strconv.ParseUint(m[2], 16, 32)
			code, err = uint64(utf16.DecodeRune(rune(high), rune(low))), nil
		}
		switch {
		case err != nil || code > unicode.MaxRune:
			return escape
		case code > 0xffff:
			return string(rune(code))
		}
		return fmt.Sprintf(unit, fmt.Sprintf("%04x", code))
	})
}

var errPatternCost = errors.New("the patterns of this schema are too costly")

// compilePattern compiles a pattern within a budget. JSON Schema's patterns are
// those of ECMAScript. Go's own engine, which is linear in time, takes nearly
// all of them, one harmless difference apart; those with lookaround, back
// references or large repetitions go to an engine that may take long, under a
// limit of time.
func compilePattern(pattern string, budget *int) (jsonschema.Regexp, error) {
	if *budget -= patternCost(pattern); *budget < 0 {
		return nil, errPatternCost
	}
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	if strings.Contains(pattern, `\u`) {
		if re, err := regexp.Compile(spellCodePoints(pattern, `\x{%s}`)); err == nil {
			return re, nil
		}
		pattern = spellCodePoints(pattern, `\u%s`)
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
