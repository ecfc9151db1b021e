package model

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/result"
)

// An Answer is the result of one call as the model reads it.
type Answer struct {
	// ID is the id of the call that it answers.
	ID      string
	Message result.Message
}

// Messages returns the messages that answer the calls of one message: a tool
// message for each, in order, and what must follow behind all tool messages,
// those of the client's own tools included. Most APIs drop or refuse pictures in
// tool messages, so there they follow in a message of the user's; where a user's
// message must not follow a tool message, a message of the assistant stands in
// between.
func Messages(wire *dialect.Wire, answers []Answer) (tools, after []json.RawMessage) {
	var images []json.RawMessage
	for _, a := range answers {
		var own []json.RawMessage
		for _, image := range a.Message.Images {
			own = append(own, json.RawMessage(`{"type":"image_url","image_url":{"url":`+string(rawjson.Quote(image.URL()))+`}}`))
		}
		content := rawjson.Quote(a.Message.Text)
		if wire.ImagesInTool && !wire.StringContent && len(own) > 0 {
			content = withText(a.Message.Text, own)
		} else {
			images = append(images, own...)
		}
		tools = append(tools, ChatResult(a.ID, content))
	}
	return tools, shown(wire, images)
}

// shown returns the messages that show, behind tool messages, what is no text in them;
// none for nothing.
func shown(wire *dialect.Wire, parts []json.RawMessage) (after []json.RawMessage) {
	if len(parts) == 0 {
		return nil
	}
	if wire.NoUserAfterTool {
		after = append(after, json.RawMessage(`{"role":"assistant","content":"The pictures follow."}`))
	}
	return append(after, ChatMessage("user", withText(shownFirst, parts)))
}

// shownFirst stands before what tools returned that is no text.
const shownFirst = "The pictures that the tools returned, in order:"

// withText returns content of a text and further parts.
func withText(text string, parts []json.RawMessage) json.RawMessage {
	return rawjson.AppendArray(nil, append([]json.RawMessage{textPart(text)}, parts...))
}

func textPart(text string) json.RawMessage {
	return json.RawMessage(`{"type":"text","text":` + string(rawjson.Quote(text)) + `}`)
}
