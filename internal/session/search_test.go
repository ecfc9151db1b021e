package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// many are tools of two servers, one of them with a long description, beside one in
// quarantine.
func many() *listed {
	var all []dragoman.Tool
	for i := range 30 {
		entry := fmt.Sprintf(`{"name":"ticket_%02d","description":"Works on tickets.","inputSchema":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}`, i)
		all = append(all, dragoman.ReadTool("tracker", []byte(entry)))
	}
	long := `{"name":"import","description":"` + strings.Repeat("Imports invoices. ", 2000) + `","inputSchema":{"type":"object"}}`
	all = append(all, dragoman.ReadTool("books", []byte(long)), dragoman.ReadTool("books", []byte(`{"name":"export","description":"Exports invoices.","inputSchema":{"type":"object"}}`)),
		dragoman.ReadTool("books", []byte(`{"name":"invoices","description":"Lists invoices.","inputSchema":7}`)))
	return &listed{&dragoman.List{Tools: dragoman.NewTools(catalog.Name(all, catalog.Config{}))}}
}

// found is what find_tools answers.
type found struct {
	Tools []json.RawMessage
	More  []struct{ Name string }
	Hint  string
}

// findTools calls find_tools in a session.
func findTools(t *testing.T, s *Session, query string) (dragoman.Result, found) {
	t.Helper()
	arguments, _ := json.Marshal(map[string]string{"query": query})
	tool := &dragoman.Tool{Name: model.FindTools, Original: model.FindTools, Declared: dragoman.ReadOnly}
	res, err := s.Call(t.Context(), dragoman.Call{Tool: tool, Arguments: arguments}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var content struct{ StructuredContent found }
	if res.Problem == nil {
		if err := json.Unmarshal(res.Content, &content); err != nil {
			t.Fatal(err)
		}
	}
	return res, content.StructuredContent
}

func names(f found) (whole, more []string) {
	for _, raw := range f.Tools {
		var tool struct{ Name string }
		_ = json.Unmarshal(raw, &tool)
		whole = append(whole, tool.Name)
	}
	for _, b := range f.More {
		more = append(more, b.Name)
	}
	return whole, more
}

func TestFindTools(t *testing.T) {
	opener := New(Options{Tools: Shared(many()), Servers: map[string]bool{"books": true, "tracker": true}, Dialects: dialect.Builtin(), Search: model.Search{When: model.Always}})
	s, err := opener.Open(t.Context(), caller.Local, Want{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Search.When != model.Always {
		t.Errorf("the session searches %q", s.Search.When)
	}
	_, got := findTools(t, s, "work on a ticket")
	whole, more := names(got)
	if len(whole) != 5 || len(more) != 15 || got.Hint == "" {
		t.Errorf("%d matches whole, %d brief, hint %q", len(whole), len(more), got.Hint)
	}
	if diff := cmp.Diff(`{"name":"tracker__ticket_00","description":"Works on tickets.","input_schema":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}`, string(got.Tools[0])); diff != "" {
		t.Error(diff)
	}
	_, got = findTools(t, s, "tracker__ticket_29")
	if whole, _ = names(got); whole[0] != "tracker__ticket_29" {
		t.Errorf("by its name are found %v", whole)
	}

	// One that is large does not push the others out, nor is it lost; one in
	// quarantine is not found.
	_, got = findTools(t, s, "exports")
	if whole, _ = names(got); len(whole) != 1 || whole[0] != "books__export" {
		t.Errorf("found %v", whole)
	}
	_, got = findTools(t, s, "imports invoices")
	whole, more = names(got)
	if diff := cmp.Diff([][]string{{"books__import"}, {"books__export"}}, [][]string{whole, more}); diff != "" {
		t.Error(diff)
	}

	_, got = findTools(t, s, "qwertz")
	if len(got.Tools) != 0 || !strings.HasPrefix(got.Hint, "No tool matches.") {
		t.Errorf("found %+v", got)
	}
	_, got = findTools(t, s, "work on qwertz and asdf")
	if !strings.HasPrefix(got.Hint, "No tool knows the words qwertz, asdf: ") || !strings.HasSuffix(got.Hint, "search for its name.") {
		t.Errorf("two words that nothing has: %q", got.Hint)
	}
	if res, _ := findTools(t, s, " "); res.Problem == nil || res.Problem.Code != dragoman.CodeInvalidArguments {
		t.Errorf("an empty query: %+v", res)
	}
}

// A tool without an input schema is found like others, and hides none.
func TestFindToolsWithoutASchema(t *testing.T) {
	tools := &listed{&dragoman.List{Tools: dragoman.NewTools(catalog.Name([]dragoman.Tool{
		dragoman.ReadTool("books", []byte(`{"name":"export","description":"Exports invoices.","inputSchema":{"type":"object"}}`)),
		dragoman.ReadTool("books", []byte(`{"name":"status","description":"Says how invoices are."}`)),
	}, catalog.Config{}))}}
	opener := New(Options{Tools: Shared(tools), Servers: map[string]bool{"books": true}, Dialects: dialect.Builtin()})
	for _, client := range []bool{false, true} {
		s, err := opener.Open(t.Context(), caller.Local, Want{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		res, _ := findTools(t, s, "invoices")
		for _, want := range []string{"books__export", "books__status"} {
			if !strings.Contains(string(res.Content), want) {
				t.Errorf("client %t: %s is not found: %s %v", client, want, res.Content, res.Problem)
			}
		}
	}
}

// A request that chose its servers finds nothing of others.
func TestFindToolsAmongTheChosen(t *testing.T) {
	opener := New(Options{Tools: Shared(many()), Servers: map[string]bool{"books": true, "tracker": true}, Dialects: dialect.Builtin()})
	s, err := opener.Open(t.Context(), caller.Local, Want{Servers: catalog.Selection{{Server: "books", Tools: []string{"export"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{"ticket": nil, "invoices": {"books__export"}, "tracker__ticket_03": nil} {
		_, got := findTools(t, s, query)
		if whole, _ := names(got); !cmp.Equal(whole, want) {
			t.Errorf("%q finds %v, want %v", query, whole, want)
		}
	}
}

// Whatever form a model reads, names and schemas are in it.
func TestFoundToolsInEveryProfile(t *testing.T) {
	opener := New(Options{Tools: Shared(many()), Servers: map[string]bool{}, Dialects: dialect.Builtin()})
	s, err := opener.Open(t.Context(), caller.Local, Want{})
	if err != nil {
		t.Fatal(err)
	}
	res, _ := findTools(t, s, "ticket")
	for _, profile := range []result.Profile{result.Envelope, result.Text, result.Structured, result.Raw} {
		text := (&result.Shape{Profile: profile}).Message(dragoman.Call{}, res).Text
		for _, want := range []string{"tracker__ticket_00", "tracker__ticket_04", "integer", "tracker__ticket_19"} {
			if !strings.Contains(text, want) {
				t.Errorf("as %s it does not have %s: %.300s", profile, want, text)
			}
		}
	}
}

// A set says when to search for whoever uses it alone, model or client; an address
// says it for a client, whatever sets and the configuration say.
func TestWhenToSearch(t *testing.T) {
	opener := New(Options{
		Tools: Shared(many()), Servers: map[string]bool{"books": true, "tracker": true}, Dialects: dialect.Builtin(),
		Sets:      map[string]catalog.Selection{"all": {{Server: "books"}, {Server: "tracker"}}, "some": {{Server: "books"}}},
		SetSearch: map[string]model.SearchWhen{"all": model.Always},
		Search:    model.Search{When: model.Auto, Tokens: 7, Always: model.Keep("books__*")}, Clients: model.Never,
	})
	set := func(names ...string) (s catalog.Selection) {
		for _, name := range names {
			s = append(s, catalog.Choice{Server: SetPrefix + name})
		}
		return s
	}
	for _, tc := range []struct {
		want Want
		when model.SearchWhen
	}{
		{Want{}, model.Auto},
		{Want{Client: true}, model.Never},
		{Want{Servers: set("all")}, model.Always},
		{Want{Servers: set("some")}, model.Auto},
		{Want{Servers: set("all", "some")}, model.Auto},
		{Want{Client: true, Servers: set("all")}, model.Always},
		{Want{Client: true, Servers: set("all"), Search: model.Never}, model.Never},
		{Want{Client: true, Search: model.Auto}, model.Auto},
	} {
		s, err := opener.Open(t.Context(), caller.Local, tc.want)
		if err != nil || s.Search.When != tc.when || s.Search.Tokens != 7 || !s.Search.Always.Keeps(&dragoman.Tool{Server: "books", Original: "x"}) {
			t.Errorf("%+v: %+v, %v; want %s", tc.want, s.Search, err, tc.when)
		}
	}
}
