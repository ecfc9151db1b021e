package rawjson

import (
	"encoding/json"
	"slices"
)

// A lexicon has texts and their literals, so that neither has to be made. It is asked for
// every name and every short text that is read, most of which it does not have: a map takes
// three times as long to say so.
type lexicon [512][]word

// A word is a text that needs no escapes, and its literal.
type word struct {
	text    string
	literal json.RawMessage
}

// slot is where a lexicon has a text, of its length and a few of its bytes.
func slot[T string | []byte](text T) int {
	n := len(text)
	if n == 0 {
		return 0
	}
	return (n + int(text[0])*5 + int(text[n/2])*41 + int(text[n-1])*337) % len(lexicon{})
}

// text returns the text of a literal; false where there is none.
func (l *lexicon) text(literal []byte) (string, bool) {
	if n := len(literal); n >= 2 && n <= longestKnown+2 {
		within := literal[1 : n-1]
		for _, w := range l[slot(within)] {
			if string(within) == w.text && literal[0] == '"' && literal[n-1] == '"' {
				return w.text, true
			}
		}
	}
	return "", false
}

// literal returns the literal of a text, which nobody may change; nil where there is none.
func (l *lexicon) literal(text string) json.RawMessage {
	if len(text) <= longestKnown {
		for _, w := range l[slot(text)] {
			if text == w.text {
				return w.literal
			}
		}
	}
	return nil
}

// longestKnown is the length of the longest text of known.
const longestKnown = len("io.modelcontextprotocol/clientCapabilities")

// known are the names and texts that occur most.
var known = func() (l lexicon) {
	for _, text := range []string{
		"",
		"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "obfuscation",
		"index", "delta", "logprobs", "finish_reason", "role", "content", "refusal", "reasoning_content", "tool_calls",
		"type", "function", "name", "arguments", "messages", "message", "tools", "stream", "tool_call_id",
		"system", "user", "assistant", "tool", "stop", "mcp", "auto",
		"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details",
		"input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details", "cached_tokens", "reasoning_tokens",
		"cache_read_input_tokens", "cache_creation_input_tokens",
		"temperature", "max_tokens", "tool_choice", "parallel_tool_calls", "stream_options", "chat.completion", "chat.completion.chunk",
		"jsonrpc", "method", "params", "result", "error", "_meta", "structuredContent", "isError", "text",
		"2.0", "tools/call", "resultType", "complete", "progressToken", "2025-11-25", "2026-07-28",
		"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities", "io.modelcontextprotocol/clientInfo",
		"io.modelcontextprotocol/logLevel",
		"input", "output", "call_id", "item_id", "instructions", "store", "include", "status", "completed", "in_progress", "input_text", "output_text",
		"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning", "summary", "summary_text",
		"encrypted_content", "annotations", "developer", "description", "parameters", "strict",
		"thinking", "signature", "tool_use", "tool_use_id", "tool_result", "is_error", "input_schema", "image", "source", "cache_control",
		"ephemeral", "metadata", "user_id", "response", "incomplete", "failed", "mcp_call", "mcp_list_tools", "reasoning_text",
		"pending", "text_delta", "thinking_delta",
	} {
		at := slot(text)
		l[at] = append(l[at], word{text, slices.Clip(AppendQuote(nil, text))})
	}
	return l
}()
