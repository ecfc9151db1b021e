package glob_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/text/glob"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "meta/llama-3:70b", true},
		{"gpt-*", "gpt-5", true},
		{"gpt-*", "gpt-", true},
		{"gpt-*", "GPT-5", false},
		{"gpt-*", "chatgpt-5", false},
		{"*-mini", "gpt-5-mini", true},
		{"*-mini", "gpt-5-mini-2", false},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyyd", false},
		{"a**c", "ac", true},
		{"?", "语", true},
		{"?", "", false},
		{"??", "语", false},
		{"模*", "模型", true},
		{"[ab]", "a", false},
		{"[ab]", "[ab]", true},
		{`\*`, `\x`, true},
		{"abab", "ababab", false},
		{"*ab", "ababab", true},
	}
	for _, tt := range tests {
		if got := glob.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestMatchIsNotExponential(t *testing.T) {
	done := make(chan bool, 1)
	go func() { done <- glob.Match(strings.Repeat("*a", 200)+"b", strings.Repeat("a", 4000)) }()
	select {
	case got := <-done:
		if got {
			t.Error("a name without b matched a pattern that ends in b")
		}
	case <-time.After(time.Minute):
		t.Fatal("still matching after a minute")
	}
}

func TestMatchAny(t *testing.T) {
	if glob.MatchAny(nil, "a") {
		t.Error("no pattern matched")
	}
	if !glob.MatchAny([]string{"x", "a*"}, "ab") {
		t.Error("the second pattern did not match")
	}
}

func TestLiteral(t *testing.T) {
	for pattern, want := range map[string]bool{"": true, "gpt-5": true, "gpt-*": false, "gpt-?": false, "[a]": true} {
		if got := glob.Literal(pattern); got != want {
			t.Errorf("Literal(%q) = %v, want %v", pattern, got, want)
		}
	}
}

// FuzzMatch compares with a regular expression that says the same.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add("*?*", "语言")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		pattern, name = strings.ToValidUTF8(pattern, "."), strings.ToValidUTF8(name, ".")
		if len(pattern) > 200 || len(name) > 1000 {
			t.Skip()
		}
		expr := regexp.QuoteMeta(pattern)
		expr = strings.ReplaceAll(strings.ReplaceAll(expr, `\*`, `.*`), `\?`, `.`)
		want := regexp.MustCompile(`(?s)\A` + expr + `\z`).MatchString(name)
		if got := glob.Match(pattern, name); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	})
}

// A pattern begins with a text where it matches any name that does.
func TestBegins(t *testing.T) {
	for _, tt := range []struct {
		pattern, prefix string
		want            bool
	}{
		{"", "", true}, {"a", "", true}, {"", "a", false}, {"*", "abc", true}, {"a*", "abc", true}, {"ab*z", "abc", true}, {"*z", "abc", true},
		{"abcd", "abc", true}, {"abc", "abc", true}, {"ab", "abc", false}, {"abd*", "abc", false}, {"a?c", "abc", true}, {"a?", "abc", false},
		{"?é*", "éé語", true}, {"?e*", "éé", false}, {"tool:git_*", "tool:github__", false}, {"tool:git*_get", "tool:github__", true},
		{"\xff", "\ufffd", false}, {"\ufffd", "\xff", false}, {"?", "\xff", true},
	} {
		if got := glob.Begins(tt.pattern, tt.prefix); got != tt.want {
			t.Errorf("Begins(%q, %q) = %t", tt.pattern, tt.prefix, got)
		}
	}
}

func FuzzBegins(f *testing.F) {
	f.Add("a*c?", "ab", "xc")
	f.Add("?\xff*", "é", "\xff")
	f.Fuzz(func(t *testing.T, pattern, prefix, rest string) {
		if glob.Match(pattern, prefix+rest) && utf8.ValidString(prefix) && !glob.Begins(pattern, prefix) {
			t.Errorf("%q matches %q and does not begin with %q", pattern, prefix+rest, prefix)
		}
	})
}
