package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/schema"
)

type member struct {
	ID     string    `json:"id" md:"id"`
	Name   string    `json:"name" md:"name"`
	Joined time.Time `json:"joined"`
	Seen   int64     `json:"seen" md:"time" title:"Last seen"`
	Avatar string    `json:"avatar" md:"-"`
	Roles  []string  `json:"roles" enum:"admin,guest"`
	Boss   *member   `json:"boss,omitempty"`
}

type team struct {
	Team    string            `json:"team" md:"name"`
	Note    string            `json:"note,omitempty"`
	Members []member          `json:"members"`
	Links   map[string]string `json:"links,omitempty"`
}

func ada() member {
	return member{ID: "U1", Name: "Ada", Joined: time.Date(2024, 1, 15, 11, 30, 0, 0, time.FixedZone("", 3600)), Seen: 1705314600, Avatar: "https://x", Roles: []string{"admin"}}
}

func teamServer(t *testing.T, t1 Tool, out team) func(arguments string) outcome {
	s := newServer(t, Options{})
	t1.Name, t1.Description, t1.Hints, t1.Markdown = "get_team", "A team.", reading, true
	Add(s, t1, func(context.Context, struct{}) (team, error) { return out, nil })
	session := dial(t, s, legacy, nil)
	return func(arguments string) outcome { return call(t, session, "get_team", arguments) }
}

