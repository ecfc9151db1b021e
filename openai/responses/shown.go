package responses

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Shown returns an item of a request as clients get it: they may send a message's content as a
// text, and leave a status out, and rely on finding a list of parts, and a status.
func Shown(item json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(item)
	if err != nil {
		return item
	}
	kind := kindOf(o)
	switch kind {
	case "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
	default:
		return item
	}
	changed := false
	set := func(name string, value json.RawMessage) {
		o.Set(name, value)
		changed = true
	}
	if rawjson.IsNull(o.Get("type")) {
		set("type", rawjson.Quote(kind))
	}
	if rawjson.IsNull(o.Get("status")) {
		set("status", rawjson.Quote("completed"))
	}
	if s, ok := rawjson.String(o.Get("content")); ok && kind == "message" {
		part := object(text("type", "input_text"), text("text", s))
		if stringOf(o, "role") == "assistant" {
			part = object(text("type", "output_text"), raw("annotations", array()), raw("logprobs", array()), text("text", s))
		}
		set("content", array(part))
	}
	if !changed {
		return item
	}
	return o.Bytes()
}
