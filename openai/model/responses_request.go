package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// sealedThoughts is the value of include that gives what a model thought in a form in
// which it can be sent back, to an API that keeps nothing.
const sealedThoughts = "reasoning.encrypted_content"

// notCarried are members of the Chat API that the Responses API has nothing for, unless
// they have one of the values beside them. Known is what OpenAI's types of 2026-11 have.
var notCarried = map[string][]string{
	"n":             {"1"},
	"stop":          {"[]", `""`},
	"logit_bias":    {"{}"},
	"seed":          {},
	"prediction":    {},
	"audio":         {},
	"modalities":    {`["text"]`, "[]"},
	"functions":     {"[]"},
	"function_call": {},
}

// responsesOf returns a request of the Chat API, without its messages, its tools and its
// tool_choice, as one of the Responses API whose answer nobody keeps. What is the same in
// both, and what neither is known to have, stays as it is. The error is an [*Error] that
// names what cannot be carried.
func responsesOf(chat *rawjson.Object) (*rawjson.Object, error) {
	o := &rawjson.Object{}
	var text, reasoning rawjson.Object
	include := []json.RawMessage{rawjson.Quote(sealedThoughts)}
	for _, m := range chat.Members {
		if neutral, known := notCarried[m.Name]; known {
			if !rawjson.IsNull(m.Value) && !slices.Contains(neutral, string(m.Value)) {
				return nil, NotInResponses(m.Name)
			}
			continue
		}
		if rawjson.IsNull(m.Value) {
			continue
		}
		switch m.Name {
		case "messages", "tools", "tool_choice", "web_search_options":
		case "max_tokens", "max_completion_tokens":
			o.Set("max_output_tokens", m.Value)
		case "response_format":
			text.Set("format", flatFormat(m.Value))
		case "verbosity":
			text.Set("verbosity", m.Value)
		case "reasoning_effort":
			reasoning.Set("effort", m.Value)
		case "logprobs":
			if string(m.Value) == "true" {
				include = append(include, rawjson.Quote("message.output_text.logprobs"))
			}
		case "stream_options":
			options, err := rawjson.ParseObject(m.Value)
			if err != nil {
				return nil, Invalid("stream_options", "\"stream_options\" must be an object.")
			}
			if options.Delete("include_usage"); len(options.Members) > 0 { // which this API always does
				o.Set("stream_options", options.Bytes())
			}
		default:
			o.Set(m.Name, m.Value)
		}
	}
	if len(text.Members) > 0 {
		o.Set("text", text.Bytes())
	}
	if len(reasoning.Members) > 0 {
		o.Set("reasoning", reasoning.Bytes())
	}
	if o.Get("store") == nil {
		o.Set("store", json.RawMessage("false"))
	}
	o.Set("include", rawjson.AppendArray(nil, include))
	return o, nil
}

// NotInResponses is the error for what the Responses API has nothing for.
func NotInResponses(param string) error {
	return Invalid(param, fmt.Sprintf("The model's API is the Responses API, which has nothing for %q: leave it out, or use a model whose API is the Chat API.", param))
}

// flatFormat returns response_format as text.format.
func flatFormat(format json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(format)
	if err != nil {
		return format
	}
	inner, err := rawjson.ParseObject(o.Get("json_schema"))
	if err != nil {
		return format
	}
	return flat(o, "json_schema", inner)
}

// flat returns an object whose members beside its type stand in an inner one, with those
// beside its type.
func flat(o *rawjson.Object, name string, inner *rawjson.Object) json.RawMessage {
	out := &rawjson.Object{}
	for _, m := range o.Members {
		if m.Name == name {
			out.Members = append(out.Members, inner.Members...)
			continue
		}
		out.Members = append(out.Members, m)
	}
	if out.Get("type") == nil {
		out.Members = append([]rawjson.Member{{Name: "type", Value: rawjson.Quote(name)}}, out.Members...)
	}
	return out.Bytes()
}

