package config

import (
	"strings"
	"testing"
)

// TestTabsInText: a tab within text without quotes is an error, since the library leaves it
// out; elsewhere it is what YAML makes of it.
func TestTabsInText(t *testing.T) {
	for text, want := range map[string]string{
		"k: a\tb\n": "", "k: 5\t6\n": "", "k: a\n  b\tc\n": "", "k: [a\tb, c]\n": "", "a\tb: c\n": "",
		"k: 'a\tb'\n":                   `{"k":"a\tb"}`,
		"k: \"a\tb\"\n":                 `{"k":"a\tb"}`,
		"k: |\t# a\tb\n  a\tb\n":        `{"k":"a\tb\n"}`,
		"k\t:\ta\t# a\tb\nl: 5\t#\t6\n": `{"k":"a","l":5}`,
		"k: [a,\tb\t]\t# a\tb\n":        `{"k":["a","b"]}`,
	} {
		root, failed := parseYAML(newSource("a.yaml", text), []byte(text))
		switch {
		case want == "" && (failed == nil || !strings.Contains(failed.Error(), "a tab stands in text without quotes")):
			t.Errorf("%q: %v", text, failed)
		case want != "" && failed != nil:
			t.Errorf("%q: %v", text, failed)
		case want != "" && string(root.appendJSON(nil)) != want:
			t.Errorf("%q is %s, want %s", text, root.appendJSON(nil), want)
		}
	}
}
