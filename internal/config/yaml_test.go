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

// TestColonsBetweenBraces: a colon that no space follows is a part of the text around it,
// between { } too, where the library ends a key with it.
func TestColonsBetweenBraces(t *testing.T) {
	for text, want := range map[string]string{
		"a: {args: [-p, 8080:80, mcp/fs:latest, C:\\data, a:b:c, true:no, a b:c d]}\n": `{"a":{"args":["-p","8080:80","mcp/fs:latest","C:\\data","a:b:c","true:no","a b:c d"]}}`,
		"a: {k: [[x:y], {l: x:y}]}\n":            `{"a":{"k":[["x:y"],{"l":"x:y"}]}}`,
		"a: {k: [b: c, \"b\":c, {b:c}, x:{}]}\n": `{"a":{"k":[{"b":"c"},{"b":"c"},{"b":"c"},{"x":{}}]}}`,
		"a: {b:c, d: e:f}\n":                     `{"a":{"b":"c","d":"e:f"}}`,
		"a: [x:y]\n":                             `{"a":["x:y"]}`,
		"a: {\"x:y\": z}\n":                      `{"a":{"x:y":"z"}}`,
		"a:\n  b: \n":                            `{"a":{"b":null}}`,
		"a: {b:, c: [{d:}]}\n":                   `{"a":{"b":null,"c":[{"d":null}]}}`,
		"a: {x:y: z}\n":                          "",
		"a: {k: [x:y: z]}\n":                     "",
	} {
		root, failed := parseYAML(newSource("a.yaml", text), []byte(text))
		switch {
		case want == "" && (failed == nil || !strings.Contains(failed.Error(), "a key with a colon in it stands between { }")):
			t.Errorf("%q: %v", text, failed)
		case want != "" && failed != nil:
			t.Errorf("%q: %v", text, failed)
		case want != "" && string(root.appendJSON(nil)) != want:
			t.Errorf("%q is %s, want %s", text, root.appendJSON(nil), want)
		}
	}
}
