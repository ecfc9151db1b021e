package fakeresponses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A request is one that was read.
type request struct {
	object  *rawjson.Object
	context []json.RawMessage // the items that the model reads
	include []string
	store   bool
	keeps   map[string]bool // ids of items that the API has
}

// A shape is what members an object may have, and of what JSON kind: s string, n number,
// b boolean, a array, o object, and * for any. One with a ! has to be there; null stands
// for one that has not.
type shape map[string]string

var requestShape = shape{
	"model": "!s", "input": "sa", "instructions": "s", "tools": "a", "tool_choice": "so", "stream": "b", "stream_options": "o", "store": "b",
	"include": "a", "previous_response_id": "s", "conversation": "so", "prompt": "o", "background": "b", "metadata": "o", "temperature": "n", "top_p": "n",
	"top_logprobs": "n", "max_output_tokens": "n", "max_tool_calls": "n", "parallel_tool_calls": "b", "reasoning": "o", "text": "o", "truncation": "s",
	"service_tier": "s", "safety_identifier": "s", "prompt_cache_key": "s", "prompt_cache_retention": "s", "user": "s", "context_management": "a",
	"client_metadata": "o", "presence_penalty": "n", "frequency_penalty": "n",
}

// sizeShapes are those of requests about one: how many tokens it has, and what it goes on
// from made smaller.
var sizeShapes = map[string]shape{
	"input_tokens": {
		"model": "s", "input": "sa", "instructions": "s", "tools": "a", "tool_choice": "so", "previous_response_id": "s", "conversation": "so",
		"parallel_tool_calls": "b", "reasoning": "o", "text": "o", "truncation": "s",
	},
	"compact": {"model": "!s", "input": "sa", "instructions": "s", "previous_response_id": "s", "prompt_cache_key": "s"},
}

// itemShapes are those of the items of an input, by type.
var itemShapes = map[string]shape{
	"message":                 {"type": "s", "id": "s", "role": "!s", "content": "!sa", "status": "s", "phase": "s"},
	"function_call":           {"type": "!s", "id": "s", "call_id": "!s", "name": "!s", "namespace": "s", "arguments": "!s", "status": "s", "caller": "o"},
	"function_call_output":    {"type": "!s", "id": "s", "call_id": "s", "name": "s", "namespace": "s", "output": "!sa", "status": "s"},
	"custom_tool_call":        {"type": "!s", "id": "s", "call_id": "!s", "name": "!s", "namespace": "s", "input": "!s", "status": "s"},
	"custom_tool_call_output": {"type": "!s", "id": "s", "call_id": "!s", "output": "!sa", "status": "s"},
	"reasoning":               {"type": "!s", "id": "!s", "summary": "!a", "content": "a", "encrypted_content": "s", "status": "s"},
	"web_search_call":         {"type": "!s", "id": "!s", "status": "!s", "action": "!o"},
	"file_search_call":        {"type": "!s", "id": "!s", "status": "!s", "queries": "!a", "results": "a"},
	"code_interpreter_call":   {"type": "!s", "id": "!s", "status": "!s", "code": "s", "container_id": "!s", "outputs": "a"},
	"image_generation_call":   {"type": "!s", "id": "!s", "status": "!s", "result": "s"},
	"computer_call":           {"type": "!s", "id": "!s", "call_id": "!s", "action": "o", "actions": "a", "pending_safety_checks": "a", "status": "s"},
	"computer_call_output":    {"type": "!s", "id": "s", "call_id": "!s", "output": "!o", "status": "s"},
	"tool_search_call":        {"type": "!s", "id": "s", "call_id": "s", "execution": "s", "arguments": "!o", "status": "s"},
	"tool_search_output":      {"type": "!s", "id": "s", "call_id": "s", "execution": "s", "tools": "!a", "status": "s"},
	"compaction":              {"type": "!s", "id": "s", "encrypted_content": "!s"},
	"compaction_trigger":      {"type": "!s"},
	"item_reference":          {"type": "s", "id": "!s"},
	"additional_tools":        {"type": "!s", "id": "s", "role": "!s", "tools": "!a"},
	"agent_message":           {"type": "!s", "id": "s", "author": "!s", "recipient": "!s", "content": "!a"},
	"configuration_update":    {"type": "!s", "id": "s", "reasoning": "o", "text": "o"},
	"mcp_list_tools":          {"type": "!s", "id": "!s", "server_label": "!s", "tools": "!a", "error": "s"},
	"mcp_call":                {"type": "!s", "id": "!s", "server_label": "!s", "name": "!s", "arguments": "!s", "output": "s", "error": "so", "approval_request_id": "s", "status": "s"},
	"mcp_approval_request":    {"type": "!s", "id": "!s", "server_label": "!s", "name": "!s", "arguments": "!s"},
	"mcp_approval_response":   {"type": "!s", "id": "s", "approval_request_id": "!s", "approve": "!b", "reason": "s"},
}

