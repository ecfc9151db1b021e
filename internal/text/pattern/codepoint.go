package pattern

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// codePoint is any escape, of which those that ECMAScript has for code points have their
// digits in groups: two halves of a pair, one unit, or braces.
var codePoint = Of(`(?s)\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|.)`)

// SpellCodePoints spells the code points of an expression that ECMAScript alone escapes so,
// by which clients read the pattern of a schema, with the flag u as most do: what takes more
// than four digits as itself, the others by unit, with four digits for %s, such as `\x{%s}`,
// which [regexp] knows. Half of a pair is spelled as it is said.
func SpellCodePoints(expr, unit string) string {
	re := codePoint.compiled()
	return re.ReplaceAllStringFunc(expr, func(escape string) string {
		m := re.FindStringSubmatch(escape)
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
