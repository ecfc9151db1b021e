package responses

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// isSearch reports whether tools of a type search the web: web_search, and
// web_search_preview as it was called before, each perhaps with a date.
func isSearch(kind string) bool { return strings.HasPrefix(kind, "web_search") }

// Search returns what the request says of searches of the web; nil where it declares
// none.
func (r *Request) Search() *hosted.Wanted {
	if r.native {
		return nil // the model's API searches itself
	}
	_, o := r.search()
	if o == nil {
		return nil
	}
	wanted, err := hosted.Read(o, "")
	if err != nil {
		return &hosted.Wanted{} // in an item: the API does not look into those
	}
	return wanted
}

// search returns the first entry of tools that declares a search, and where it stands.
func (r *Request) search() (param string, o *rawjson.Object) {
	for at, tool := range r.declared() {
		if !isSearch(typeOf(tool)) {
			continue
		}
		if o, err := rawjson.ParseObject(tool); err == nil {
			return at.String(), o
		}
	}
	return "", nil
}

// offerSearch sees to it that a client which declares a search has one, or is one that
// can do without: Codex always declares it, with a member of its own.
func (c *Conversation) offerSearch() error {
	param, o := c.request.search()
	if o == nil || c.request.choice.mode == "none" || c.request.native {
		return nil
	}
	var tool *dragoman.Tool
	all := c.list.Tools.All()
	for i := range all {
		if hosted.Is(&all[i]) {
			tool = &all[i]
		}
	}
	named := isSearch(c.request.choice.kind)
	switch {
	case tool != nil && named:
		c.dialogue.Request.Choice.Name = tool.Name
	case tool != nil:
	case named:
		return model.Invalid("tool_choice", "There is no tool here that searches the web, so none can be chosen.")
	case o.Get("external_web_access") == nil && !c.request.choice.without(stringOf(o, "type")):
		return model.Invalid(param+".type", "There is no tool here that searches the web: the configuration maps one, or not, in hosted.web_search. Leave the tool out.")
	}
	return nil
}

// without reports whether tools of a type are outside of allowed_tools.
func (c choice) without(kind string) bool {
	for _, a := range c.only {
		if isSearch(a.kind) && isSearch(kind) {
			return false
		}
	}
	return c.only != nil
}

// A search is a search of the web that is being made.
type search struct {
	id, query string
	at        int
}

// search shows a search that is about to be made.
func (c *Conversation) search(run *dragoman.Call) {
	s := &search{id: c.answer.name("ws_"), query: hosted.Query(run.Arguments)}
	enter(&c.searches, run.ID, s)
	s.at = c.answer.add(s.item("in_progress", nil))
	place := []rawjson.Member{text("item_id", s.id), number("output_index", s.at)}
	c.answer.event("response.web_search_call.in_progress", place...)
	c.answer.event("response.web_search_call.searching", place...)
}

// item returns the search as an item.
func (s *search) item(status string, sources []json.RawMessage) json.RawMessage {
	action := rawjson.Object{Members: []rawjson.Member{
		text("type", "search"), text("query", s.query), raw("queries", array(rawjson.Quote(s.query))),
	}}
	if sources != nil {
		action.Set("sources", array(sources...))
	}
	return object(text("id", s.id), text("type", "web_search_call"), text("status", status), raw("action", action.Bytes()))
}

// found shows what came of a search.
func (c *Conversation) found(s *search, run *dragoman.Call, res *dragoman.Result) {
	delete(c.searches, run.ID)
	if res.Problem != nil || run.Problem != nil || res.Asks != nil || res.Failed {
		c.answer.done(s.at, s.item("failed", nil)) // there is no event for it
		return
	}
	pages := hosted.Results(res.Content)
	c.sources = append(c.sources, pages...)
	var sources []json.RawMessage
	if c.request.sources {
		sources = []json.RawMessage{}
		for _, page := range pages {
			sources = append(sources, object(text("type", "url"), text("url", page.URL)))
		}
	}
	c.answer.event("response.web_search_call.completed", text("item_id", s.id), number("output_index", s.at))
	c.answer.done(s.at, s.item("completed", sources))
}

// cite returns the citations in a text: the addresses in it that a search of this
// response found. Nothing else that a model says is known to be from a page. Places are
// counted in characters.
func (c *Conversation) cite(said string) (cited []json.RawMessage) {
	if len(c.sources) == 0 {
		return nil
	}
	for at := 0; at < len(said); {
		next := strings.Index(said[at:], "http")
		if next < 0 {
			break
		}
		at += next
		page := longest(c.sources, said[at:])
		if page == nil {
			at += len("http")
			continue
		}
		from := utf8.RuneCountInString(said[:at])
		cited = append(cited, object(text("type", "url_citation"), number("start_index", from),
			number("end_index", from+utf8.RuneCountInString(page.URL)), text("url", page.URL), text("title", page.Title)))
		at += len(page.URL)
	}
	return cited
}

// citations returns the pages that a message, and so what it said, cites by the word of the
// model's API. The Chat API has them one level deeper, and some of it without places: those are
// of the whole text, as clients of this one want places and a title.
func citations(message *rawjson.Object, said string) (cited []json.RawMessage) {
	given, _ := rawjson.Elements(message.Get("annotations"))
	for _, each := range given {
		o, err := rawjson.ParseObject(each)
		if err != nil || stringOf(o, "type") != "url_citation" {
			continue
		}
		page, err := rawjson.ParseObject(o.Get("url_citation"))
		if err != nil || stringOf(page, "url") == "" {
			continue
		}
		from, ok := rawjson.Int(page.Get("start_index"))
		to, okTo := rawjson.Int(page.Get("end_index"))
		if !ok || !okTo {
			from, to = 0, utf8.RuneCountInString(said)
		}
		cited = append(cited, object(text("type", "url_citation"), number("start_index", from), number("end_index", to),
			text("url", stringOf(page, "url")), text("title", stringOf(page, "title"))))
	}
	return cited
}

// longest returns the page with the longest address that a text begins with; nil for
// none.
func longest(pages []hosted.Result, said string) (page *hosted.Result) {
	for i := range pages {
		rest, ok := strings.CutPrefix(said, pages[i].URL)
		if ok && !goesOn(rest) && (page == nil || len(page.URL) < len(pages[i].URL)) {
			page = &pages[i]
		}
	}
	return page
}

// goesOn reports whether an address before a text may go on with it.
func goesOn(rest string) bool {
	rest = strings.TrimLeft(rest, ".,:;!") // ends of sentences, or parts of an address
	if rest == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(rest)
	return first >= '0' && first <= '9' || first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' || strings.ContainsRune("/?&=#%_-~+@$", first)
}