// partShapes are those of the parts of content.
var partShapes = map[string]shape{
	"input_text":  {"type": "!s", "text": "!s"},
	"input_image": {"type": "!s", "image_url": "s", "file_id": "s", "detail": "s"},
	"input_file":  {"type": "!s", "file_id": "s", "file_data": "s", "file_url": "s", "filename": "s"},
	"output_text": {"type": "!s", "text": "!s", "annotations": "a", "logprobs": "a"},
	"refusal":     {"type": "!s", "refusal": "!s"},
}

// toolShapes are those of tools.
var toolShapes = map[string]shape{
	"function":         {"type": "!s", "name": "!s", "description": "s", "parameters": "!o", "strict": "!b", "async": "b", "defer_loading": "b", "output_schema": "o", "allowed_callers": "a"},
	"custom":           {"type": "!s", "name": "!s", "description": "s", "format": "o", "async": "b"},
	"web_search":       {"type": "!s", "search_context_size": "s", "user_location": "o", "filters": "o", "external_web_access": "b"},
	"file_search":      {"type": "!s", "vector_store_ids": "!a", "max_num_results": "n", "filters": "o", "ranking_options": "o"},
	"code_interpreter": {"type": "!s", "container": "!so"},
	"image_generation": {"type": "!s", "background": "s", "quality": "s", "size": "s", "model": "s", "output_format": "s", "partial_images": "n"},
	"computer":         {"type": "!s"},
	"namespace":        {"type": "!s", "name": "!s", "description": "!s", "tools": "!a"},
	"tool_search":      {"type": "!s", "execution": "s", "description": "s", "parameters": "o"},
	"mcp":              {"type": "!s", "server_label": "!s", "server_url": "!s", "server_description": "s", "authorization": "s", "headers": "o", "allowed_tools": "ao", "require_approval": "so"},
}

func invalid(param, message string, args ...any) *Failure {
	return &Failure{Status: 400, Param: param, Message: fmt.Sprintf(message, args...)}
}

var kinds = map[byte]string{'"': "s", '0': "n", 't': "b", 'f': "b", '[': "a", '{': "o"}

// kindOf returns the letter of a value's JSON kind; empty for null.
func kindOf(value json.RawMessage) string {
	switch string(value) {
	case "true", "false":
		return "b"
	case "null", "":
		return ""
	}
	return kinds[rawjson.Kind(value)]
}

// check checks an object that stands at param.
func (s shape) check(o *rawjson.Object, param string) *Failure {
	at := func(name string) string {
		if param == "" {
			return name
		}
		return param + "." + name
	}
	for _, m := range o.Members {
		want, known := s[m.Name]
		if !known {
			return &Failure{Status: 400, Code: "unknown_parameter", Param: at(m.Name), Message: "Unknown parameter: '" + at(m.Name) + "'."}
		}
		if kind := kindOf(m.Value); kind != "" && !strings.Contains(want, kind) {
			return &Failure{Status: 400, Code: "invalid_type", Param: at(m.Name), Message: "Invalid type for '" + at(m.Name) + "'."}
		}
	}
	for name, want := range s {
		if strings.HasPrefix(want, "!") && kindOf(o.Get(name)) == "" {
			return &Failure{Status: 400, Code: "missing_required_parameter", Param: at(name), Message: "Missing required parameter: '" + at(name) + "'."}
		}
	}
	return nil
}

