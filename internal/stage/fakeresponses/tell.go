package fakeresponses

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// created is when all responses were created.
const created = 1790000000

// A made response is one that answers a request.
type made struct {
	*request
	id     string
	stream bool
}

// as returns the response in a state.
func (m *made) as(status string, output []json.RawMessage, usage, incomplete, failure json.RawMessage) json.RawMessage {
	given := func(name, otherwise string) rawjson.Member {
		if value := m.object.Get(name); kindOf(value) != "" {
			return raw(name, value)
		}
		return raw(name, json.RawMessage(otherwise))
	}
	done := raw("completed_at", nil)
	if status == "completed" || status == "incomplete" {
		done = number("completed_at", created+2)
	}
	store := "false"
	if m.store {
		store = "true"
	}
	return object(
		text("id", m.id), text("object", "response"), number("created_at", created), done, text("status", status), given("background", "false"),
		raw("error", failure), raw("incomplete_details", incomplete), given("instructions", "null"), given("max_output_tokens", "null"),
		given("max_tool_calls", "null"), text("model", stringOf(m.object, "model")+"-2026-10-01"), raw("output", rawjson.AppendArray(nil, output)),
		given("parallel_tool_calls", "true"), given("previous_response_id", "null"), given("prompt_cache_key", "null"),
		given("reasoning", `{"effort":null,"summary":null}`), given("safety_identifier", "null"), given("service_tier", `"default"`),
		raw("store", json.RawMessage(store)), given("temperature", "1.0"), given("text", `{"format":{"type":"text"},"verbosity":"medium"}`),
		given("tool_choice", `"auto"`), given("tools", "[]"), given("top_logprobs", "0"), given("top_p", "1.0"), given("truncation", `"disabled"`),
		raw("usage", usage), given("user", "null"), given("metadata", "{}"),
	)
}

// usage is what an answer cost.
func (a Answer) usage() json.RawMessage {
	if a.Usage != nil {
		return a.Usage
	}
	return json.RawMessage(`{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}`)
}

// response returns the response as it ended.
func (m *made) response(a Answer) json.RawMessage {
	if a.Incomplete != "" {
		return m.as("incomplete", a.Items, a.usage(), object(text("reason", a.Incomplete)), nil)
	}
	return m.as("completed", a.Items, a.usage(), nil, nil)
}

// A stream is events that are being written.
type stream struct {
	w   io.Writer
	seq int
}

func (s *stream) event(kind string, members ...rawjson.Member) {
	all := append([]rawjson.Member{text("type", kind)}, members...)
	all = append(all, number("sequence_number", s.seq))
	s.seq++
	fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, object(all...))
}

// tell writes the events of an answer.
func (m *made) tell(s *stream, a Answer) {
	begun := m.as("in_progress", nil, nil, nil, nil)
	s.event("response.created", raw("response", begun))
	s.event("response.in_progress", raw("response", begun))
	for i, item := range a.Items {
		m.tellItem(s, i, item)
	}
	switch {
	case a.Cut:
	case a.Status != 0:
		f := &Failure{a.Status, a.Code, a.Message, a.Param}
		s.event("error", raw("error", f.object()))
		s.event("response.failed", raw("response", m.as("failed", nil, nil, nil, object(text("code", a.Code), text("message", a.Message)))))
	case a.Incomplete != "":
		s.event("response.incomplete", raw("response", m.response(a)))
	default:
		s.event("response.completed", raw("response", m.response(a)))
	}
}

