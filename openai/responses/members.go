package responses

import (
	"encoding/json"
	"fmt"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// same are members that mean the same to the Chat API.
var same = []string{"temperature", "top_p", "presence_penalty", "frequency_penalty", "parallel_tool_calls"}

// openAIs are members that OpenAI's Chat API has too, and that others refuse or do not
// know.
var openAIs = []string{"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier"}

// chat returns the request as the Chat API has it, without messages and tools, for an
// upstream of a dialect.
func (r *Request) chat(of *dialect.Dialect) *rawjson.Object {
	o := &rawjson.Object{}
	o.Set("model", rawjson.Quote(r.upstream))
	o.Set("messages", null)
	if r.Stream {
		o.Set("stream", json.RawMessage("true"))
		o.Set("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	take := func(name, from string, in *rawjson.Object) {
		if value := in.Get(from); !rawjson.IsNull(value) {
			o.Set(name, value)
		}
	}
	for _, name := range same {
		take(name, name, r.object)
	}
	openAI := of != nil && (of.Name() == "openai" || of.Name() == "openai-strict" || of.Name() == "azure")
	limit := "max_tokens"
	if openAI {
		limit = "max_completion_tokens"
		for _, name := range openAIs {
			take(name, name, r.object)
		}
	}
	take(limit, "max_output_tokens", r.object)
	if r.logprobs {
		o.Set("logprobs", json.RawMessage("true"))
		if string(r.object.Get("top_logprobs")) != "0" {
			take("top_logprobs", "top_logprobs", r.object)
		}
	}
	if reasoning, err := rawjson.ParseObject(r.object.Get("reasoning")); err == nil {
		take("reasoning_effort", "effort", reasoning)
	}
	if r.changed.effort != nil {
		o.Delete("reasoning_effort")
		if !rawjson.IsNull(r.changed.effort) {
			o.Set("reasoning_effort", r.changed.effort)
		}
	}
	if format, err := rawjson.ParseObject(r.object.Get("text")); err == nil {
		if openAI {
			take("verbosity", "verbosity", format)
		}
	}
	setFormat(o, r.format())
	return o
}

// A changed is what items of the type configuration_update change of a request: the last one
// of each; nil for none.
type changed struct{ effort, format json.RawMessage }

// configure takes what the conversation changes of how the model is to answer, from there on.
func (h *history) configure(o *rawjson.Object) error {
	for _, name := range []string{"reasoning", "text"} {
		value := o.Get(name)
		if rawjson.IsNull(value) {
			continue
		}
		of, err := rawjson.ParseObject(value)
		if err != nil {
			return model.Invalid("."+name, fmt.Sprintf("%q must be an object.", name))
		}
		if name == "reasoning" {
			h.changed.effort = of.Get("effort")
		} else {
			h.changed.format = of.Get("format")
		}
	}
	return nil
}

// format returns the format that the text has to have; nil for none.
func (r *Request) format() json.RawMessage {
	if r.changed.format != nil {
		return r.changed.format
	}
	return rawjson.Find(r.object.Get("text"), "format")
}

// setFormat gives a request of the Chat API the format that the text has to have.
func setFormat(o *rawjson.Object, format json.RawMessage) {
	f, err := rawjson.ParseObject(format)
	if err != nil {
		return
	}
	switch stringOf(f, "type") {
	case "json_object":
		o.Set("response_format", format)
	case "json_schema":
		f.Delete("type")
		o.Set("response_format", object(text("type", "json_schema"), raw("json_schema", f.Bytes())))
	}
}

// jsonFormat reports whether the text has to be JSON.
func (r *Request) jsonFormat() bool {
	o := &rawjson.Object{}
	setFormat(o, r.format())
	return o.Get("response_format") != nil
}