func TestMarkdown(t *testing.T) {
	bob := ada()
	bob.ID, bob.Name, bob.Roles, bob.Boss = "U2", "Bob", nil, new(ada())
	get := teamServer(t, Tool{Title: "Team"}, team{Team: "Core", Note: "two\nlines", Members: []member{ada(), bob}, Links: map[string]string{"wiki": "https://w"}})
	got := get(`{"response_format":"markdown"}`)
	want := `# Team

- **Team**: Core

## Note

> two
> lines

## Members

### Ada (U1)

- **Joined**: 2024-01-15 10:30:00 UTC
- **Last seen**: 2024-01-15 10:30:00 UTC
- **Roles**: admin

### Bob (U2)

- **Joined**: 2024-01-15 10:30:00 UTC
- **Last seen**: 2024-01-15 10:30:00 UTC
- **Roles**: none

#### Boss: Ada (U1)

- **Joined**: 2024-01-15 10:30:00 UTC
- **Last seen**: 2024-01-15 10:30:00 UTC
- **Roles**: admin

## Links

- **Wiki**: https://w
`
	if diff := cmp.Diff(want, got.text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(got.data, `"avatar":"https://x"`) {
		t.Errorf("structured data: %s", got.data)
	}
}

func TestDeepMarkdown(t *testing.T) {
	s := newServer(t, Options{})
	type tree struct {
		Name string `json:"name" md:"name"`
		Size int    `json:"size"`
		Kids []tree `json:"kids,omitempty"`
	}
	Add(s, Tool{Name: "get_tree", Description: "x", Hints: reading, Markdown: true}, func(context.Context, struct{}) (tree, error) {
		return tree{"a", 1, []tree{{"b", 2, []tree{{"c", 3, []tree{{"d", 4, nil}, {"e", 5, []tree{{"f", 6, nil}}}}}}}}}, nil
	})
	got := call(t, dial(t, s, legacy, nil), "get_tree", `{"response_format":"markdown"}`)
	want := "- **Name**: a\n- **Size**: 1\n\n## Kids\n\n### b\n\n- **Size**: 2\n\n#### Kids\n\n- c; Size: 3\n  - d; Size: 4\n  - e; Size: 5\n    - f; Size: 6\n"
	if diff := cmp.Diff(want, got.text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

type report struct {
	Lines []string `json:"lines"`
}

func (r report) Summary() string {
	return fmt.Sprintf("%d lines; they are in structuredContent.", len(r.Lines))
}
func (r report) Markdown() string { return "own: " + strings.Join(r.Lines, "/") }

func TestSummary(t *testing.T) {
	s := newServer(t, Options{})
	long := strings.Repeat("x", 900)
	make1 := func(context.Context, struct{}) (report, error) { return report{[]string{"a", "b"}}, nil }
	Add(s, Tool{Name: "get_report", Description: "x", Hints: reading, Markdown: true}, make1)
	Add(s, Tool{Name: "get_marks", Description: "x", Hints: reading}, func(context.Context, struct{}) (report, error) {
		return report{[]string{"<b> & 'c'"}}, nil
	})
	Add(s, Tool{Name: "get_summary", Description: "x", Hints: reading, SummaryOnly: true}, make1)
	Add(s, Tool{Name: "get_long", Description: "x", Hints: reading, Markdown: true, Characters: 2000}, func(context.Context, struct{}) (report, error) {
		return report{[]string{long, long, long}}, nil
	})
	session := dial(t, s, legacy, nil)
	if got := call(t, session, "get_report", `{}`); got.text != "2 lines; they are in structuredContent.\n"+`{"lines":["a","b"]}` {
		t.Errorf("both: %s", got.text)
	}
	if got := call(t, session, "get_marks", `{}`); !strings.HasSuffix(got.text, `{"lines":["<b> & 'c'"]}`) {
		t.Errorf("escapes: %s", got.text)
	}
	got := call(t, session, "get_summary", `{}`)
	if got.text != "2 lines; they are in structuredContent." || got.data != `{"lines":["a","b"]}` {
		t.Errorf("alone: %+v", got)
	}
	if got := call(t, session, "get_report", `{"response_format":"markdown"}`); got.text != "own: a/b" {
		t.Errorf("own Markdown: %s", got.text)
	}
	// What was cut is not what the author would render.
	if got := call(t, session, "get_long", `{"response_format":"markdown"}`); strings.Contains(got.text, "own:") || utf8.RuneCountInString(got.text) > 2000 {
		t.Errorf("cut Markdown of %d characters: %s", utf8.RuneCountInString(got.text), got.text)
	}
}

type pointed struct {
	N int `json:"n"`
}

func (p *pointed) Summary() string  { return fmt.Sprint("the number is ", p.N) }
func (p *pointed) Markdown() string { return fmt.Sprint("own: ", p.N) }

// TestMethodsOfPointers has the methods of results on pointers, and results of either kind.
func TestMethodsOfPointers(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "get_value", Description: "x", Hints: reading, Markdown: true}, func(context.Context, struct{}) (pointed, error) { return pointed{7}, nil })
	Add(s, Tool{Name: "get_pointer", Description: "x", Hints: reading, Markdown: true}, func(context.Context, struct{}) (*pointed, error) { return &pointed{7}, nil })
	session := dial(t, s, legacy, nil)
	for _, tool := range []string{"get_value", "get_pointer"} {
		if got := call(t, session, tool, `{}`); got.text != "the number is 7\n{\"n\":7}" {
			t.Errorf("%s: %s", tool, got.text)
		}
		if got := call(t, session, tool, `{"response_format":"markdown"}`); got.text != "own: 7" {
			t.Errorf("%s as Markdown: %s", tool, got.text)
		}
	}
}

// TestCut holds, for results of several forms and any limit, that what goes out
// is within the limit, valid by its own schema, and says what is missing.
func TestCut(t *testing.T) {
	members := make([]member, 300)
	for i := range members {
		members[i] = ada()
		members[i].Name = strings.Repeat("é", i%7)
	}
	links := map[string]string{}
	for i := range 500 {
		links[fmt.Sprintf("link%03d", i)] = strings.Repeat("y", 100)
	}
	for name, tt := range map[string]struct {
		out  team
		note string
	}{
		"list":  {team{Members: members}, "of 300 items of members"},
		"text":  {team{Note: strings.Repeat("ü", 100_000)}, "of 100000 characters of note"},
		"map":   {team{Links: links}, "of 500 members of links"},
		"mixed": {team{Note: strings.Repeat("x", 30_000), Members: members, Links: links}, "of 30000 characters of note"},
	} {
		for _, limit := range []int{1000, 2500, 25_000} {
			t.Run(fmt.Sprintf("%s %d", name, limit), func(t *testing.T) {
				got := teamServer(t, Tool{Characters: limit, Advice: "Ask for a smaller team."}, tt.out)(`{}`)
				if got.failed {
					t.Fatal(got.text)
				}
				if n := utf8.RuneCountInString(got.text); n > limit || n < limit/3 {
					t.Errorf("%d characters, limit %d", n, limit)
				}
				var said struct {
					Truncated bool
					Message   string `json:"truncation_message"`
				}
				if err := json.Unmarshal([]byte(got.text), &said); err != nil {
					t.Fatal(err)
				}
				if !said.Truncated || !strings.Contains(said.Message, tt.note) || !strings.HasSuffix(said.Message, "Ask for a smaller team.") {
					t.Errorf("said %+v", said)
				}
				if got := teamServer(t, Tool{Characters: limit}, tt.out)(`{"response_format":"markdown"}`); utf8.RuneCountInString(got.text) > limit || !strings.Contains(got.text, "> The result had") {
					t.Errorf("Markdown of %d characters: %s", utf8.RuneCountInString(got.text), got.text)
				}
			})
		}
	}
}

func TestCutKeepsTheSchema(t *testing.T) {
	s := newServer(t, Options{})
	type strict struct {
		Four []string `json:"four" min:"4" pattern:"^x*$"`
		Enum string   `json:"enum" enum:"long-long-long-long-long-long-long-long-long-long-long-long-long-long"`
		Min  string   `json:"min" min:"100"`
		Rest []string `json:"rest"`
	}
	out := strict{Enum: "long-long-long-long-long-long-long-long-long-long-long-long-long-long", Min: strings.Repeat("m", 3000)}
	for range 9 {
		out.Four = append(out.Four, strings.Repeat("x", 80))
		out.Rest = append(out.Rest, strings.Repeat("r", 500))
	}
	Add(s, Tool{Name: "get_strict", Description: "x", Hints: reading, Characters: 1500}, func(context.Context, struct{}) (strict, error) { return out, nil })
	got := call(t, dial(t, s, legacy, nil), "get_strict", `{}`)
	if got.failed || utf8.RuneCountInString(got.text) > 1500 {
		t.Fatal(got.text)
	}
	raw, err := OutputSchema[strict]()
	if err != nil {
		t.Fatal(err)
	}
	if bad := schema.NewValidator(raw).Validate(json.RawMessage(got.text)); len(bad) > 0 {
		t.Errorf("%v in %s", bad, got.text)
	}
	out.Four = append(out.Four[:0], strings.Repeat("x", 900), strings.Repeat("x", 900), strings.Repeat("x", 900), "")
	if got := call(t, dial(t, s, legacy, nil), "get_strict", `{}`); !got.failed || !strings.Contains(got.text, "cannot be cut to 1500 in a useful way. Ask for something narrower.") {
		t.Errorf("what cannot be cut: %s", got.text)
	}
}

// TestCutKeepsItemsApart has texts that differ at their ends alone, in a list of different
// items.
func TestCutKeepsItemsApart(t *testing.T) {
	type lines struct {
		Lines []string `json:"lines" unique:"true"`
	}
	var out lines
	for i := range 20 {
		out.Lines = append(out.Lines, strings.Repeat("x", 3000)+strconv.Itoa(i))
	}
	s := newServer(t, Options{})
	Add(s, Tool{Name: "get_lines", Description: "x", Hints: reading}, func(context.Context, struct{}) (lines, error) { return out, nil })
	session := dial(t, s, legacy, nil)
	if got := call(t, session, "get_lines", `{}`); got.failed || !strings.Contains(got.text, "of 20 items of lines") {
		t.Errorf("%.300s", got.text)
	}
	for i := range out.Lines { // one is too long, and alone it is like no other
		out.Lines[i] = strings.Repeat("x", 30_000) + strconv.Itoa(i)
	}
	if got := call(t, session, "get_lines", `{}`); got.failed || !strings.Contains(got.text, "1 of 20 items of lines, 2000 of 30001 characters of lines.0") {
		t.Errorf("of long ones: %.300s", got.text)
	}
}

// TestCutMap holds that a map that was cut fits the schema that was announced, also where
// its items are neither texts nor booleans.
func TestCutMap(t *testing.T) {
	counts, choices, trees := map[string]int{"truncated": 7}, map[string]choice{}, grove{}
	for i := range 500 {
		name := fmt.Sprintf("word%03d", i)
		counts[name], choices[name], trees[name] = i, choice{"a"}, grove{"x": nil}
	}
	s := newServer(t, Options{Characters: 2000})
	Add(s, Tool{Name: "count_words", Description: "x", Hints: reading}, func(context.Context, struct{}) (map[string]int, error) { return counts, nil })
	Add(s, Tool{Name: "get_counts", Description: "x", Hints: reading}, func(context.Context, struct{}) (map[string]int, error) {
		return map[string]int{"truncated": 7}, nil
	})
	Add(s, Tool{Name: "get_choices", Description: "x", Hints: reading}, func(context.Context, struct{}) (map[string]choice, error) { return choices, nil })
	Add(s, Tool{Name: "get_trees", Description: "x", Hints: reading}, func(context.Context, struct{}) (grove, error) { return trees, nil })
	session := dial(t, s, legacy, nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		got := call(t, session, tool.Name, `{}`)
		if got.failed || strings.Contains(got.text, "truncation_message") != (tool.Name != "get_counts") {
			t.Errorf("%s: %s", tool.Name, got.text)
		}
		raw, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		if bad := schema.NewValidator(raw).Validate(json.RawMessage(got.data)); len(bad) > 0 {
			t.Errorf("%s: %v: %s breaks %s", tool.Name, bad, got.data, raw)
		}
	}
}

type grove map[string]grove

type choice struct {
	Of string `json:"of" enum:"a,b"`
}

// TestOwnTruncated has a field where the toolkit says that a result was cut.
func TestOwnTruncated(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "get_own", Description: "x", Hints: reading}, func(context.Context, struct{}) (r struct {
		Truncated bool `json:"truncated"`
	}, err error) {
		return r, nil
	})
	if err := s.Validate(); err != nil {
		t.Errorf("of the same type: %v", err)
	}
	Add(s, Tool{Name: "get_other", Description: "x", Hints: reading}, func(context.Context, struct{}) (r struct {
		Truncated int `json:"truncated"`
	}, err error) {
		return r, nil
	})
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `result: "truncated" is how a result says that it was cut, so it is a boolean, not int`) {
		t.Errorf("of another type: %v", err)
	}
}

