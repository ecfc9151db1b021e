package find

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
)

// Words that mean the same have to be the same stem, and those that do not, not.
func TestStem(t *testing.T) {
	for _, same := range []string{
		"schedule schedules scheduled scheduling", "create creates created creating creation", "delete deleting deletion", "run running runs",
		"install installed installing", "date dates dated", "save saving saved", "reply replied", "organize organise organization organisation",
		"assign assignment", "deploy deployment deployed", "stop stopped stopping", "cancel cancelled", "share sharing", "add added adding", "box boxed",
	} {
		words := strings.Fields(same)
		for _, w := range words[1:] {
			if stem(singular(w)) != stem(words[0]) {
				t.Errorf("%s is %s, %s is %s", words[0], stem(words[0]), w, stem(singular(w)))
			}
		}
	}
	for _, different := range []string{"meeting meet", "setting set", "comment com", "string str", "format form", "booking book", "need ne", "sha256 sha", "über ub"} {
		if a, b, _ := strings.Cut(different, " "); stem(a) == stem(b) {
			t.Errorf("%s and %s are both %s", a, b, stem(a))
		}
	}
}

// The vocabulary is read as its head says.
func TestVocabulary(t *testing.T) {
	v := readVocabulary("# comment\ncar automobile < drive_with\nupdate: change < alter # rest\n")
	for from, want := range map[string]string{"car": "automobil 0.40", "automobil": "car 0.40", "driv with": "automobil 0.65 car 0.65", "alter": "chang 0.50", "chang": ""} {
		var got []string
		for _, a := range v.finds[from] {
			got = append(got, strings.Join(a.words, "_")+" "+fmt.Sprintf("%.2f", a.weight))
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s finds %q, want %q", from, text, want)
		}
	}
	if v.verbs["chang"] != updates || v.asked["alter"] != updates || v.verbs["alter"] != 0 || v.longest != 2 {
		t.Errorf("%+v", v)
	}
	for n, line := range strings.Split(vocabularyText, "\n") {
		line, _, _ = strings.Cut(line, "#")
		kind, _, has := strings.Cut(line, ":")
		if has && actionNames[kind] == 0 || strings.Count(line, "<") > 1 || strings.ContainsAny(line, ",;\"'") || line != "" && strings.TrimSpace(strings.Split(line, "<")[0]) == "" {
			t.Errorf("line %d of the vocabulary: %q", n+1, line)
		}
	}
	if n := len(vocabularyText); n > 32<<10 {
		t.Errorf("the vocabulary has %d bytes", n)
	}
}

// What a question calls by another word is found, and by what it wants done, where the
// tools have the same nouns; and a server's own words help.
func TestSearchKnowsWhatIsMeant(t *testing.T) {
	tools := dragoman.NewTools(catalog.Name([]dragoman.Tool{
		described("cal", "create_event", "Creates an entry."), described("cal", "delete_event", "Deletes an entry."),
		described("cal", "list_events", "Lists entries."), described("cal", "get_event", "Gets an entry."),
		described("post", "send_mail", "Sends a message.", "to", "Who gets it."),
		described("odd", "zap", "Does it."), described("odder", "zip", "Does it."),
	}, catalog.Config{}))
	index := NewIndex(tools, []dragoman.Server{{Label: "odder", Instructions: "Everything about bicycles."}})
	for words, want := range map[string]string{
		"schedule a meeting": "cal__create_event", "scheduling meetings": "cal__create_event", "get rid of an appointment": "cal__delete_event",
		"which appointments": "cal__list_events", "write an email": "post__send_mail", "bicycle": "odder__zip", "zap": "odd__zap", "GET_EVENT": "cal__get_event",
	} {
		if got := found(index.Search(words, 3, nil)); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, want %s", words, got, want)
		}
	}
}
