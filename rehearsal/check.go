package rehearsal

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxTools is how many tools OpenAI takes in one request.
const maxTools = 128

// maxCallID is the longest call id in characters that OpenAI takes.
const maxCallID = 40

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// check refuses what OpenAI or another strict provider refuses, so that a
// program that works here is not refused there.
func check(r *request) *problem {
	if p := checkTools(r); p != nil {
		return p
	}
	for i := range r.messages {
		if p := r.checkMessage(i); p != nil {
			return p
		}
	}
	if p := r.checkOrder(); p != nil {
		return p
	}
	if r.format == "json_object" && !slices.ContainsFunc(r.messages, func(m message) bool {
		return strings.Contains(strings.ToLower(m.text), "json")
	}) {
		return invalid("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
	}
	return nil
}

func checkTools(r *request) *problem {
	at := "tools"
	if r.legacy {
		at = "functions"
	}
	if len(r.tools) > maxTools {
		return invalid(at, "array_above_max_length", "Invalid '%s': array too long. Expected an array with maximum length %d, but got an array with length %d instead.", at, maxTools, len(r.tools))
	}
	seen := make(map[string]bool)
	for i, t := range r.tools {
		param := fmt.Sprintf("%s[%d]", at, i)
		if !r.legacy {
			param += ".function"
		}
		if p := checkName(param+".name", t.name); p != nil {
			return p
		}
		if seen[t.name] {
			return invalid(param+".name", "", "Invalid '%s.name': the name '%s' was used before; names must be unique.", param, t.name)
		}
		seen[t.name] = true
		if p := t.checkParameters(param + ".parameters"); p != nil {
			return p
		}
	}
	return nil
}

func checkName(param, name string) *problem {
	if functionName.MatchString(name) {
		return nil
	}
	if len(name) > 64 {
		return invalid(param, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", param, len(name))
	}
	return invalid(param, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
}

func (t tool) checkParameters(param string) *problem {
	refuse := func(format string, args ...any) *problem {
		return invalid(param, "invalid_function_parameters", "Invalid schema for function '%s': %s.", t.name, fmt.Sprintf(format, args...))
	}
	root := t.parameters
	if !root.given() {
		if t.strict {
			return refuse("a strict function needs 'parameters'")
		}
		return nil
	}
	if typ := root.get("type"); !typ.is("object") {
		return refuse(`schema must be a JSON Schema of 'type: "object"', got 'type: %s'`, orNone(typ))
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if root.get(word).kind != absent {
			return refuse("schema must not have '%s' at the top level", word)
		}
	}
	if root.get("properties").kind != isObject {
		return refuse("In context=(), object schema missing properties")
	}
	if fault := checkSchema(root, nil, t.strict); fault != "" {
		return refuse("%s", fault)
	}
	return nil
}

func orNone(v value) string {
	if v.kind == absent {
		return `"None"`
	}
	return string(v.raw)
}

// checkSchema returns what is wrong with a schema or one below it, "" for
// nothing. The path is in the form that OpenAI's messages use.
func checkSchema(s value, path []string, strict bool) string {
	wrong := func(what string) string {
		quoted := make([]string, len(path))
		for i, p := range path {
			quoted[i] = "'" + p + "'"
		}
		return "In context=(" + strings.Join(quoted, ", ") + "), " + what
	}
	if s.kind != isObject {
		if s.kind == isBool && !strict {
			return ""
		}
		return wrong("a schema must be an object, but it is " + s.kind.String())
	}
	if hasType(s, "array") && s.get("items").kind == absent && s.get("prefixItems").kind == absent {
		return wrong("array schema missing items")
	}
	if strict && hasType(s, "object") {
		if fault := checkClosed(s); fault != "" {
			return wrong(fault)
		}
	}
	for _, m := range s.members {
		for _, sub := range subschemas(m) {
			if fault := checkSchema(sub.schema, append(slices.Clip(path), sub.path...), strict); fault != "" {
				return fault
			}
		}
	}
	return ""
}

// checkClosed applies the rules of strict functions to an object schema.
func checkClosed(s value) string {
	if open := s.get("additionalProperties"); open.kind != isBool || open.isTrue() {
		return "'additionalProperties' is required to be supplied and to be false"
	}
	for _, p := range s.get("properties").members {
		if !slices.ContainsFunc(s.get("required").items, func(v value) bool { return v.is(p.name) }) {
			return "'required' must be an array with every key in properties. Missing '" + p.name + "'"
		}
	}
	return ""
}

func hasType(s value, name string) bool {
	typ := s.get("type")
	return typ.is(name) || slices.ContainsFunc(typ.items, func(v value) bool { return v.is(name) })
}

type subschema struct {
	path   []string
	schema value
}

// subschemas lists the schemas under a keyword.
func subschemas(m member) []subschema {
	var list []subschema
	switch m.name {
	case "properties", "$defs", "definitions", "patternProperties":
		for _, p := range m.value.members {
			list = append(list, subschema{[]string{m.name, p.name}, p.value})
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		for i, item := range m.value.items {
			list = append(list, subschema{[]string{m.name, fmt.Sprint(i)}, item})
		}
	case "items":
		list = append(list, subschema{[]string{m.name}, m.value})
	}
	return list
}

// checkMessage looks at one message alone.
func (r *request) checkMessage(i int) *problem {
	m := r.messages[i]
	at := fmt.Sprintf("messages[%d]", i)
	content := m.raw.get("content")
	switch m.role {
	case "system", "developer", "user", "tool", "function":
		if content.kind != isString && content.kind != isArray {
			return invalidType(at+".content", "a string or an array of parts", content)
		}
		if m.attached && m.role != "user" {
			return invalid(at+".content", "", "Invalid '%s.content': a message with role '%s' holds text parts only.", at, m.role)
		}
		return nil
	case "assistant":
	default:
		return invalid(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'developer', 'user', 'assistant', 'tool', and 'function'.", m.role)
	}
	calls := m.raw.get("tool_calls")
	if calls.given() && len(calls.items) == 0 {
		return invalid(at+".tool_calls", "empty_array", "Invalid '%s.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	if len(m.calls) == 0 && !content.given() && !m.raw.get("refusal").given() && !m.raw.get("audio").given() {
		return invalidType(at+".content", "a string", content)
	}
	for k, item := range calls.items {
		if p := checkCall(fmt.Sprintf("%s.tool_calls[%d]", at, k), item, m.calls[k]); p != nil {
			return p
		}
	}
	return nil
}

func checkCall(at string, item value, c call) *problem {
	if !item.get("type").is("function") {
		return invalid(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", item.get("type").text)
	}
	if c.id == "" {
		return invalid(at+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", at)
	}
	if len(c.id) > maxCallID {
		return invalid(at+".id", "string_above_max_length", "Invalid '%s.id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxCallID, len(c.id))
	}
	if p := checkName(at+".function.name", c.name); p != nil {
		return p
	}
	arguments := item.get("function").get("arguments")
	if arguments.kind != isString {
		return invalidType(at+".function.arguments", "a string", arguments)
	}
	// DashScope, Ollama, Anthropic and Bedrock refuse anything else; OpenAI
	// itself is milder.
	if text := strings.TrimSpace(c.arguments); !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return invalid(at+".function.arguments", "invalid_value", "Invalid '%s.function.arguments': it must be the text of a JSON object, but it is %s.", at, quote(clip(c.arguments, 80)))
	}
	return nil
}

// checkOrder holds calls against results: the results of a message with calls
// follow it directly, each once, and nothing else is a result.
func (r *request) checkOrder() *problem {
	var open []string
	for i, m := range r.messages {
		at := fmt.Sprintf("messages[%d]", i)
		if m.role == "tool" {
			k := slices.Index(open, m.callID)
			if k < 0 {
				return invalid(at+".role", "", "Invalid parameter: '%s' with role 'tool' must be a response to a preceding message with 'tool_calls'; none that waits has the id '%s'.", at, m.callID)
			}
			open = slices.Delete(open, k, k+1)
			continue
		}
		if len(open) > 0 {
			return unanswered(at+".role", open)
		}
		if m.role != "assistant" {
			continue
		}
		for _, c := range m.calls {
			if c.id == "" { // a function_call, answered by name
				continue
			}
			if slices.Contains(open, c.id) {
				return invalid(at+".tool_calls", "", "Invalid '%s.tool_calls': the id '%s' is used twice.", at, c.id)
			}
			open = append(open, c.id)
		}
	}
	if len(open) > 0 {
		return unanswered("messages", open)
	}
	return nil
}

func unanswered(param string, ids []string) *problem {
	return invalid(param, "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. These have no response: %s.", strings.Join(ids, ", "))
}
