package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// readResponseBody takes a whole response of the Responses API apart.
func (r *Reply) readResponseBody(body []byte) error {
	o, err := rawjson.Read(body)
	switch {
	case errors.Is(err, rawjson.ErrNoObject):
		return invalidReply("is not a JSON object", err)
	case err != nil:
		return invalidReply("is not JSON", err)
	}
	return r.readResponse(o, nil)
}

// readResponse reads a response that has ended. items are those that its stream had,
// for an API that leaves them out at its end.
func (r *Reply) readResponse(o *rawjson.Object, items []json.RawMessage) error {
	if failure := o.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	status, _ := rawjson.String(o.Get("status"))
	switch status {
	case "completed", "incomplete":
	case "failed":
		return reported(rawjson.Quote("the response failed"))
	default:
		return invalidReply("is a response that has not ended", nil)
	}
	output, err := rawjson.Elements(o.Get("output"))
	if err != nil {
		return invalidReply("has no output", err)
	}
	if len(output) == 0 {
		output = items
	}
	r.Response, r.Items = o, output
	r.Usage = chatUsage(o.Get("usage"))
	if err := r.readItems(); err != nil {
		return err
	}
	switch reason := reasonOf(o); {
	case status == "incomplete" && reason == "content_filter":
		r.Finish = "content_filter"
	case status == "incomplete":
		r.Finish = "length"
	case len(r.Calls) > 0:
		r.Finish = "tool_calls"
	default:
		r.Finish = "stop"
	}
	r.Envelope = envelopeOf(o, "chat.completion")
	if tier := o.Get("service_tier"); !rawjson.IsNull(tier) {
		r.Envelope.Set("service_tier", tier)
	}
	r.Choice = &rawjson.Object{Members: []rawjson.Member{
		{Name: "index", Value: json.RawMessage("0")}, {Name: "finish_reason", Value: rawjson.Quote(r.Finish)},
	}}
	return nil
}

// reasonOf returns why a response is incomplete.
func reasonOf(o *rawjson.Object) string {
	details, err := rawjson.ParseObject(o.Get("incomplete_details"))
	if err != nil {
		return ""
	}
	reason, _ := rawjson.String(details.Get("reason"))
	return reason
}

// envelopeOf returns what of a response goes around a message of the Chat API.
func envelopeOf(response *rawjson.Object, object string) *rawjson.Object {
	o := &rawjson.Object{}
	for _, each := range [][2]string{{"id", "id"}, {"created", "created_at"}, {"model", "model"}} {
		if value := response.Get(each[1]); !rawjson.IsNull(value) {
			o.Set(each[0], bytes.Clone(value))
		}
	}
	o.Set("object", rawjson.Quote(object))
	return o
}

// readItems makes a message of the Chat API of the output of a response.
func (r *Reply) readItems() error {
	r.Message = &rawjson.Object{}
	r.Message.Set("role", rawjson.Quote("assistant"))
	answered := answeredIn(r.Items) // calls that the API itself has answered
	objects := make([]*rawjson.Object, len(r.Items))
	for n, raw := range r.Items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			return invalidReply("has an item that is no object", err)
		}
		objects[n] = item
	}
	var thoughts, refusals []string
	var annotations, logprobs []json.RawMessage
	said := 0 // characters of the text before
	for n, item := range objects {
		kind, _ := rawjson.String(item.Get("type"))
		id, _ := rawjson.String(item.Get("call_id"))
		switch {
		case kind == "message":
			text := contentOf(item)
			if said > 0 && text != "" {
				said += len(betweenMessages)
			}
			annotations = append(annotations, citations(item, said)...)
			said += utf8.RuneCountInString(text)
			parts, _ := rawjson.Elements(item.Get("content"))
			for _, raw := range parts {
				part, err := rawjson.ParseObject(raw)
				if err != nil {
					continue
				}
				if refusal, _ := rawjson.String(part.Get("refusal")); refusal != "" {
					refusals = append(refusals, refusal)
				}
				likely, _ := rawjson.Elements(part.Get("logprobs"))
				logprobs = append(logprobs, likely...)
			}
		case kind == "reasoning":
			if thought := thoughtOf(item); thought != "" {
				thoughts = append(thoughts, thought)
			}
		case callsClient(item) && !answered[id]:
			if len(r.Calls) == maxCalls {
				return invalidReply("has too many calls", nil)
			}
			r.Calls = append(r.Calls, callOf(item, r.Items[n]))
		}
	}
	r.Message.Set("content", null)
	if text := textOf(r.Items); text != "" || len(r.Calls) == 0 && len(refusals) == 0 {
		r.Message.Set("content", rawjson.Quote(text))
	}
	if len(refusals) > 0 {
		r.Message.Set("refusal", rawjson.Quote(strings.Join(refusals, "\n")))
	}
	if len(thoughts) > 0 {
		r.Message.Set("reasoning_content", rawjson.Quote(strings.Join(thoughts, betweenMessages)))
	}
	if len(annotations) > 0 {
		r.Message.Set("annotations", rawjson.AppendArray(nil, annotations))
	}
	if len(logprobs) > 0 {
		r.Logprobs = (&rawjson.Object{Members: []rawjson.Member{
			{Name: "content", Value: rawjson.AppendArray(nil, logprobs)}, {Name: "refusal", Value: null},
		}}).Bytes()
	}
	return nil
}