// flatTool returns a tool of the Chat API, which stands at param, as the Responses API
// has it. There a function is strict unless it says that it is not.
func flatTool(tool json.RawMessage, param string) (json.RawMessage, error) {
	o, err := rawjson.ParseObject(tool)
	if err != nil {
		return nil, Invalid(param, "Each tool must be an object.")
	}
	kind, _ := rawjson.String(o.Get("type"))
	switch kind {
	case "", "function":
		f, err := rawjson.ParseObject(o.Get("function"))
		if err != nil {
			return nil, Invalid(param+".function", "A function tool needs a function.")
		}
		if rawjson.IsNull(f.Get("parameters")) {
			f.Set("parameters", json.RawMessage(`{"type":"object","properties":{}}`))
		}
		if rawjson.IsNull(f.Get("strict")) {
			f.Set("strict", json.RawMessage("false"))
		}
		return flat(o, "function", f), nil
	case "custom":
		c, err := rawjson.ParseObject(o.Get("custom"))
		if err != nil {
			return nil, Invalid(param+".custom", "A custom tool needs a member custom.")
		}
		if format, err := rawjson.ParseObject(c.Get("format")); err == nil {
			if grammar, err := rawjson.ParseObject(format.Get("grammar")); err == nil {
				c.Set("format", flat(format, "grammar", grammar))
			}
		}
		return flat(o, "custom", c), nil
	}
	return nil, Invalid(param+".type", fmt.Sprintf("The Chat API has no tools of the type %.40q.", kind))
}

// flatChoice returns a tool_choice of the Chat API as the Responses API has it.
func flatChoice(choice json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(choice)
	if err != nil {
		return choice // a mode
	}
	kind, _ := rawjson.String(o.Get("type"))
	inner, err := rawjson.ParseObject(o.Get(kind))
	if err != nil {
		return choice
	}
	if kind == "allowed_tools" {
		tools, _ := rawjson.Elements(inner.Get("tools"))
		for i := range tools {
			tools[i] = flatChoice(tools[i])
		}
		inner.Set("tools", rawjson.AppendArray(nil, tools))
	}
	return flat(o, kind, inner)
}

// searchTool returns the hosted search of the web that web_search_options ask for; nil
// for none.
func searchTool(options json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(options)
	if err != nil {
		return nil
	}
	if where, err := rawjson.ParseObject(o.Get("user_location")); err == nil {
		if inner, err := rawjson.ParseObject(where.Get("approximate")); err == nil {
			o.Set("user_location", flat(where, "approximate", inner))
		}
	}
	return flat(&rawjson.Object{Members: []rawjson.Member{{Name: "type", Value: rawjson.Quote("web_search")}, {Name: "o"}}}, "o", o)
}

// asResponses returns the body of a request of the Chat API as one of the Responses API.
func asResponses(parts [][]byte) ([][]byte, error) {
	var body []byte
	for _, part := range parts {
		body = append(body, part...)
	}
	chat, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, InvalidBody(err)
	}
	o, err := responsesOf(chat)
	if err != nil {
		return nil, err
	}
	messages, err := rawjson.Elements(chat.Get("messages"))
	if err != nil {
		return nil, Invalid("messages", "\"messages\" must be an array.")
	}
	items, err := inputOf(messages)
	if err != nil {
		return nil, err
	}
	o.Set("input", rawjson.AppendArray(nil, items))
	given, _ := rawjson.Elements(chat.Get("tools"))
	tools, err := flatTools(given, chat.Get("web_search_options"))
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		o.Set("tools", rawjson.AppendArray(nil, tools))
		if choice := chat.Get("tool_choice"); !rawjson.IsNull(choice) {
			o.Set("tool_choice", flatChoice(choice))
		}
	}
	return [][]byte{o.Bytes()}, nil
}

// flatTools returns tools of the Chat API as the Responses API has them, with a search of
// the web where options ask for one.
func flatTools(given []json.RawMessage, options json.RawMessage) (tools []json.RawMessage, err error) {
	for i, tool := range given {
		if tool, err = flatTool(tool, "tools["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	if search := searchTool(options); search != nil {
		tools = append(tools, search)
	}
	return tools, nil
}
