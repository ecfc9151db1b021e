package pattern

import (
	"regexp"
	"strings"
	"testing"
)

// TestPortable: patterns that ECMAScript reads as Go does pass, others say what is wrong.
func TestPortable(t *testing.T) {
	for pattern, wrong := range map[string]string{
		``:                              "",
		`^[a-z][\w.\-]*\.(?:go|md)$`:    "",
		`^\d{4}-\d{2,}x{3}$`:            "",
		`\bx\x41\p{L}\P{Letter}\/[^\]]`: "",
		`(?<year>\d+)|[[(){}|]`:         "",
		`^[^\0]+\0$`:                    "",
		`[^[:/]+`:                       "",
		`\00`:                           `\0 is none of ECMAScript`,
		`\p{Greek}`:                     `\p{Greek} is none of ECMAScript`,
		`[\P{greek}]`:                   `\p{greek} is none of ECMAScript`,
		`\p{lu}`:                        `\p{lu} is none of ECMAScript`,
		`\p{^L}`:                        `\p{^L} is none of ECMAScript`,
		`(?<a>x)|(?<a>y)`:               "(?<a>…) is there twice",
		`(?<1a>x)`:                      "(?<1a>…) begins with a digit",
		`(?i)^abc$`:                     "(?i)… is none of ECMAScript",
		`(?P<year>\d+)`:                 "(?P<… is none of ECMAScript",
		`(?i:a)`:                        "is none of ECMAScript",
		`\Aabc\z`:                       `\A is none of ECMAScript`,
		`\Qa.b\E`:                       `\Q is none of ECMAScript`,
		`\pL`:                           `\pL is written \p{L}`,
		`\x{1F600}`:                     `\x is none of ECMAScript`,
		`[[:alpha:]]`:                   "[:…:] is none of ECMAScript",
		`\@`:                            `\@ is written @`,
		`a\-b`:                          `\- is written -`,
		`[\b]`:                          `\b is none of ECMAScript`,
		`[\w-.]`:                        `- behind \w is written \-`,
		`^*a`:                           "^ cannot be repeated",
		`\b+`:                           `\b cannot be repeated`,
		`[]a]`:                          `] at the beginning of a class is written \]`,
		`[^]a]`:                         `] at the beginning of a class is written \]`,
		`a{`:                            `{ is written \{`,
		`a}`:                            `} is written \}`,
		`a]`:                            `] is written \]`,
	} {
		if _, err := regexp.Compile(pattern); err != nil && pattern != `[\b]` {
			t.Errorf("%s: %v", pattern, err)
		}
		err := Portable(pattern)
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
			_ = Portable(pattern)
		}
	})
}
