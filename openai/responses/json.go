package responses

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Values that nobody changes.
var null, yes, no, empty = json.RawMessage("null"), json.RawMessage("true"), json.RawMessage("false"), json.RawMessage("[]")

// object returns an object of members, in their order.
func object(members ...rawjson.Member) json.RawMessage {
	return (&rawjson.Object{Members: members}).Bytes()
}

func raw(name string, value json.RawMessage) rawjson.Member {
	if value == nil {
		value = null
	}
	return rawjson.Member{Name: name, Value: value}
}

func text(name, value string) rawjson.Member {
	return rawjson.Member{Name: name, Value: quote(value)}
}

// quote returns a text as JSON, which nobody may change.
func quote(text string) json.RawMessage {
	if len(text) <= longestWord {
		if word := words[text]; word != nil {
			return word
		}
	}
	return rawjson.Quote(text)
}

const longestWord = len("function_call_output")

// words are the texts that are said most, as they are written.
var words = func() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, word := range []string{
		"response", "completed", "in_progress", "incomplete", "failed", "message", "function_call", "function_call_output",
		"mcp_call", "mcp_list_tools", "reasoning", "reasoning_text", "output_text", "input_text", "refusal", "text", "function",
		"system", "user", "assistant", "tool",
	} {
		all[word] = slices.Clip(rawjson.Quote(word))
	}
	return all
}()

// typeOf returns the type that an object says; empty where it says none, or is none.
func typeOf(object json.RawMessage) string {
	kind, _ := rawjson.String(rawjson.Find(object, "type"))
	return kind
}

func number(name string, n int) rawjson.Member {
	return rawjson.Member{Name: name, Value: strconv.AppendInt(nil, int64(n), 10)}
}

func array(elements ...json.RawMessage) json.RawMessage {
	if len(elements) == 0 {
		return empty
	}
	return rawjson.AppendArray(nil, elements)
}

// literalOf returns the literal of a member's text; that of no text where it is none.
func literalOf(o *rawjson.Object, name string) json.RawMessage {
	if value := o.Get(name); rawjson.IsString(value) {
		return value
	}
	return noWords
}

// stringOf returns the text of a member; empty where it is none.
func stringOf(o *rawjson.Object, name string) string {
	s, _ := rawjson.String(o.Get(name))
	return s
}

func boolean(b bool) json.RawMessage {
	if b {
		return yes
	}
	return no
}