// TestUnwritable has results and messages that the SDK cannot write.
func TestUnwritable(t *testing.T) {
	var none *sdk.TextContent
	var log sink
	s := newServer(t, Options{Logger: loggingTo(&log)})
	for name, r := range map[string]*sdk.CallToolResult{
		"get_channel": {StructuredContent: make(chan int)},
		"get_nan":     {StructuredContent: map[string]any{"x": math.NaN()}},
		"get_half":    {StructuredContent: json.RawMessage(`{"x":`)},
		"get_nothing": {Content: []sdk.Content{nil}},
		"get_none":    {Content: []sdk.Content{none}},
	} {
		Add(s, Tool{Name: name, Description: "x", Hints: reading}, func(context.Context, struct{}) (*sdk.CallToolResult, error) { return r, nil })
		Add(s, Tool{Name: name + "_blocks", Description: "x", Hints: reading}, func(context.Context, struct{}) (Content, error) { return r.Content, nil })
		AddPrompt(s, Prompt{Name: name, Description: "x"}, func(context.Context, struct{}) (Messages, error) {
			return Messages{{Role: "user", Content: none}, nil}[min(1, len(r.Content)):], nil
		})
	}
	for _, version := range []string{legacy, modern} {
		session := dial(t, s, version, nil)
		for _, name := range []string{"get_channel", "get_nan", "get_half", "get_nothing", "get_none", "get_nothing_blocks", "get_none_blocks"} {
			if got := call(t, session, name, `{}`); !got.failed || !strings.HasPrefix(got.text, "Internal error in "+name) {
				t.Errorf("%s %s: %+v", version, name, got)
			}
		}
		if got := call(t, session, "get_nan_blocks", `{}`); got.failed {
			t.Errorf("no blocks: %+v", got)
		}
		for _, name := range []string{"get_nan", "get_none"} {
			if _, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name}); err == nil || !strings.Contains(err.Error(), "Internal error in "+name) {
				t.Errorf("%s prompt %s: %v", version, name, err)
			}
		}
	}
}

