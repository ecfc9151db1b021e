package find

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"read_file":           {"read", "file"},
		"list-open.issues":    {"list", "open", "issue"},
		"getURLFor2Items":     {"get", "url", "for2", "item", "geturlfor2item"},
		"GitHub":              {"git", "hub", "github"},
		"sha256 of HTTP":      {"sha256", "of", "http"},
		"Categories, Classes": {"category", "class"},
		"status analysis gas": {"status", "analysis", "gas"},
		"branches searches":   {"branch", "search"},
		"größe Ärger":         {"größe", "ärger"},
		"天気予報":                {"天気", "気予", "予報"},
		"サーバー":                {"サー", "ーバ", "バー"},
		"날씨를 찾다":              {"날씨", "씨를", "찾다"},
		"雨":                   {"雨"},
		"ＡＰＩを呼ぶ":              {"api", "を呼", "呼ぶ"},
		"读取file内容":            {"读取", "file", "内容"},
		"":                    nil,
		"\xff_-":              nil,
	} {
		var got []string
		eachWord(text, false, func(w string) { got = append(got, w) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	single := 0
	eachWord("天気", true, func(string) { single++ })
	if single != 3 {
		t.Errorf("天気 has %d pieces for an index, want 天, 気 and 天気", single)
	}
}

// described is a tool with a description and parameters with theirs.
func described(server, original, description string, params ...string) dragoman.Tool {
	properties := map[string]any{}
	for i := 0; i+1 < len(params); i += 2 {
		properties[params[i]] = map[string]any{"type": "string", "description": params[i+1]}
	}
	entry, _ := json.Marshal(map[string]any{
		"name": original, "description": description, "inputSchema": map[string]any{"type": "object", "properties": properties},
	})
	return dragoman.ReadTool(server, entry)
}

func searched() *dragoman.Tools {
	return dragoman.NewTools(catalog.Name([]dragoman.Tool{
		described("tracker", "createIssue", "Opens a ticket.", "title", "What it is about."),
		described("tracker", "list_issues", "Lists tickets, newest first.", "assignee", "Whose tickets."),
		described("tracker", "close", "Closes an issue for good."),
		described("files", "read_text", "Reads a file.", "path", "Where the file is.", "encoding", "Such as UTF-8."),
		described("files", "write_text", "Writes a file.", "path", "Where the file is."),
		described("sky", "forecast", "How the weather will be.", "city", "A city.", "days", "How many days ahead."),
		described("tenki", "yoho", "東京の天気予報を調べます。", "都市", "都市の名前"),
		described("tianqi", "chaxun", "查询城市的天气情况", "城市", "城市名称"),
		described("nalssi", "bogi", "오늘의 날씨를 알려줍니다"),
		described("twin", "alpha", "The same words."),
		described("twin", "beta", "The same words."),
	}, catalog.Config{}))
}

func found(tools []*dragoman.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

func TestSearch(t *testing.T) {
	tools := searched()
	index := NewIndex(tools, nil)
	for words, want := range map[string]string{
		"opens an issue":   "tracker__createIssue",
		"list issues":      "tracker__list_issues",
		"whose tickets":    "tracker__list_issues",
		"write a file":     "files__write_text",
		"weather":          "sky__forecast",
		"encoding":         "files__read_text",
		"天気":               "tenki__yoho",
		"天气":               "tianqi__chaxun",
		"날씨":               "nalssi__bogi",
		"都市":               "tenki__yoho",
		"fore":             "sky__forecast", // the beginning of a word
		"files__read_text": "files__read_text",
		"CLOSE":            "tracker__close",
		"same":             "twin__alpha", // equal: as in the list
	} {
		if got := found(index.Search(words, 3, nil)); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, want %s first", words, got, want)
		}
	}
	for _, words := range []string{"", "zzz", "?!", "xy"} {
		if got := index.Search(words, 3, nil); len(got) != 0 {
			t.Errorf("%q finds %v", words, found(got))
		}
	}
	if got := index.Search("issue", 0, nil); len(got) != 0 {
		t.Errorf("no tools were wanted, got %v", found(got))
	}
	got := index.Search("twin same words", 5, func(t *dragoman.Tool) bool { return t.Original != "alpha" })
	if diff := cmp.Diff([]string{"twin__beta"}, found(got)); diff != "" {
		t.Error(diff)
	}
	if got := NewIndex(nil, nil).Search("anything", 3, nil); len(got) != 0 {
		t.Errorf("found %v among no tools", found(got))
	}
}

// TestSearchForgives: a word with one slip in it, or with another ending in a language whose
// endings are not known, finds what it would without.
func TestSearchForgives(t *testing.T) {
	index := NewIndex(dragoman.NewTools(catalog.Name([]dragoman.Tool{
		described("a", "take_screenshot", "Takes a picture of the page."),
		described("b", "calendar_view", "What is planned."),
		described("c", "spisok", "Показывает задачу проекта."),
		described("d", "price", "What it costs."),
	}, catalog.Config{})), nil)
	for words, want := range map[string]string{
		"screnshot": "a__take_screenshot", "scrinshoot": "", "screenhsot": "a__take_screenshot", "calender": "b__calendar_view",
		"задачи": "c__spisok", "prize": "", "xalendar": "",
	} {
		if got := strings.Join(found(index.Search(words, 3, nil)), " "); got != want {
			t.Errorf("%q finds %q, want %q", words, got, want)
		}
	}
	for words, want := range map[string]string{
		"get the weather forecast": "weather forecast", "calendar of Berlin": "", "crear un evento": "crear un evento", "calender": "", "天气": "", "": "", "get": "",
	} {
		if got := strings.Join(index.Unknown(words, nil), " "); got != want {
			t.Errorf("of %q nothing is known of %q, want %q", words, got, want)
		}
	}
}

// TestUnknownTellsNothingOfOthers: whether a tool that is not somebody's has a word is nobody's
// business.
func TestUnknownTellsNothingOfOthers(t *testing.T) {
	index := NewIndex(dragoman.NewTools(catalog.Name([]dragoman.Tool{described("a", "list_files", "Lists files."), described("b", "payroll", "Salaries.")}, catalog.Config{})), nil)
	mine := func(tool *dragoman.Tool) bool { return tool.Server == "a" }
	for _, words := range []string{"list payroll salary", "list qwertz asdfgh"} {
		if got, want := strings.Join(index.Unknown(words, mine), " "), strings.TrimPrefix(words, "list "); got != want {
			t.Errorf("of %q nothing is known of %q, want %q", words, got, want)
		}
	}
}

// The n best must be the first n of all, however the scores lie.
func TestSearchIsSortedAndStable(t *testing.T) {
	index := NewIndex(manyTools(500), nil)
	all := index.Search("list remote branch records", 500, nil)
	if len(all) < 50 {
		t.Fatalf("only %d matches", len(all))
	}
	for n := range 40 {
		if diff := cmp.Diff(found(all[:n]), found(index.Search("list remote branch records", n, nil))); diff != "" {
			t.Fatalf("the best %d are others: %s", n, diff)
		}
	}
	if diff := cmp.Diff(found(all), found(NewIndex(manyTools(500), nil).Search("list remote branch records", 500, nil))); diff != "" {
		t.Errorf("another index of the same tools has another order: %s", diff)
	}
}

// An index is made once for each list, also by those who ask at the same time.
func TestSearches(t *testing.T) {
	var s Searches
	list := &dragoman.List{Tools: searched(), Servers: []dragoman.Server{{Label: "sky", Instructions: "About the sky."}}}
	first := s.Of(list)
	others := make(chan *Index)
	for range 4 {
		go func() { others <- s.Of(list) }()
	}
	for range 4 {
		if got := <-others; got != first {
			t.Error("the same list has two indexes")
		}
	}
	another := func() *dragoman.List { return &dragoman.List{Tools: searched()} }
	if s.Of(another()) == first {
		t.Error("another list has the same index")
	}
	if s.Of(&dragoman.List{Tools: list.Tools, Servers: []dragoman.Server{{Label: "sky", State: dragoman.Failed, Instructions: "About the sky."}}}) != first {
		t.Error("a list with the same tools and words has another index")
	}
	if s.Of(&dragoman.List{Tools: list.Tools, Servers: []dragoman.Server{{Label: "sky", Instructions: "About clouds."}}}) == first {
		t.Error("what a server says anew is not in the index")
	}
	if s.Of(list) != first {
		t.Error("lists in turn make each other's index anew")
	}
	for range 2 * maxSearched {
		s.Of(another())
	}
	if n := len(s.kept); n != maxSearched {
		t.Errorf("%d indexes are kept", n)
	}
}

// Schemas come from strangers.
func TestSearchOfHostileSchemas(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"p":`, 5000) + `{}` + strings.Repeat(`}}`, 5000)
	wide := `{"properties":{` + strings.Repeat(`"a":{"description":"`+strings.Repeat("x", 100)+`"},`, 20000) + `"b":{}}}`
	tools := []dragoman.Tool{
		{Server: "s", Original: "deep", Name: "deep", InputSchema: []byte(deep)},
		{Server: "s", Original: "wide", Name: "wide", InputSchema: []byte(wide)},
		{Server: "s", Original: "odd", Name: "odd", InputSchema: []byte(`{"properties":[1],"items":[{"enum":["needle"]},3],"anyOf":{},"enum":7}`)},
		{Server: "s", Original: "broken", Name: "broken", InputSchema: []byte(`{"properties":`)},
	}
	index := NewIndex(dragoman.NewTools(tools), nil)
	if got := found(index.Search("needle", 2, nil)); !slices.Equal(got, []string{"odd"}) {
		t.Errorf("found %v", got)
	}
	if got := found(index.Search(strings.Repeat("broken ", 100_000), 2, nil)); !slices.Equal(got, []string{"broken"}) {
		t.Errorf("found %v", got)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("readFile", "天気予報 API", "read")
	f.Add("a__b", "\xff\xfe가나다", "ＡＢ")
	f.Fuzz(func(t *testing.T, name, description, words string) {
		tools := dragoman.NewTools([]dragoman.Tool{{Name: "one", Original: name, Description: description}, {Name: "two", Original: "two"}})
		index := NewIndex(tools, nil)
		if got := index.Search(words, 2, nil); len(got) > 2 {
			t.Errorf("%d tools for %q", len(got), words)
		}
		if got := index.Search("one", 1, nil); len(got) != 1 || got[0].Name != "one" {
			t.Errorf("a tool is not found by its name, but %v", found(got))
		}
	})
}

// TestSearchOfRealTools looks for tools of real servers by their own titles and the
// beginning of their own descriptions: what somebody would write who wants them.
func TestSearchOfRealTools(t *testing.T) {
	tools := corpus(t)
	index := NewIndex(tools, nil)
	asked, first, among := 0, 0, 0
	for i := range tools.All() {
		tool := &tools.All()[i]
		line, _, _ := strings.Cut(tool.Description, ".")
		if tool.Quarantined != nil || len(line) < 20 || len(line) > 200 {
			continue
		}
		asked++
		switch at := slices.Index(found(index.Search(line, 8, nil)), tool.Name); {
		case at == 0:
			first++
			among++
		case at > 0:
			among++
		}
	}
	t.Logf("%d tools, %d searches: %.1f%% first, %.1f%% among 8", tools.Len(), asked, 100*float64(first)/float64(asked), 100*float64(among)/float64(asked))
	if among < asked*99/100 {
		t.Errorf("only %d of %d tools are found by the first sentence of their own description", among, asked)
	}
}

// manyTools returns n tools of words as real ones have them, always the same.
func manyTools(n int) *dragoman.Tools {
	verbs := strings.Fields("list get create update delete search find read write move copy open close merge start stop send fetch check run")
	nouns := strings.Fields("file issue branch record customer order message channel page table row key bucket object secret user group event report invoice metric log trace alert document image folder commit release label")
	adjectives := strings.Fields("remote local shared public private recent archived pending active default nested related linked")
	random := rand.New(rand.NewPCG(1, 2))
	word := func(of []string) string { return of[random.IntN(len(of))] }
	tools := make([]dragoman.Tool, n)
	for i := range tools {
		verb, noun := word(verbs), word(nouns)
		description := fmt.Sprintf("Will %s the %s %s of a %s. Use it when the %s %s is %s; the answer has the %s and its %s.",
			verb, word(adjectives), noun, word(nouns), word(adjectives), word(nouns), word(adjectives), word(nouns), word(nouns))
		tools[i] = described(fmt.Sprintf("server%d", i%50), fmt.Sprintf("%s_%s_%d", verb, noun, i), description,
			word(nouns)+"_id", "The id of the "+word(nouns)+".", word(adjectives), "Only the "+word(adjectives)+" ones.")
	}
	return dragoman.NewTools(catalog.Name(tools, catalog.Config{}))
}

func BenchmarkSearch(b *testing.B) {
	index := NewIndex(manyTools(10_000), nil)
	for _, words := range []string{"merge branch", "find the most recent invoice of a customer and send it to a channel"} {
		b.Run(fmt.Sprintf("%d-words", len(strings.Fields(words))), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index.Search(words, 20, nil)
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	tools := manyTools(10_000)
	b.ReportAllocs()
	for b.Loop() {
		NewIndex(tools, nil)
	}
}