// callOf returns the call that an item is. What is no call of a function by its name
// alone is the client's in any case.
func callOf(item *rawjson.Object, raw json.RawMessage) *Call {
	kind, _ := rawjson.String(item.Get("type"))
	c := &Call{}
	c.ID, _ = rawjson.String(item.Get("call_id"))
	c.Name, _ = rawjson.String(item.Get("name"))
	switch kind {
	case "function_call":
		c.Arguments = argumentText(item.Get("arguments"))
		c.client = !rawjson.IsNull(item.Get("namespace"))
	case "custom_tool_call":
		c.Arguments, c.Custom = argumentText(item.Get("input")), true
		c.client = !rawjson.IsNull(item.Get("namespace"))
	default:
		c.Name, c.Arguments, c.client = strings.TrimSuffix(kind, "_call"), raw, true
	}
	return c
}

// thoughtOf returns what an item of reasoning says in words: what the model thought, or a
// summary of it.
func thoughtOf(item *rawjson.Object) string {
	if text := contentOf(item); text != "" {
		return text
	}
	var all []string
	parts, _ := rawjson.Elements(item.Get("summary"))
	for _, raw := range parts {
		if part, err := rawjson.ParseObject(raw); err == nil {
			if text, _ := rawjson.String(part.Get("text")); text != "" {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, betweenMessages)
}

// usageNames are the members of usage in the Responses API, by those of the Chat API.
var usageNames = map[string]string{
	"input_tokens": "prompt_tokens", "input_tokens_details": "prompt_tokens_details",
	"output_tokens": "completion_tokens", "output_tokens_details": "completion_tokens_details",
}

// chatUsage returns usage in the form of the Chat API.
func chatUsage(usage json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(usage)
	if err != nil {
		return nil
	}
	of := &rawjson.Object{}
	for _, m := range o.Members {
		name := usageNames[m.Name]
		if name == "" {
			name = m.Name
		}
		of.Set(name, m.Value)
	}
	return of.Bytes()
}

// replayResponse tells of a response that came as a whole as if it had been streamed:
// its items, each added and done at once.
func (r *Reply) replayResponse(l Listener) error {
	if l.Event != nil {
		if err := r.replayItems(l); err != nil {
			return err
		}
	}
	if l.Chunk != nil {
		chunk := &Chunk{First: true, parsed: true, envelope: *envelopeOf(r.Response, "chat.completion.chunk"), delta: *r.Message.Clone()}
		chunk.choice.Set("index", json.RawMessage("0"))
		if r.Logprobs != nil {
			chunk.choice.Set("logprobs", r.Logprobs)
		}
		chunk.choice.Set("finish_reason", null)
		if err := l.Chunk(chunk); err != nil {
			return err
		}
		r.endStream()
	}
	if l.Flush == nil {
		return nil
	}
	return l.Flush()
}

func (r *Reply) replayItems(l Listener) error {
	event := func(kind string, members ...rawjson.Member) error {
		return l.Event(kind, &rawjson.Object{Members: append([]rawjson.Member{quoted("type", kind)}, members...)})
	}
	whole := rawjson.Member{Name: "response", Value: r.Response.Bytes()}
	if err := event("response.created", whole); err != nil {
		return err
	}
	for n, item := range r.Items {
		place := []rawjson.Member{{Name: "output_index", Value: strconv.AppendInt(nil, int64(n), 10)}, {Name: "item", Value: item}}
		for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
			if err := event(kind, place...); err != nil {
				return err
			}
		}
	}
	status, _ := rawjson.String(r.Response.Get("status"))
	return event("response."+status, whole)
}
