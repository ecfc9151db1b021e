package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// agentMessage takes what one agent of the client's tells another: a message that says from whom
// it is.
func (h *history) agentMessage(o *rawjson.Object) error {
	given, err := rawjson.Elements(o.Get("content"))
	if err != nil {
		return model.Invalid(".content", "Content must be an array of parts.")
	}
	var parts []json.RawMessage
	for _, part := range given {
		if typeOf(part) != "encrypted_content" {
			parts = append(parts, part)
			continue
		}
		// An argument that is to be encrypted comes back as it was: those of models here are plain.
		said, _ := rawjson.String(rawjson.Find(part, "encrypted_content"))
		if isFernet(said) {
			h.leftOut()
		} else {
			parts = append(parts, object(text("type", "input_text"), text("text", said)))
		}
	}
	return h.toldBy(fmt.Sprintf("Message of the agent %s to the agent %s:", stringOf(o, "author"), stringOf(o, "recipient")), parts)
}

// uncalled takes what a tool of the client's says without having been called, as Codex brings
// the goal that its model is to pursue: a message that says from what it is.
func (h *history) uncalled(o *rawjson.Object) error {
	said := o.Get("output")
	var parts []json.RawMessage
	switch rawjson.Kind(said) {
	case '[':
		parts, _ = rawjson.Elements(said)
	case '"':
		parts = []json.RawMessage{object(text("type", "input_text"), raw("text", said))}
	default:
		parts = []json.RawMessage{object(text("type", "input_text"), text("text", string(said)))}
	}
	return h.toldBy(fmt.Sprintf("Output of %s, which was not called:", h.tools.find(stringOf(o, "namespace"), stringOf(o, "name"), false)), parts)
}

// toldBy puts a message behind the history that says who says what is in it.
func (h *history) toldBy(who string, parts []json.RawMessage) error {
	said := rawjson.Object{Members: []rawjson.Member{raw("content", array(append([]json.RawMessage{object(text("type", "input_text"), text("text", who))}, parts...)...))}}
	content, err := h.contents.chat(&said, "content", "user")
	if err == nil {
		h.add(model.ChatMessage("user", content))
	}
	return err
}

// isFernet reports whether a text is a Fernet token, as OpenAI encrypts what only it can read:
// base64 of a version, 0x80, and of a time, whose first bytes are zero
// (https://github.com/fernet/spec/blob/master/Spec.md).
func isFernet(s string) bool {
	return strings.HasPrefix(s, "gAAAAA") && !strings.ContainsAny(s, " \t\n")
}
