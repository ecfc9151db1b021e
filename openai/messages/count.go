package messages

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// What is not text counts for so many tokens, about what APIs take for a picture of
// middle size and for a document of a few pages.
const (
	pictureTokens  = 1600
	documentTokens = 6000
)

// Count returns about how many tokens the request has for a model: a third of the bytes of
// its texts, since only the model's own tokeniser knows. Streams begin with it, so that
// texts are not looked through. Tools of servers that are not in the request do not count.
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
		tokens += thirds(tool)
	}
	return tokens
}

func (b block) tokens() (tokens int) {
	switch b.kind {
	case "image":
		return pictureTokens
	case "document":
		if source, err := b.source(); err == nil && source.kind == "text" {
			return thirds(source.Get("data"))
		}
		return documentTokens
	case "tool_use", "mcp_tool_use":
		return 8 + thirds(b.Get("name")) + thirds(b.Get("input"))
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
		return thirds(b.Get("thinking"))
	}
	return thirds(b.Get("text"))
}

// thirds is a third of the bytes of a value, without the quotes of a text.
func thirds(value json.RawMessage) int {
	n := len(value)
	if rawjson.Kind(value) == '"' {
		n -= len(`""`)
	}
	return model.TokensIn(n)
}
