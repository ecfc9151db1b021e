package pattern

import "testing"

// TestSpellCodePoints: code points are spelled as another engine reads them, and other escapes
// stay as they are.
func TestSpellCodePoints(t *testing.T) {
	for expr, want := range map[string]string{
		`^\u00e9\u{e9}\u{0000041}$`:  `^\x{00e9}\x{00e9}\x{0041}$`,
		`[\u{1F600}-\uD83D\uDE4F]`:   `[😀-🙏]`,
		`\\u0041\u0041\\\u0041`:      `\\u0041\x{0041}\\\x{0041}`,
		`\uD83D\u0041`:               `\x{d83d}\x{0041}`,
		`\u{110000}\u{x}\u00e\d\n\/`: `\u{110000}\u{x}\u00e\d\n\/`,
		`\u002a\`:                    `\x{002a}\`,
		"\\\n\\é":                    "\\\n\\é",
	} {
		if got := SpellCodePoints(expr, `\x{%s}`); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}
