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
	from := fmt.Sprintf("Message of the agent %s to the agent %s:", stringOf(o, "author"), stringOf(o, "recipient"))
	parts := []json.RawMessage{object(text("type", "input_text"), text("text", from))}
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
	o.Set("content", array(parts...))
	content, err := h.contents.chat(o, "content", "user")
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
