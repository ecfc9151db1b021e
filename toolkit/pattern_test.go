package toolkit

import (
	"regexp"
	"strings"
	"testing"
)

// TestPortable: patterns that ECMAScript reads as Go does pass, others say what is wrong.
func TestPortable(t *testing.T) {
	for pattern, wrong := range map[string]string{
		``:                             "",
		`^[a-z][\w.\-]*\.(?:go|md)$`:   "",
		`^\d{4}-\d{2,}x{3}$`:           "",
		`\bx\x41\p{L}\P{Greek}\/[^\]]`: "",
		`(?<year>\d+)|[[(){}|]`:        "",
		`(?i)^abc$`:                    "(?i)… is Go's alone",
		`(?P<year>\d+)`:                "(?P<… is Go's alone",
		`(?i:a)`:                       "is Go's alone",
		`\Aabc\z`:                      `\A is Go's alone`,
		`\Qa.b\E`:                      `\Q is Go's alone`,
		`\pL`:                          `\pL is written \p{L}`,
		`\x{1F600}`:                    `\x is Go's alone`,
		`[[:alpha:]]`:                  "[:…:] is Go's alone",
		`\@`:                           `\@ is written @`,
		`a\-b`:                         `\- is written -`,
		`[\b]`:                         `\b is Go's alone`,
		`[\w-.]`:                       `- behind \w is written \-`,
		`^*a`:                          "^ cannot be repeated",
		`\b+`:                          `\b cannot be repeated`,
		`[]a]`:                         `] at the beginning of a class is written \]`,
		`[^]a]`:                        `] at the beginning of a class is written \]`,
		`a{`:                           `{ is written \{`,
		`a}`:                           `} is written \}`,
		`a]`:                           `] is written \]`,
	} {
		if _, err := regexp.Compile(pattern); err != nil && pattern != `[\b]` {
			t.Errorf("%s: %v", pattern, err)
		}
		err := portable(pattern)
		switch {
		case wrong == "" && err != nil:
			t.Errorf("%s: %v", pattern, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v, want %s", pattern, err, wrong)
		}
	}
}

// FuzzPortable: what Go reads is judged without a panic.
func FuzzPortable(f *testing.F) {
	for _, seed := range []string{`\`, `\p`, `\x4`, `[a`, `(?`, `{1,`, `\p{L`} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, pattern string) {
		if _, err := regexp.Compile(pattern); err == nil {
			_ = portable(pattern)
		}
	})
}
