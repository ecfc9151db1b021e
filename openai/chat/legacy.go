package chat

import (
	"encoding/json"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Requests with functions and function_call (OpenAI API before tools, 2023-11)
// are rewritten to tools on the way in, since most upstreams know nothing else,
// and the client gets its answer as function_call.

// readFunctions rewrites a legacy request. It leaves others alone.
func (r *Request) readFunctions() error {
	raw := r.object.Get("functions")
	if rawjson.IsNull(raw) {
		return nil
	}
	if !rawjson.IsNull(r.object.Get("tools")) {
		return model.Invalid("functions", "A request can have \"tools\" or the deprecated \"functions\", not both.")
	}
	functions, err := rawjson.Elements(raw)
	if err != nil {
		return model.Invalid("functions", "\"functions\" must be an array.")
	}
	var tools []json.RawMessage
	for _, f := range functions {
		var tool rawjson.Object
		tool.Set("type", rawjson.Quote("function"))
		tool.Set("function", f)
		tools = append(tools, tool.Bytes())
	}
	r.plain = r.object.Clone()
	r.legacy, r.oneCall = true, true
	r.object.Delete("functions")
	r.object.Set("tools", rawjson.AppendArray(nil, tools))
	r.object.Set("parallel_tool_calls", json.RawMessage("false"))
	r.rewriteFunctionCall()
	return r.rewriteLegacyMessages()
}

// rewriteFunctionCall turns function_call into tool_choice.
func (r *Request) rewriteFunctionCall() {
	call := r.object.Get("function_call")
	r.object.Delete("function_call")
	switch rawjson.Kind(call) {
	case '"':
		r.object.Set("tool_choice", call)
	case '{':
		var choice rawjson.Object
		choice.Set("type", rawjson.Quote("function"))
		choice.Set("function", call)
		r.object.Set("tool_choice", choice.Bytes())
	}
}

// rewriteLegacyMessages turns function calls and their results in the history
// into tool calls. They had no ids, and only one was open at a time.
func (r *Request) rewriteLegacyMessages() error {
	messages := append([]json.RawMessage(nil), r.messages...)
	open := ""
	for i, raw := range messages {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return model.Invalid(fmt.Sprintf("messages.%d", i), "Each message must be an object.")
		}
		role, _ := rawjson.String(o.Get("role"))
		switch {
		case role == "assistant" && !rawjson.IsNull(o.Get("function_call")):
			open = fmt.Sprintf("call_legacy_%d", i)
			var call rawjson.Object
			call.Set("id", rawjson.Quote(open))
			call.Set("type", rawjson.Quote("function"))
			call.Set("function", o.Get("function_call"))
			o.Delete("function_call")
			o.Set("tool_calls", rawjson.AppendArray(nil, []json.RawMessage{call.Bytes()}))
		case role == "function":
			o.Set("role", rawjson.Quote("tool"))
			o.Set("tool_call_id", rawjson.Quote(open))
			o.Delete("name")
		default:
			continue
		}
		messages[i] = o.Bytes()
	}
	r.messages = messages
	return nil
}

// legacyMessage turns the one tool call of a message into function_call.
func legacyMessage(message *rawjson.Object) {
	calls, err := rawjson.Elements(message.Get("tool_calls"))
	if err != nil || len(calls) == 0 {
		return
	}
	if call, err := rawjson.ParseObject(calls[0]); err == nil {
		message.Delete("tool_calls")
		message.Set("function_call", call.Get("function"))
	}
}
