package model

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// moveParts takes what is no text out of a client's tool message, where most APIs drop
// or refuse it: it follows the tool messages. It reports whether there was any.
func (d *Dialogue) moveParts(o *rawjson.Object) bool {
	wire := d.wire()
	if content := o.Get("content"); rawjson.Kind(content) != '[' || wire.ImagesInTool && !wire.StringContent {
		return false
	}
	parts, err := rawjson.Elements(o.Get("content"))
	if err != nil {
		return false
	}
	var texts []string
	var others []json.RawMessage
	for _, raw := range parts {
		part, err := rawjson.ParseObject(raw)
		if err != nil {
			return false
		}
		if text, ok := rawjson.String(part.Get("text")); ok {
			texts = append(texts, text)
			continue
		}
		others = append(others, raw)
	}
	if len(others) == 0 {
		return false
	}
	if len(texts) == 0 {
		texts = []string{"(What the tool returned follows.)"}
	}
	o.Set("content", rawjson.Quote(strings.Join(texts, "\n")))
	d.moved = append(d.moved, others...)
	return true
}

// push puts a message behind the history, and between tool messages and what follows
// them what was moved out of them: into a user's message where one follows, since
// templates of many models refuse two. Where no user's message may follow a tool
// message, one of the assistant stands in between.
func (d *Dialogue) push(message json.RawMessage, o *rawjson.Object) {
	if len(d.moved) > 0 {
		content, ok := contentParts(o.Get("content"))
		switch role, _ := rawjson.String(o.Get("role")); {
		case role == "tool":
		case role == "user" && ok && !d.wire().NoUserAfterTool:
			if len(content) > 0 && string(content[0]) == string(textPart(shownFirst)) {
				content = slices.Concat(content[1:], d.moved) // ours are counted, and come first
			} else {
				content = slices.Concat(d.moved, content)
			}
			own := o.Clone()
			own.Set("content", withText(shownFirst, content))
			message, d.moved = own.Bytes(), nil
		default:
			d.showMoved()
		}
	}
	if n := len(d.history); n > 0 && d.wire().NoUserAfterTool && isOf("user", o.Get("role")) && isOf("tool", rawjson.Find(d.history[n-1], "role")) {
		// A turn ended before the model had answered, or a person spoke beside the results.
		d.history = append(d.history, ChatMessage("assistant", json.RawMessage(`"The results are there."`)))
	}
	d.history = append(d.history, message)
}

// isOf reports whether the literal of a role is that one.
func isOf(role string, literal json.RawMessage) bool {
	have, _ := rawjson.String(literal)
	return have == role
}

// showMoved ends tool messages at the end of the history with what was moved out of
// them.
func (d *Dialogue) showMoved() {
	d.history = append(d.history, shown(d.wire(), d.moved)...)
	d.moved = nil
}

// contentParts returns content as parts.
func contentParts(content json.RawMessage) ([]json.RawMessage, bool) {
	if text, ok := rawjson.String(content); ok {
		return []json.RawMessage{textPart(text)}, true
	}
	parts, err := rawjson.Elements(content)
	return parts, err == nil
}