// read reads a request.
func read(body []byte, kept map[string]context) (*request, *Failure) {
	if err := rawjson.Check(body); err != nil {
		return nil, invalid("", "We could not parse the JSON body of your request.")
	}
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, invalid("", "The body must be an object.")
	}
	if f := requestShape.check(o, ""); f != nil {
		return nil, f
	}
	r := &request{object: o, store: string(o.Get("store")) != "false"}
	if f := r.readInclude(); f != nil {
		return nil, f
	}
	names, f := readTools(o.Get("tools"), "tools")
	if f != nil {
		return nil, f
	}
	if f := readChoice(o, names); f != nil {
		return nil, f
	}
	if id := stringOf(o, "previous_response_id"); id != "" {
		before, ok := kept[id]
		if !ok {
			return nil, &Failure{Status: 400, Code: "previous_response_not_found", Param: "previous_response_id", Message: "Previous response with id '" + id + "' not found."}
		}
		if o.Get("conversation") != nil {
			return nil, invalid("conversation", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
		}
		r.context = slices.Clone(before.items)
	}
	r.keeps = map[string]bool{}
	for _, response := range kept {
		for _, item := range response.items {
			if o, err := rawjson.ParseObject(item); err == nil {
				r.keeps[stringOf(o, "id")] = true
			}
		}
	}
	return r, r.readInput()
}

func (r *request) readInclude() *Failure {
	all, _ := rawjson.Elements(r.object.Get("include"))
	known := []string{"reasoning.encrypted_content", "message.output_text.logprobs", "web_search_call.action.sources", "web_search_call.results", "file_search_call.results", "code_interpreter_call.outputs", "message.input_image.image_url", "computer_call_output.output.image_url"}
	for i, each := range all {
		value, _ := rawjson.String(each)
		if !slices.Contains(known, value) {
			return invalid(fmt.Sprintf("include[%d]", i), "Invalid value: '%s'.", value)
		}
		r.include = append(r.include, value)
	}
	return nil
}

// readTools reads tools that stand at param, and returns the names of those that have one.
func readTools(list json.RawMessage, param string) (map[string]bool, *Failure) {
	names := map[string]bool{}
	all, _ := rawjson.Elements(list)
	if kindOf(list) == "a" && len(all) == 0 && param != "tools" {
		return nil, invalid(param, "Invalid '%s': empty array.", param)
	}
	for i, each := range all {
		at := fmt.Sprintf("%s[%d]", param, i)
		o, err := rawjson.ParseObject(each)
		if err != nil {
			return nil, invalid(at, "Invalid type for '%s'.", at)
		}
		kind := stringOf(o, "type")
		shape, ok := toolShapes[kind]
		if !ok {
			return nil, invalid(at+".type", "Invalid value: '%s'.", kind)
		}
		if f := shape.check(o, at); f != nil {
			return nil, f
		}
		if kind == "namespace" {
			if _, f := readTools(o.Get("tools"), at+".tools"); f != nil {
				return nil, f
			}
		}
		if name := stringOf(o, "name"); name != "" {
			if names[name] {
				return nil, invalid("tools", "Duplicate tool name '%s'.", name)
			}
			names[name] = true
		}
	}
	return names, nil
}

// readChoice reads tool_choice.
func readChoice(o *rawjson.Object, names map[string]bool) *Failure {
	raw := o.Get("tool_choice")
	if kindOf(raw) == "" {
		return nil
	}
	if kindOf(o.Get("tools")) == "" {
		return invalid("tool_choice", "Tool choice '%s' must be specified with 'tools' parameter.", raw)
	}
	if mode, ok := rawjson.String(raw); ok {
		if !slices.Contains([]string{"auto", "none", "required"}, mode) {
			return invalid("tool_choice", "Invalid value: '%s'.", mode)
		}
		return nil
	}
	choice, err := rawjson.ParseObject(raw)
	if err != nil {
		return invalid("tool_choice", "Invalid type for 'tool_choice'.")
	}
	switch kind := stringOf(choice, "type"); kind {
	case "function", "custom":
		if name := stringOf(choice, "name"); !names[name] {
			return invalid("tool_choice", "Tool choice '%s' not found in 'tools' parameter.", name)
		}
	case "allowed_tools":
		if f := (shape{"type": "!s", "mode": "!s", "tools": "!a"}).check(choice, "tool_choice"); f != nil {
			return f
		}
		tools, _ := rawjson.Elements(choice.Get("tools"))
		for i, each := range tools {
			tool, err := rawjson.ParseObject(each)
			if err != nil || stringOf(tool, "type") == "function" && !names[stringOf(tool, "name")] {
				return invalid(fmt.Sprintf("tool_choice.tools[%d]", i), "Tool choice '%s' not found in 'tools' parameter.", each)
			}
		}
	case "web_search", "file_search", "code_interpreter", "image_generation", "mcp":
	default:
		return invalid("tool_choice.type", "Invalid value: '%s'.", kind)
	}
	return nil
}

