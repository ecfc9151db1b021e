package hosted

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// WebSearch is the name under which a model knows the tool, unless another one has it.
const WebSearch = "web_search"

// A Search says how a tool of a server searches the web. The zero Search is none.
type Search struct {
	// Server and Original are the label of the server, and the name of the tool there.
	Server, Original string
	// Query is the parameter of the tool that takes what is searched for, as a text.
	Query string
	// Results is a JSON pointer (RFC 6901) to the array of results in what the tool
	// returns: in its structured content, else in its first text, where that is JSON.
	Results string
	// URL, Title and Text are the members of a result.
	URL, Title, Text string
}

// Is reports whether a tool is one that [Search.Tool] made.
func Is(t *dragoman.Tool) bool { return t != nil && t.Server == "" && t.Original == WebSearch }

// Does reports whether a tool is the one that searches.
func (s Search) Does(t *dragoman.Tool) bool {
	return s.Original != "" && t.Server == s.Server && t.Original == s.Original
}

// Tool returns the tool under which a model is offered the one that searches. It is of no
// server, and changes as much, or as little, as that one. Its pin is that one's.
func (s Search) Tool(does *dragoman.Tool, name string) dragoman.Tool {
	t := dragoman.ReadTool("", json.RawMessage(`{"name":"`+WebSearch+`","title":"Search the web",`+
		`"description":"Searches the web. Returns pages with their address, title and a part of their text. Say which of them an answer is from, by their address.",`+
		`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What to search for."}},"required":["query"],"additionalProperties":false}}`))
	t.Name, t.Pin, t.Hints, t.Declared, t.ClosedWorld = name, does.Pin, does.Hints, does.Declared, does.ClosedWorld
	return t
}

// Query returns what is searched for, of the arguments of a call of [Search.Tool]; empty
// where they do not say.
func Query(arguments json.RawMessage) string {
	o, err := rawjson.ParseObject(arguments)
	if err != nil {
		return ""
	}
	query, _ := rawjson.String(o.Get("query"))
	return query
}

// Arguments returns those of the tool that searches.
func (s Search) Arguments(query string) json.RawMessage {
	o := rawjson.Object{Members: []rawjson.Member{{Name: s.Query, Value: rawjson.Quote(query)}}}
	return o.Bytes()
}

// A Result is one page that was found. Text may be empty, Title too.
type Result struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
}

// Shape brings the result of the tool that searches into the form that [Results] reads,
// without pages that the client does not want. What cannot be read as results stays as it
// is, unless the client wants some pages only: then it is not known which they are, and
// the call has failed.
func (s Search) Shape(res dragoman.Result, wanted Wanted) dragoman.Result {
	if res.Problem != nil || res.Failed || res.Asks != nil {
		return res
	}
	found, ok := s.read(res.Content)
	switch {
	case ok:
		res.Content = Content(wanted.only(found))
	case wanted.filters():
		res.Content, res.Failed = json.RawMessage(`{"content":[{"type":"text","text":"The search answered in a form in which pages cannot be told apart, and this conversation is for some sites only."}],"isError":true}`), true
	}
	return res
}

// Content returns results as the result of an MCP tool.
func Content(found []Result) json.RawMessage {
	return append(append([]byte(`{"content":[],"structuredContent":`), Document(found)...), '}')
}

// Document returns results as a model reads them.
func Document(found []Result) json.RawMessage {
	if found == nil {
		found = []Result{}
	}
	document, err := json.Marshal(struct {
		Results []Result `json:"results"`
	}{found})
	if err != nil {
		panic(err) // they are texts
	}
	return document
}

// Results returns what a call of [Search.Tool] found; nil where that is not known.
func Results(content json.RawMessage) []Result {
	found, _ := Search{Results: "/results", URL: "url", Title: "title", Text: "text"}.read(content)
	return found
}

// read reads the result of a tool.
func (s Search) read(content json.RawMessage) (found []Result, ok bool) {
	o, err := rawjson.ParseObject(content)
	if err != nil {
		return nil, false
	}
	whole := o.Get("structuredContent")
	if rawjson.IsNull(whole) {
		whole = textOf(o)
	}
	all, err := rawjson.Elements(at(whole, s.Results))
	if err != nil {
		return nil, false
	}
	found = []Result{}
	for _, each := range all {
		o, err := rawjson.ParseObject(each)
		if err != nil {
			return nil, false
		}
		r := Result{}
		r.URL, _ = rawjson.String(o.Get(s.URL))
		r.Title, _ = rawjson.String(o.Get(s.Title))
		r.Text, _ = rawjson.String(o.Get(s.Text))
		if u, err := url.Parse(r.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, false // what has no address is no page
		}
		found = append(found, r)
	}
	return found, true
}

// textOf returns the first text of a result that is JSON; nil for none.
func textOf(o *rawjson.Object) json.RawMessage {
	blocks, _ := rawjson.Elements(o.Get("content"))
	for _, raw := range blocks {
		block, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		if text, ok := rawjson.String(block.Get("text")); ok && rawjson.Check([]byte(text)) == nil {
			return json.RawMessage(text)
		}
	}
	return nil
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// at returns what a JSON pointer names; nil for nothing.
func at(document json.RawMessage, pointer string) json.RawMessage {
	if pointer == "" {
		return document
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if elements, err := rawjson.Elements(document); err == nil {
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(elements) {
				return nil
			}
			document = elements[n]
			continue
		}
		o, err := rawjson.ParseObject(document)
		if err != nil {
			return nil
		}
		document = o.Get(unescaped.Replace(token))
	}
	return document
}