// tellItem writes the events of an item.
func (m *made) tellItem(s *stream, at int, item json.RawMessage) {
	o, err := rawjson.ParseObject(item)
	if err != nil {
		panic(err) // a test made it
	}
	id := stringOf(o, "id")
	place := []rawjson.Member{text("item_id", id), number("output_index", at)}
	begun := o.Clone()
	with := func(members ...rawjson.Member) []rawjson.Member { return append(place[:2:2], members...) }
	if begun.Get("status") != nil {
		begun.Set("status", rawjson.Quote("in_progress"))
	}
	for name, empty := range map[string]string{"content": "[]", "summary": "[]", "arguments": `""`, "input": `""`} {
		if begun.Get(name) != nil && rawjson.Kind(begun.Get(name)) != '{' {
			begun.Set(name, json.RawMessage(empty))
		}
	}
	s.event("response.output_item.added", number("output_index", at), raw("item", begun.Bytes()))
	switch kind := stringOf(o, "type"); kind {
	case "message":
		parts, _ := rawjson.Elements(o.Get("content"))
		for n, part := range parts {
			m.tellPart(s, with(number("content_index", n)), part)
		}
	case "reasoning":
		parts, _ := rawjson.Elements(o.Get("summary"))
		for n, part := range parts {
			p, _ := rawjson.ParseObject(part)
			place := with(number("summary_index", n))
			s.event("response.reasoning_summary_part.added", append(place[:3:3], raw("part", object(text("type", "summary_text"), text("text", ""))))...)
			for _, piece := range halves(stringOf(p, "text")) {
				s.event("response.reasoning_summary_text.delta", append(place[:3:3], text("delta", piece))...)
			}
			s.event("response.reasoning_summary_text.done", append(place[:3:3], text("text", stringOf(p, "text")))...)
			s.event("response.reasoning_summary_part.done", append(place[:3:3], raw("part", part))...)
		}
		thoughts, _ := rawjson.Elements(o.Get("content"))
		for n, part := range thoughts {
			p, _ := rawjson.ParseObject(part)
			place := with(number("content_index", n))
			for _, piece := range halves(stringOf(p, "text")) {
				s.event("response.reasoning_text.delta", append(place[:3:3], text("delta", piece))...)
			}
			s.event("response.reasoning_text.done", append(place[:3:3], text("text", stringOf(p, "text")))...)
		}
	case "function_call":
		for _, piece := range halves(stringOf(o, "arguments")) {
			s.event("response.function_call_arguments.delta", with(text("delta", piece))...)
		}
		s.event("response.function_call_arguments.done", with(text("arguments", stringOf(o, "arguments")))...)
	case "custom_tool_call":
		for _, piece := range halves(stringOf(o, "input")) {
			s.event("response.custom_tool_call_input.delta", with(text("delta", piece))...)
		}
		s.event("response.custom_tool_call_input.done", with(text("input", stringOf(o, "input")))...)
	case "web_search_call", "file_search_call":
		for _, state := range []string{"in_progress", "searching", "completed"} {
			s.event("response."+kind+"."+state, place...)
		}
	case "code_interpreter_call":
		s.event("response.code_interpreter_call.in_progress", place...)
		s.event("response.code_interpreter_call_code.delta", with(text("delta", stringOf(o, "code")))...)
		s.event("response.code_interpreter_call_code.done", with(text("code", stringOf(o, "code")))...)
		s.event("response.code_interpreter_call.interpreting", place...)
		s.event("response.code_interpreter_call.completed", place...)
	case "image_generation_call":
		for _, state := range []string{"in_progress", "generating", "completed"} {
			s.event("response.image_generation_call."+state, place...)
		}
	}
	s.event("response.output_item.done", number("output_index", at), raw("item", item))
}

// tellPart writes the events of a part of a message.
func (m *made) tellPart(s *stream, place []rawjson.Member, part json.RawMessage) {
	p, err := rawjson.ParseObject(part)
	if err != nil {
		panic(err) // a test made it
	}
	with := func(members ...rawjson.Member) []rawjson.Member { return append(place[:3:3], members...) }
	if stringOf(p, "type") == "refusal" {
		s.event("response.content_part.added", with(raw("part", object(text("type", "refusal"), text("refusal", ""))))...)
		for _, piece := range halves(stringOf(p, "refusal")) {
			s.event("response.refusal.delta", with(text("delta", piece))...)
		}
		s.event("response.refusal.done", with(text("refusal", stringOf(p, "refusal")))...)
		s.event("response.content_part.done", with(raw("part", part))...)
		return
	}
	empty := object(text("type", "output_text"), raw("annotations", json.RawMessage("[]")), raw("logprobs", json.RawMessage("[]")), text("text", ""))
	s.event("response.content_part.added", with(raw("part", empty))...)
	for _, piece := range halves(stringOf(p, "text")) {
		s.event("response.output_text.delta", with(text("delta", piece), raw("logprobs", json.RawMessage("[]")), text("obfuscation", "x7Qp"))...)
	}
	annotations, _ := rawjson.Elements(p.Get("annotations"))
	for n, annotation := range annotations {
		s.event("response.output_text.annotation.added", with(number("annotation_index", n), raw("annotation", annotation))...)
	}
	s.event("response.output_text.done", with(text("text", stringOf(p, "text")), raw("logprobs", json.RawMessage("[]")))...)
	s.event("response.content_part.done", with(raw("part", part))...)
}

// halves returns a text in two pieces.
func halves(s string) []string {
	runes := []rune(s)
	if len(runes) < 2 {
		return []string{s}
	}
	return []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}
