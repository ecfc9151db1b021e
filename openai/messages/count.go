package messages

import (
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// What is not text counts for so many tokens, about what APIs take for a picture of
// middle size and for a document of a few pages.
const (
	pictureTokens  = 1600
	documentTokens = 6000
)

// Count returns about how many tokens the request has for a model: an estimate, since
// only the model's own tokeniser knows. Tools of servers that are not in the request do
// not count.
func (r *Request) Count() int {
	tokens := 3
	for _, b := range r.system {
		tokens += b.tokens()
	}
	for i := range r.turns {
		tokens += 4
		for _, b := range r.turns[i].blocks {
			tokens += b.tokens()
		}
	}
	for _, tool := range r.tools {
		tokens += result.EstimateTokens(string(tool))
	}
	return tokens
}

func (b block) tokens() (tokens int) {
	switch b.kind {
	case "image":
		return pictureTokens
	case "document":
		if source, err := b.source(); err == nil && source.kind == "text" {
			return result.EstimateTokens(source.text("data"))
		}
		return documentTokens
	case "tool_use", "mcp_tool_use":
		return 8 + result.EstimateTokens(b.text("name")+string(b.Get("input")))
	case "tool_result", "mcp_tool_result":
		if rawjson.IsNull(b.Get("content")) {
			return 4
		}
		inner, err := blocks(b.Get("content"))
		if err != nil {
			return 4
		}
		for _, each := range inner {
			tokens += each.tokens()
		}
		return tokens + 4
	case "thinking":
		return result.EstimateTokens(b.text("thinking"))
	}
	return result.EstimateTokens(b.text("text"))
}