// readInput reads the input, and checks that calls and outputs belong together.
func (r *request) readInput() *Failure {
	input := r.object.Get("input")
	if s, ok := rawjson.String(input); ok {
		r.context = append(r.context, object(text("type", "message"), text("role", "user"), text("content", s)))
		return nil
	}
	items, err := rawjson.Elements(input)
	if err != nil {
		if r.object.Get("previous_response_id") == nil && r.object.Get("conversation") == nil && r.object.Get("prompt") == nil {
			return &Failure{Status: 400, Code: "missing_required_parameter", Param: "input", Message: "Missing required parameter: 'input'."}
		}
		return nil
	}
	have := map[string]bool{}
	for _, item := range r.context {
		if o, err := rawjson.ParseObject(item); err == nil && stringOf(o, "id") != "" {
			have[stringOf(o, "id")] = true
		}
	}
	for i, item := range items {
		at := fmt.Sprintf("input[%d]", i)
		o, err := rawjson.ParseObject(item)
		if err != nil {
			return invalid(at, "Invalid type for '%s'.", at)
		}
		if f := readItem(o, at); f != nil {
			return f
		}
		if id := stringOf(o, "id"); id != "" && have[id] {
			return invalid("input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
		} else if id != "" {
			have[id] = true
		}
		if stringOf(o, "type") == "reasoning" && kindOf(o.Get("encrypted_content")) == "" && (!r.store || !r.keeps[stringOf(o, "id")]) {
			return &Failure{Status: 404, Param: "input", Message: "Item with id '" + stringOf(o, "id") + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."}
		}
	}
	r.context = append(r.context, items...)
	return r.answered()
}

// readItem reads one item that stands at param.
func readItem(o *rawjson.Object, param string) *Failure {
	kind := stringOf(o, "type")
	if kind == "" && o.Get("role") != nil {
		kind = "message"
	}
	shape, ok := itemShapes[kind]
	if !ok {
		return invalid(param+".type", "Invalid value: '%s'.", kind)
	}
	if f := shape.check(o, param); f != nil {
		return f
	}
	member := "content"
	if strings.HasSuffix(kind, "_output") {
		member = "output"
	}
	if kind == "reasoning" || kindOf(o.Get(member)) != "a" {
		return nil
	}
	parts, _ := rawjson.Elements(o.Get(member))
	for i, each := range parts {
		at := fmt.Sprintf("%s.%s[%d]", param, member, i)
		part, err := rawjson.ParseObject(each)
		if err != nil {
			return invalid(at, "Invalid type for '%s'.", at)
		}
		kind := stringOf(part, "type")
		said := kind == "output_text" || kind == "refusal"
		shape, ok := partShapes[kind]
		if !ok || said != (stringOf(o, "role") == "assistant") {
			return invalid(at+".type", "Invalid value: '%s'.", kind)
		}
		if f := shape.check(part, at); f != nil {
			return f
		}
	}
	return nil
}

// answered checks that each call has an output behind it, and each output a call before it.
func (r *request) answered() *Failure {
	open := map[string]bool{}
	var order []string
	for _, item := range r.context {
		o, err := rawjson.ParseObject(item)
		if err != nil {
			continue
		}
		id := stringOf(o, "call_id")
		switch kind := stringOf(o, "type"); {
		case id == "" || kind == "":
		case strings.HasSuffix(kind, "_output"):
			if !open[id] {
				return invalid("input", "No tool call found for function call output with call_id %s.", id)
			}
			delete(open, id)
		case strings.HasSuffix(kind, "_call"):
			open[id] = true
			order = append(order, id)
		}
	}
	for _, id := range order {
		if open[id] {
			return invalid("input", "No tool output found for function call %s.", id)
		}
	}
	return nil
}
