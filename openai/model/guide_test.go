package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// FuzzAddGuide: a guide is added to a literal as to the text that it is of, however that is
// spelled.
func FuzzAddGuide(f *testing.F) {
	long := strings.Repeat("You are kind. ", 20)
	for _, text := range []string{"", " ", "\n", "Be brief.", "Be brief.\n\n", "Ends in \\n", "Ends in \\\n", long + "\"quoted\"\t/", "n", "\\n", "é\n", result.Guide, long + "\n\n" + result.Guide, result.GuideMark + "0]", "Own: \"text\"", "all\new", "a new"} {
		for _, guide := range []string{"", result.Guide, "Own: \"text\"\n", "\n", "new"} {
			f.Add(text, guide, false)
			f.Add(text, guide, true)
		}
	}
	f.Fuzz(func(t *testing.T, text, guide string, escaped bool) {
		text, guide = strings.ToValidUTF8(text, ""), strings.ToValidUTF8(guide, "")
		literal := rawjson.Quote(text)
		if escaped { // as JavaScript and Python do
			encoded, err := json.Marshal(strings.ReplaceAll(text, "[", "<"))
			if err != nil {
				t.Fatal(err)
			}
			literal = json.RawMessage(strings.ReplaceAll(string(encoded), `\u003c`, `\u005b`))
			text, _ = rawjson.String(literal)
		}
		before := string(literal)
		got, ok := rawjson.String(AddGuide(literal, guide))
		if want := result.AddGuide(text, guide); !ok || got != want {
			t.Errorf("%q with %q is %q, want %q", text, guide, got, want)
		}
		if string(literal) != before {
			t.Errorf("the literal was changed into %s", literal)
		}
	})
}

// What is no string counts as no text.
func TestAddGuideToNothing(t *testing.T) {
	for _, literal := range []string{"", "null", "3", "{}"} {
		if got, want := string(AddGuide(json.RawMessage(literal), "Read.")), `"Read."`; got != want {
			t.Errorf("%q with a guide is %s, want %s", literal, got, want)
		}
	}
}
