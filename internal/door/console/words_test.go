package console

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryWordIsThereTwice: each of our own texts on pages is in Chinese as well, with as
// many verbs, and nothing is translated that no page says.
func TestEveryWordIsThereTwice(t *testing.T) {
	said := map[string]bool{}
	names, err := fs.Glob(files, "pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`[({]t "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			said[found[1]] = true
		}
	}
	for _, entry := range menu(operatorForTests) {
		said[entry.Name] = true
	}
	if len(said) < 100 {
		t.Fatalf("pages say %d things", len(said))
	}
	verb := regexp.MustCompile(`%(\[\d\])?[sd]`)
	for text := range said {
		there, ok := chinese[text]
		if !ok {
			t.Errorf("%q is not translated", text)
		}
		if a, b := len(verb.FindAllString(text, -1)), len(verb.FindAllString(there, -1)); a != b {
			t.Errorf("%q has %d verbs, and its translation %d", text, a, b)
		}
	}
	errors := 0
	var code strings.Builder
	sources, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if name := source.Name(); strings.HasSuffix(name, ".go") && name != "chinese.go" && !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	for _, found := range regexp.MustCompile(`(?:(?:notFound|forbidden)\(|model\.Invalid\([^,]+, |Message: )"([^"]+)"[),}]`).FindAllStringSubmatch(code.String(), -1) {
		errors++
		if _, ok := chinese[found[1]]; !ok {
			t.Errorf("the error %q is not translated", found[1])
		}
	}
	if errors < 10 {
		t.Errorf("the console has %d errors of its own", errors)
	}
	for word := range ours {
		if _, ok := chinese[word]; !ok {
			t.Errorf("%q is not translated", word)
		}
	}
	for text := range chinese {
		if !said[text] && !ours[text] && !strings.Contains(code.String(), text) {
			t.Errorf("%q is translated, and nothing says it", text)
		}
	}
}

// ours are words of other packages that pages show: states, effects, verdicts, kinds.
var ours = words(`starting connected failed pending approved denied expired used waiting passed
	allow ask deny read_only idempotent may_change decide execute summarise
	decision intent outcome approval login pin pruned gap heads fine near used_up`,
	"Sign in first.", signInSlower,
	"There is no such authorization server to sign in at.", "This is not the answer to a sign-in that this browser began. Begin again.",
	"The answer is not of the authorization server at which you began. Begin again.", "The authorization server did not let you in.",
	"The authorization server cannot be asked now. Try again.")

func words(text string, more ...string) map[string]bool {
	all := map[string]bool{}
	for _, word := range append(strings.Fields(text), more...) {
		all[word] = true
	}
	return all
}

func TestSay(t *testing.T) {
	if got := say("zh", "%s of %s tools", "2", "7"); got != "7 个工具中的 2 个" {
		t.Error(got)
	}
	if got := say("zh", "what nobody translated"); got != "what nobody translated" {
		t.Error(got)
	}
}