func TestLongText(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "get_text", Description: "x", Hints: reading, Characters: 1000}, func(context.Context, struct{}) (Text, error) {
		return Text(strings.Repeat("a line\n", 1000)), nil
	})
	got := call(t, dial(t, s, legacy, nil), "get_text", `{}`)
	if n := utf8.RuneCountInString(got.text); n > 1000 || n < 900 || !strings.Contains(got.text, "a line\n\n[Truncated: the first 8") && !strings.Contains(got.text, "a line\n\n\n[Truncated") && !strings.Contains(got.text, "[Truncated: the first") {
		t.Errorf("%d characters: %s", n, got.text)
	}
}

// TestLongError has errors that quote what is long: what a service said, and a name that a
// model made up.
func TestLongError(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "get_text", Description: "x", Hints: reading, Characters: 1000}, func(context.Context, struct{}) (Text, error) {
		return "", Refuse("The service said: %s", strings.Repeat("é line\n", 1000))
	})
	session := dial(t, s, legacy, nil)
	for arguments, begins := range map[string]string{
		`{}`: "The service said: é line\n",
		`{"` + strings.Repeat("k", 5000) + `":1}`: "Invalid arguments for get_text: unknown property 'kkk",
	} {
		got := call(t, session, "get_text", arguments)
		if n := utf8.RuneCountInString(got.text); !got.failed || n > 1000 || n < 900 || !strings.HasPrefix(got.text, begins) ||
			!strings.HasSuffix(got.text, "characters are shown. The rest of the error was left out.]") {
			t.Errorf("%d characters, failed %v: %s", n, got.failed, got.text)
		}
	}
}

