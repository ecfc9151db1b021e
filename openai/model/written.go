package model

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Documents of the Chat API, each written at once. Histories and tools of other APIs are put
// together of these: agents send a thousand with each request.

// ChatMessage returns a message of a role with content; nil is null.
func ChatMessage(role string, content json.RawMessage) json.RawMessage {
	m := make(json.RawMessage, 0, len(`{"role":"","content":null}`)+len(role)+len(content))
	m = rawjson.AppendQuote(append(m, `{"role":`...), role)
	return append(appendOr(append(m, `,"content":`...), content, null), '}')
}

// ChatResult returns the message of a tool that answers a call, with its content.
func ChatResult(id string, content json.RawMessage) json.RawMessage {
	m := make(json.RawMessage, 0, len(`{"role":"tool","tool_call_id":"","content":null}`)+len(id)+len(content))
	m = rawjson.AppendQuote(append(m, `{"role":"tool","tool_call_id":`...), id)
	return append(appendOr(append(m, `,"content":`...), content, null), '}')
}

// ChatAnswer returns a message of the model with content, nil for null, and calls, if any.
func ChatAnswer(content json.RawMessage, calls []json.RawMessage) json.RawMessage {
	size := len(`{"role":"assistant","content":null,"tool_calls":[]}`) + len(content) + len(calls)
	for _, call := range calls {
		size += len(call)
	}
	m := appendOr(append(make(json.RawMessage, 0, size), `{"role":"assistant","content":`...), content, null)
	if len(calls) > 0 {
		m = rawjson.AppendArray(append(m, `,"tool_calls":`...), calls)
	}
	return append(m, '}')
}

// ChatCall returns a call of a function. arguments is the literal of a text.
func ChatCall(id, name string, arguments json.RawMessage) json.RawMessage {
	c := make(json.RawMessage, 0, len(`{"id":"","type":"function","function":{"name":"","arguments":""}}`)+len(id)+len(name)+len(arguments))
	c = rawjson.AppendQuote(append(c, `{"id":`...), id)
	c = rawjson.AppendQuote(append(c, `,"type":"function","function":{"name":`...), name)
	return append(appendOr(append(c, `,"arguments":`...), arguments, noText), "}}"...)
}

// ChatFunction returns a tool: a function. description is the literal of a text, and what is
// none, or empty, is left out, as parameters and strict are that are null or nil.
func ChatFunction(name string, description, parameters, strict json.RawMessage) json.RawMessage {
	size := len(`{"type":"function","function":{"name":"","description":,"parameters":,"strict":}}`)
	f := append(make(json.RawMessage, 0, size+len(name)+len(description)+len(parameters)+len(strict)), `{"type":"function","function":{"name":`...)
	f = rawjson.AppendQuote(f, name)
	if rawjson.Kind(description) == '"' && len(description) > len(noText) {
		f = append(append(f, `,"description":`...), description...)
	}
	if !rawjson.IsNull(parameters) {
		f = append(append(f, `,"parameters":`...), parameters...)
	}
	if !rawjson.IsNull(strict) {
		f = append(append(f, `,"strict":`...), strict...)
	}
	return append(f, "}}"...)
}

const noText = `""`

// appendOr appends a value, or otherwise where it is nil.
func appendOr[T ~string | ~[]byte](to, value json.RawMessage, otherwise T) json.RawMessage {
	if value == nil {
		return append(to, otherwise...)
	}
	return append(to, value...)
}
