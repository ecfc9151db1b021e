package rehearsal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// request is what the model needs to know of a chat completion request. What
// it does not look at (temperature, seed, …) is not read.
type request struct {
	digest   string // hex, of the body
	model    string
	messages []message
	tools    []tool // function tools, or legacy functions
	legacy   bool   // the request says functions, the answer function_call

	choice      string   // auto, none, required
	only        []string // the tools tool_choice names; nil is all
	parallel    bool
	stream      bool
	usage       bool // stream_options.include_usage
	n           int
	limit       int // max_tokens; 0 is none
	stop        []string
	logprobs    bool
	topLogprobs int    // how many candidates each token names
	format      string // response_format.type
	schema      value  // response_format.json_schema.schema
	promptBytes int
}

type message struct {
	role, text string
	attached   bool // has parts that are not text
	calls      []call
	callID     string // of a tool message
	name       string // of a function message
	raw        value
}

// call is one tool call, in the history or to be made.
type call struct {
	id, name, arguments string
	signature           string
}

type tool struct {
	name, description string
	parameters        value
	strict            bool
}

// problem is an error in OpenAI's form.
type problem struct {
	status  int
	message string
	typ     string
	param   string
	code    string
}

func invalid(param, code, format string, args ...any) *problem {
	return &problem{400, fmt.Sprintf(format, args...), "invalid_request_error", param, code}
}