type book struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

func TestList(t *testing.T) {
	for _, length := range []int{10, 2000, 5000} { // the last two do not fit whole pages
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			s := newServer(t, Options{})
			var all []book
			for i := range 150 {
				all = append(all, book{fmt.Sprintf("b%d", i), strings.Repeat("t", length)})
			}
			AddList(s, Tool{Name: "list_books", Title: "Books", Description: "x", Hints: reading, Markdown: true, Examples: []Example{{"All", `{}`}}},
				func(_ context.Context, q struct {
					Word string `json:"word,omitempty"`
				}, p Page) (Listing[book], error) {
					return ListOf(all, p), nil
				})
			AddList(s, Tool{Name: "scan_books", Description: "x", Hints: reading, Cursor: true},
				func(_ context.Context, _ struct{}, p Page) (Listing[book], error) {
					from := 0
					if p.Cursor != "" {
						if _, err := fmt.Sscanf(p.Cursor, "c%d", &from); err != nil {
							return Listing[book]{}, Invalid("cursor", "give the next_cursor of an earlier answer.")
						}
					}
					l := ListOf(all, Page{Limit: p.Limit, Offset: from})
					l.Total = -1
					if end := from + len(l.Items); end < len(all) {
						l.Next = fmt.Sprintf("c%d", end)
					}
					return l, nil
				})
			session := dial(t, s, legacy, nil)
			type page struct {
				Total, Count, Offset int
				Items                []book
				HasMore              bool   `json:"has_more"`
				NextOffset           *int   `json:"next_offset"`
				NextCursor           string `json:"next_cursor"`
				Truncated            bool
			}
			read := func(tool, arguments string) page {
				got := call(t, session, tool, arguments)
				if got.failed || utf8.RuneCountInString(got.text) > DefaultCharacter {
					t.Fatalf("%s %s: %.300s", tool, arguments, got.text)
				}
				var p page
				if err := json.Unmarshal([]byte(got.text), &p); err != nil {
					t.Fatal(err)
				}
				for _, b := range p.Items {
					if len(b.Text) != length {
						t.Fatalf("%s %s: %d of %d characters of %s, which no page has whole", tool, arguments, len(b.Text), length, b.Title)
					}
				}
				if p.Count != len(p.Items) || p.HasMore != (p.NextOffset != nil || p.NextCursor != "") {
					t.Fatalf("%s %s: count %d of %d, has_more %v", tool, arguments, p.Count, len(p.Items), p.HasMore)
				}
				return p
			}
			if p := read("list_books", `{}`); length == 10 && (p.Count != DefaultPage || p.Total != 150 || *p.NextOffset != 20 || p.Truncated) {
				t.Errorf("first page: %+v", p)
			} else if length > 10 && (!p.Truncated || p.Count >= DefaultPage) {
				t.Errorf("first page that was cut: %d items", p.Count)
			}
			var titles []string
			for next := 0; ; {
				p := read("list_books", fmt.Sprintf(`{"offset":%d,"limit":50}`, next))
				for _, b := range p.Items {
					titles = append(titles, b.Title)
				}
				if !p.HasMore {
					break
				}
				next = *p.NextOffset
			}
			if len(titles) != 150 || titles[149] != "b149" {
				t.Errorf("paging restored %d of 150 items", len(titles))
			}
			titles = nil
			for arguments := `{"limit":50}`; ; {
				p := read("scan_books", arguments)
				for _, b := range p.Items {
					titles = append(titles, b.Title)
				}
				if !p.HasMore {
					break
				}
				arguments = fmt.Sprintf(`{"limit":50,"cursor":%q}`, p.NextCursor)
			}
			if len(titles) != 150 || titles[149] != "b149" {
				t.Errorf("cursors restored %d of 150 items", len(titles))
			}
			for arguments, want := range map[string]string{
				`{"limit":51}`: "limit: expected a number of at most 50", `{"limit":0}`: "at least 1", `{"offset":-1}`: "offset: expected a number of at least 0",
			} {
				if got := call(t, session, "list_books", arguments); !got.failed || !strings.Contains(got.text, want) {
					t.Errorf("%s: %s", arguments, got.text)
				}
			}
			if p := read("list_books", `{"offset":1000}`); p.Count != 0 || p.HasMore || p.Items == nil {
				t.Errorf("beyond the end: %+v", p)
			}
			if p := read("list_books", `{"offset":99999999999999999999}`); p.Count != 0 || p.HasMore {
				t.Errorf("far beyond the end: %+v", p)
			}
			if got := call(t, session, "scan_books", `{"cursor":"nonsense"}`); !got.failed || !strings.Contains(got.text, "cursor: give the next_cursor") {
				t.Errorf("nonsense cursor: %s", got.text)
			}
			if got := call(t, session, "list_books", `{"limit":2,"offset":3,"response_format":"markdown"}`); !strings.HasPrefix(got.text, "# Books\n\nItems 4 to 5 of 150.\n\n### ") && !strings.Contains(got.text, "Items 4 to 5 of 150.") || !strings.Contains(got.text, "More with offset 5.") {
				t.Errorf("Markdown: %s", got.text)
			}
		})
	}
}

