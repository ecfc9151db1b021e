package messages

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
)

// isSearch reports whether tools of a kind search the web.
func isSearch(kind string) bool { return strings.HasPrefix(kind, "web_search_") }

// readSearch reads a tool that searches the web. Where no tool of ours does it, it is
// left out without a word: clients declare it by default, and a request is as good
// without.
func (r *Request) readSearch(o *rawjson.Object, param string) (err error) {
	r.Search, err = hosted.Read(o, param)
	return err
}

// searchUse returns the block of a search that is about to be made.
func searchUse(id string, run *dragoman.Call) *rawjson.Object {
	return members("type", "server_tool_use", "id", id, "name", hosted.WebSearch, "input", members("query", hosted.Query(run.Arguments)))
}

// searchResult returns the block of what came of a search. The text of a page is sealed:
// it comes back with the history, and is the model's to read.
func (c *Conversation) searchResult(id string, run *dragoman.Call, res *dragoman.Result) *rawjson.Object {
	if code := searchFault(run, res); code != "" {
		return members("type", "web_search_tool_result", "tool_use_id", id,
			"content", members("type", "web_search_tool_result_error", "error_code", code))
	}
	var pages []json.RawMessage
	for _, page := range hosted.Results(res.Content) {
		pages = append(pages, members("type", "web_search_result", "url", page.URL, "title", page.Title,
			"encrypted_content", c.thoughts.closePage(page), "page_age", null).Bytes())
	}
	return members("type", "web_search_tool_result", "tool_use_id", id, "content", rawjson.AppendArray(nil, pages))
}

// searchFault returns the API's word for why a search found nothing; empty for one that
// went well.
func searchFault(run *dragoman.Call, res *dragoman.Result) string {
	problem := run.Problem
	if problem == nil {
		problem = res.Problem
	}
	switch {
	case problem == nil && res.Asks == nil && !res.Failed:
		return ""
	case problem == nil:
	case problem.Code == dragoman.CodeBudget:
		return "max_uses_exceeded"
	case problem.Code == dragoman.CodeInvalidArguments:
		return "invalid_tool_input"
	case problem.Code == dragoman.CodeRateLimited:
		return "too_many_requests"
	}
	return "unavailable"
}

// found returns what a search of the history found, as the model read it. Of a page whose
// seal is not ours only the address is known.
func (t *translator) found(b block) []byte {
	pages, err := rawjson.Elements(b.Get("content"))
	if err != nil {
		return rawjson.Quote(failure("The search failed."))
	}
	var found []hosted.Result
	for _, raw := range pages {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		page := block{Object: o}
		found = append(found, t.thoughts.openPage(hosted.Result{URL: page.text("url"), Title: page.text("title")}, page.text("encrypted_content")))
	}
	return rawjson.Quote(string(hosted.Document(found)))
}

func (t thoughts) page(p hosted.Result) []byte {
	return seal.Bind([]byte(t.owner), []byte("page"), []byte(p.URL), []byte(p.Title))
}

// closePage seals the text of a page that a search found.
func (t thoughts) closePage(p hosted.Result) string {
	return base64.StdEncoding.EncodeToString(t.ring.Close(seal.Item, t.page(p), []byte(p.Text), time.Time{}))
}

// openPage returns a page with its text, where that is sealed for it.
func (t thoughts) openPage(p hosted.Result, sealed string) hosted.Result {
	closed, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return p
	}
	if text, err := t.ring.Open(seal.Item, t.page(p), closed); err == nil {
		p.Text = string(text)
	}
	return p
}
