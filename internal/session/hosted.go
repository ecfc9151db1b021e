package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/text/invalid"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
)

// Hosted says which tools of MCP servers do what clients declare as the API's own: what
// OpenAI and Anthropic run on their own servers for their own models.
type Hosted struct {
	WebSearch WebSearch `yaml:"web_search" doc:"The tool that searches the web for clients that declare web_search, in the Responses API and in Messages."`
}

// WebSearch maps a search of the web to a tool.
type WebSearch struct {
	Tool    string `yaml:"tool" doc:"The tool that searches, as label__name; none without it. It is judged, limited and written down under this name."`
	Query   string `yaml:"query" doc:"The tool's parameter that takes what is searched for."`
	Results string `yaml:"results" doc:"JSON pointer to the list of results in the tool's structured content, or in its text where that is JSON."`
	URL     string `yaml:"url" doc:"The member of a result that has the page's address."`
	Title   string `yaml:"title" doc:"The member that has its title."`
	Text    string `yaml:"text" doc:"The member that has a part of its text."`
}

// DefaultHosted is what is not said of hosted tools.
var DefaultHosted = Hosted{WebSearch{Query: "query", Results: "/results", URL: "url", Title: "title", Text: "snippet"}}

// Validate reports what cannot be a mapping.
func (w *WebSearch) Validate() error {
	label, name, ok := qualified.Split(w.Tool)
	switch {
	case *w == DefaultHosted.WebSearch: // none
	case w.Tool == "":
		return invalid.Key("tool", "say which tool searches, as label__name")
	case !ok || label == "" || name == "" || strings.ContainsAny(w.Tool, "*?"):
		return invalid.Key("tool", fmt.Sprintf("%q is not a tool; one is label__name, such as search__web", w.Tool))
	case w.Results != "" && w.Results[0] != '/':
		return invalid.Key("results", fmt.Sprintf("%q is not a JSON pointer; one begins with /, or is empty for the whole", w.Results))
	case w.Query == "" || w.URL == "":
		return invalid.Key("query", "query and url need a name")
	}
	return nil
}

// Server returns the label of the tool's server; empty where no tool is mapped.
func (w WebSearch) Server() string { return w.search().Server }

func (w WebSearch) search() hosted.Search {
	s := hosted.Search{Query: w.Query, Results: w.Results, URL: w.URL, Title: w.Title, Text: w.Text}
	s.Server, s.Original, _ = qualified.Split(w.Tool)
	return s
}

// Lacks says why nothing would search with the tools that the gateway offers; nil where
// something does.
func (w WebSearch) Lacks(tools []dragoman.Tool) error {
	s := w.search()
	i := slices.IndexFunc(tools, func(t dragoman.Tool) bool { return s.Does(&t) })
	if i < 0 {
		return fmt.Errorf("server %q offers no tool %q", s.Server, s.Original)
	}
	input, err := rawjson.ParseObject(tools[i].Input())
	if err != nil {
		return nil // why it cannot be offered is said where tools are
	}
	if properties, err := rawjson.ParseObject(input.Get("properties")); err == nil && properties.Get(s.Query) == nil {
		return fmt.Errorf("%s has no parameter %q; query names the one that takes what is searched for", w.Tool, s.Query)
	}
	return nil
}

// reached returns the selection of a request with what a hosted tool needs.
func (o *Opener) reached(who gate.Client, want Want) catalog.Selection {
	s := o.o.Hosted.WebSearch.search()
	searches := catalog.Choice{Server: s.Server, Tools: []string{s.Original}} // nothing where no tool does
	switch {
	case want.SearchOnly:
		return catalog.Selection{searches}
	case len(want.Servers) > 0 && o.hosts(who, want):
		return append(slices.Clip(want.Servers), searches)
	}
	return want.Servers
}

// hosts reports whether a request is to have web_search.
func (o *Opener) hosts(who gate.Client, want Want) bool {
	s := o.o.Hosted.WebSearch.search()
	return want.WebSearch != nil && o.o.Servers[s.Server] && o.o.Gate.Reaches(who, s.Server)
}

// hosting returns the stack with web_search, where a request is to have it.
func (o *Opener) hosting(who gate.Client, tools dragoman.Toolset, want Want) dragoman.Toolset {
	if !o.hosts(who, want) {
		return tools
	}
	return &hosting{Toolset: tools, search: o.o.Hosted.WebSearch.search(), wanted: *want.WebSearch, chosen: want.Servers, opener: o}
}

// hosting is a stack in which a tool of a server searches the web for a client that
// declares web_search. The model is offered the tool under that name, and no more under
// its own, unless the request names it. Below, a call is the tool's own in every respect.
type hosting struct {
	dragoman.Toolset
	search hosted.Search
	wanted hosted.Wanted
	chosen catalog.Selection // what the request names; empty for all
	opener *Opener
	used   atomic.Int64
}

// List returns the list with web_search in it, where its tool is there.
func (h *hosting) List(ctx context.Context) (*dragoman.List, error) {
	inner, err := h.Toolset.List(ctx)
	if err != nil || inner.Tools == nil {
		return inner, err
	}
	// A selection has lists of its own, so the list says what was chosen.
	if list := h.opener.hosted.Get(inner, func() *dragoman.List { return h.list(inner) }); list != nil {
		return list, nil
	}
	return inner, nil
}

// list makes the list; nil where the tool is not there.
func (h *hosting) list(inner *dragoman.List) *dragoman.List {
	all := inner.Tools.All()
	n := slices.IndexFunc(all, func(t dragoman.Tool) bool { return h.search.Does(&t) })
	if n < 0 {
		return nil
	}
	tools := slices.Clone(all)
	does := tools[n]
	if len(h.chosen) == 0 || !h.chosen.Chooses(&does) {
		tools = slices.Delete(tools, n, n+1)
	}
	if does.Quarantined == nil {
		name := hosted.WebSearch
		for i := 2; inner.Tools.Exact(name) != nil; i++ {
			name = fmt.Sprintf("%s_%d", hosted.WebSearch, i)
		}
		tools = append(tools, h.search.Tool(&does, name))
	}
	list := *inner
	list.Tools = dragoman.NewTools(tools)
	return &list
}

// Call runs web_search as what it stands for.
func (h *hosting) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if !hosted.Is(call.Tool) {
		return h.Toolset.Call(ctx, call)
	}
	refused := func(code, message string) (dragoman.Result, error) {
		return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: code, Message: message}}, nil
	}
	inner, err := h.Toolset.List(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	all := inner.Tools.All()
	n := slices.IndexFunc(all, func(t dragoman.Tool) bool { return h.search.Does(&t) })
	query := strings.TrimSpace(hosted.Query(call.Arguments))
	switch {
	case n < 0 || all[n].Pin != call.Tool.Pin:
		return refused(dragoman.CodeUnknownTool, "The tool that searches is not there any more, or another one now, so nothing was searched for.")
	case query == "":
		return refused(dragoman.CodeInvalidArguments, "The query is empty. Say what to search for.")
	case call.Answers == nil && h.wanted.Most > 0 && h.used.Add(1) > int64(h.wanted.Most):
		return refused(dragoman.CodeBudget, "The request allows no further searches, so nothing was searched for.")
	}
	call.Tool, call.Arguments = &all[n], h.search.Arguments(query)
	res, err := h.Toolset.Call(ctx, call)
	return h.search.Shape(res, h.wanted), err
}