func TestListOfOne(t *testing.T) {
	s := newServer(t, Options{})
	AddList(s, Tool{Name: "list_books", Description: "x", Hints: reading, Characters: 1000}, func(_ context.Context, _ struct{}, p Page) (Listing[book], error) {
		return Listing[book]{Items: []book{{"a", strings.Repeat("x", 9000)}, {"b", "y"}}, Total: -1, More: true}, nil
	})
	got := call(t, dial(t, s, legacy, nil), "list_books", `{}`)
	var p struct {
		Count      int
		HasMore    bool `json:"has_more"`
		NextOffset int  `json:"next_offset"`
		Total      *int
	}
	if err := json.Unmarshal([]byte(got.text), &p); err != nil {
		t.Fatal(err)
	}
	if p.Count < 1 || !p.HasMore || p.NextOffset != p.Count || p.Total != nil {
		t.Errorf("an item that is too long alone: %+v of %s", p, got.text)
	}
}

// A Page that nobody made from arguments, such as a test's, has no items where its limit is
// none, and all that are left where it is beyond any list.
func TestListOfLimits(t *testing.T) {
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, math.MaxInt: 2} {
		if got := ListOf([]int{1, 2, 3}, Page{Limit: limit, Offset: 1}); len(got.Items) != want || got.Total != 3 {
			t.Errorf("limit %d: %+v", limit, got)
		}
	}
}