func invalidType(param, want string, got value) *problem {
	return invalid(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", param, want, got.kind)
}

// decode reads the request and refuses what could not be answered at all.
// What only a strict provider refuses is in check.
func decode(body []byte) (*request, *problem) {
	v, err := parse(body)
	if err != nil {
		return nil, invalid("", "", "We could not parse the JSON body of your request: %v.", err)
	}
	if v.kind != isObject {
		return nil, invalid("", "invalid_type", "The body of a request must be an object, but it is %s.", v.kind)
	}
	sum := sha256.Sum256(body)
	r := &request{digest: hex.EncodeToString(sum[:]), choice: "auto", n: 1}
	steps := []func(value) *problem{r.readModel, r.readMessages, r.readTools, r.readChoice, r.readLimits, r.readStop, r.readFormat, r.readLogprobs}
	for _, step := range steps {
		if p := step(v); p != nil {
			return nil, p
		}
	}
	return r, nil
}

func (r *request) readModel(v value) *problem {
	name := v.get("model")
	if !name.given() || name.is("") {
		return invalid("model", "", "you must provide a model parameter")
	}
	if name.kind != isString {
		return invalidType("model", "a string", name)
	}
	r.model = name.text
	r.stream = v.get("stream").isTrue()
	r.usage = r.stream && v.get("stream_options").get("include_usage").isTrue()
	return nil
}

func (r *request) readMessages(v value) *problem {
	list := v.get("messages")
	if !list.given() {
		return invalid("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	if list.kind != isArray {
		return invalidType("messages", "an array of objects", list)
	}
	if len(list.items) == 0 {
		return invalid("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	r.promptBytes = len(list.raw)
	for i, item := range list.items {
		at := "messages[" + strconv.Itoa(i) + "]"
		if item.kind != isObject {
			return invalidType(at, "an object", item)
		}
		m := message{
			role: item.get("role").text, callID: item.get("tool_call_id").text,
			name: item.get("name").text, raw: item,
		}
		m.text, m.attached = contentText(item.get("content"))
		for _, c := range item.get("tool_calls").items {
			f := c.get("function")
			m.calls = append(m.calls, call{
				id: c.get("id").text, name: f.get("name").text, arguments: f.get("arguments").text,
				signature: c.get("extra_content").get("google").get("thought_signature").text,
			})
		}
		if f := item.get("function_call"); f.kind == isObject {
			m.calls = append(m.calls, call{name: f.get("name").text, arguments: f.get("arguments").text})
		}
		r.messages = append(r.messages, m)
	}
	return nil
}

// contentText joins the text parts of a message.
func contentText(content value) (text string, attached bool) {
	if content.kind == isString {
		return content.text, false
	}
	var parts []string
	for _, part := range content.items {
		if part.get("type").is("text") {
			parts = append(parts, part.get("text").text)
		} else {
			attached = true
		}
	}
	return strings.Join(parts, "\n"), attached
}

func (r *request) readTools(v value) *problem {
	list, at := v.get("tools"), "tools"
	if functions := v.get("functions"); functions.given() {
		if list.given() {
			return invalid("functions", "", "'functions' and 'tools' cannot be used in the same request; 'functions' is the older name.")
		}
		list, at, r.legacy = functions, "functions", true
	}
	if !list.given() {
		return nil
	}
	if list.kind != isArray {
		return invalidType(at, "an array of objects", list)
	}
	if len(list.items) == 0 {
		return invalid(at, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", at)
	}
	r.promptBytes += len(list.raw)
	for i, item := range list.items {
		param := at + "[" + strconv.Itoa(i) + "]"
		if item.kind != isObject {
			return invalidType(param, "an object", item)
		}
		f := item
		if !r.legacy {
			if t := item.get("type"); !t.is("function") {
				return invalid(param+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function'.", t.text)
			}
			f, param = item.get("function"), param+".function"
		}
		if name := f.get("name"); name.kind != isString {
			return invalid(param+".name", "missing_required_parameter", "Missing required parameter: '%s.name'.", param)
		}
		r.tools = append(r.tools, tool{f.get("name").text, f.get("description").text, f.get("parameters"), f.get("strict").isTrue()})
	}
	return nil
}

func (r *request) readChoice(v value) *problem {
	r.parallel = !r.legacy && (!v.get("parallel_tool_calls").given() || v.get("parallel_tool_calls").isTrue())
	choice, at := v.get("tool_choice"), "tool_choice"
	if r.legacy {
		choice, at = v.get("function_call"), "function_call"
	}
	for _, name := range []string{at, "parallel_tool_calls"} {
		if v.get(name).given() && len(r.tools) == 0 {
			return invalid(name, "", "Invalid value for '%s': it is only allowed when 'tools' are specified.", name)
		}
	}
	switch {
	case !choice.given():
	case choice.kind == isString:
		r.choice = choice.text
		if r.choice != "auto" && r.choice != "none" && (r.choice != "required" || r.legacy) {
			return invalid(at, "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", r.choice)
		}
	case choice.kind != isObject:
		return invalidType(at, "a string or an object", choice)
	case r.legacy:
		r.choice, r.only = "required", []string{choice.get("name").text}
	case choice.get("type").is("function"):
		r.choice, r.only = "required", []string{choice.get("function").get("name").text}
	case choice.get("type").is("allowed_tools"):
		allowed := choice.get("allowed_tools")
		r.choice, r.only = allowed.get("mode").text, []string{}
		for _, t := range allowed.get("tools").items {
			r.only = append(r.only, t.get("function").get("name").text)
		}
		if r.choice != "auto" && r.choice != "required" {
			return invalid(at, "invalid_value", "Invalid value: '%s'. Supported values are: 'auto' and 'required'.", r.choice)
		}
	default:
		return invalid(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'allowed_tools'.", choice.get("type").text)
	}
	for _, name := range r.only {
		if r.tool(name) == nil {
			return invalid(at, "", "Invalid value for '%s': no function named '%s' was found in 'tools'.", at, name)
		}
	}
	return nil
}

func (r *request) tool(name string) *tool {
	for i := range r.tools {
		if r.tools[i].name == name {
			return &r.tools[i]
		}
	}
	return nil
}

// offered returns the tools that may be called now.
func (r *request) offered() []tool {
	if r.choice == "none" {
		return nil
	}
	if r.only == nil {
		return r.tools
	}
	var list []tool
	for _, name := range r.only {
		list = append(list, *r.tool(name))
	}
	return list
}

func (r *request) readLimits(v value) *problem {
	for _, field := range []struct {
		name string
		to   *int
		max  int
	}{{"n", &r.n, 128}, {"max_tokens", &r.limit, 1 << 30}, {"max_completion_tokens", &r.limit, 1 << 30}} {
		given := v.get(field.name)
		if !given.given() {
			continue
		}
		n, ok := given.integer()
		if !ok {
			return invalidType(field.name, "an integer", given)
		}
		if n < 1 {
			return invalid(field.name, "integer_below_min_value", "Invalid '%s': integer below minimum value. Expected a value >= 1, but got %d instead.", field.name, n)
		}
		if n > field.max {
			return invalid(field.name, "integer_above_max_value", "Invalid '%s': integer above maximum value. Expected a value <= %d, but got %d instead.", field.name, field.max, n)
		}
		*field.to = n
	}
	return nil
}

func (r *request) readStop(v value) *problem {
	stop := v.get("stop")
	switch stop.kind {
	case absent, isNull:
	case isString:
		r.stop = []string{stop.text}
	case isArray:
		if len(stop.items) > 4 {
			return invalid("stop", "array_above_max_length", "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(stop.items))
		}
		for _, s := range stop.items {
			if s.kind != isString {
				return invalidType("stop", "a string or an array of strings", s)
			}
			r.stop = append(r.stop, s.text)
		}
	default:
		return invalidType("stop", "a string or an array of strings", stop)
	}
	return nil
}

func (r *request) readFormat(v value) *problem {
	format := v.get("response_format")
	if !format.given() {
		return nil
	}
	r.format = format.get("type").text
	switch r.format {
	case "text", "json_object":
		return nil
	case "json_schema":
		r.schema = format.get("json_schema").get("schema")
		if r.schema.kind != isObject {
			return invalid("response_format.json_schema.schema", "missing_required_parameter", "Missing required parameter: 'response_format.json_schema.schema'.")
		}
		r.promptBytes += len(r.schema.raw)
		return nil
	}
	return invalid("response_format.type", "invalid_value", "Invalid value: '%s'. Supported values are: 'text', 'json_object', and 'json_schema'.", r.format)
}