func TestListMistakes(t *testing.T) {
	if _, err := offsetReply(Listing[int]{More: true, Total: -1}, Page{Limit: 5}); err == nil {
		t.Error("more without items: no error; a model would page for ever")
	}
	if _, err := cursorReply(Listing[int]{Items: []int{1, 2}, Next: "x"}, Page{Limit: 1}); err == nil {
		t.Error("more items than a cursor page has: no error")
	}
	r, err := offsetReply(Listing[int]{Items: []int{1, 2, 3}, Total: 1}, Page{Limit: 2, Offset: 4})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.value.(offsetPage[int]); p.Count != 2 || !p.HasMore || *p.Total != 6 || *p.NextOffset != 6 {
		t.Errorf("too many items and too small a total: %+v", p)
	}
	if _, ok := errors.AsType[*Refusal](err); ok {
		t.Error("a mistake of the author is told to the model")
	}
}

// TestTotal holds text and structured data together to a limit, with summaries,
// Markdown and plain results, at any length.
// TestResultFormat has a result whose text is not of the format that its schema announces,
// which clients check as well.
func TestResultFormat(t *testing.T) {
	type contact struct {
		Mail  string   `json:"mail,omitempty" format:"email"`
		Pages []string `json:"pages" format:"uri"`
	}
	for _, tt := range []struct {
		out    contact
		failed bool
	}{
		{contact{"ada@a.example", []string{"https://a.example/"}}, false},
		{contact{}, false},
		{contact{Mail: "nobody"}, true},
		{contact{Pages: []string{""}}, true},
	} {
		s := newServer(t, Options{})
		Add(s, Tool{Name: "get_contact", Description: "x", Hints: reading}, func(context.Context, struct{}) (contact, error) { return tt.out, nil })
		if got := call(t, dial(t, s, legacy, nil), "get_contact", `{}`); got.failed != tt.failed {
			t.Errorf("%+v: failed %v: %s", tt.out, got.failed, got.text)
		}
	}
}

// TestNeverNull has a result that is null where its type says that it never is.
func TestNeverNull(t *testing.T) {
	type note struct {
		Text Optional[string] `json:"text" nullable:"false"`
	}
	for _, tt := range []struct {
		out    note
		failed bool
	}{{note{Some("x")}, false}, {note{}, true}} {
		s := newServer(t, Options{})
		Add(s, Tool{Name: "get_note", Description: "x", Hints: reading}, func(context.Context, struct{}) (note, error) { return tt.out, nil })
		if got := call(t, dial(t, s, legacy, nil), "get_note", `{}`); got.failed != tt.failed {
			t.Errorf("%+v: failed %v: %s", tt.out, got.failed, got.text)
		}
	}
}

func TestTotal(t *testing.T) {
	for _, tt := range []struct{ characters, total int }{{25_000, 0}, {25_000, 25_000}, {1000, 2000}, {2000, 3000}, {5000, 2000}} {
		for _, lines := range []int{0, 10, 40, 300, 3000} {
			s := newServer(t, Options{Characters: tt.characters, Total: tt.total})
			make1 := func(context.Context, struct{}) (report, error) {
				return report{slices.Repeat([]string{strings.Repeat("ü", 97)}, lines)}, nil
			}
			Add(s, Tool{Name: "get_report", Description: "x", Hints: reading, Markdown: true}, make1)
			Add(s, Tool{Name: "get_summary", Description: "x", Hints: reading, SummaryOnly: true}, make1)
			Add(s, Tool{Name: "get_plain", Description: "x", Hints: reading, Markdown: true}, func(context.Context, struct{}) (team, error) {
				return team{Members: slices.Repeat([]member{ada()}, lines)}, nil
			})
			session := dial(t, s, legacy, nil)
			most := max(tt.total, 2*tt.characters)
			if tt.total > 0 {
				most = tt.total
			}
			for _, arguments := range []string{`{}`, `{"response_format":"markdown"}`} {
				for _, tool := range []string{"get_report", "get_summary", "get_plain"} {
					if tool == "get_summary" && arguments != `{}` {
						continue
					}
					got := call(t, session, tool, arguments)
					text, data := utf8.RuneCountInString(got.text), utf8.RuneCountInString(got.data)
					if got.failed || text > tt.characters+1 || data > tt.characters || text+data > most+1 { // a line break joins the blocks here
						t.Errorf("%+v, %d lines, %s %s: text of %d and data of %d characters: %.200s", tt, lines, tool, arguments, text, data, got.text)
					}
				}
			}
		}
	}
	if err := newServer(t, Options{Total: 1999}).Validate(); err == nil {
		t.Error("a Total that nothing fits: no error")
	}
}
