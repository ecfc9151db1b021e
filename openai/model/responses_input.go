package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// itemsMember is the member of a message of the history that has the items of the
// Responses API for which the message stands. No upstream gets it, and no client.
const itemsMember = "dragoman"

// Items are what stands for a message at an API that speaks Responses.
type Items struct {
	// Items are the items, as they came.
	Items []json.RawMessage
	// Response is the id of the response that they are the output of; empty where they
	// are a client's own. Then calls among them that the message has not are left out,
	// and text and arguments that it has others of are replaced.
	Response string
	// Stored says that the API keeps the response, so that one can go on from it.
	Stored bool
}

// Put gives a message its items.
func (i Items) Put(message *rawjson.Object) {
	var o rawjson.Object
	if i.Response != "" {
		o.Set("response", rawjson.Quote(i.Response))
	}
	if i.Stored {
		o.Set("stored", json.RawMessage("true"))
	}
	o.Set("items", rawjson.AppendArray(nil, i.Items))
	message.Set(itemsMember, o.Bytes())
}

// Rename gives calls and their answers other ids, by those that they have.
func (i *Items) Rename(ids map[string]string) {
	i.Items = slices.Clone(i.Items)
	for n, raw := range i.Items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			continue // it was read
		}
		was, _ := rawjson.String(item.Get("call_id"))
		if id := ids[was]; id != "" {
			item.Set("call_id", rawjson.Quote(id))
			i.Items[n] = item.Bytes()
		}
	}
}

// ItemsOf returns the items of a message; ok is false where it has none.
func ItemsOf(message json.RawMessage) (i Items, ok bool) {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return i, false
	}
	return itemsIn(o)
}

// itemsIn is ItemsOf for a message that was taken apart.
func itemsIn(message *rawjson.Object) (i Items, ok bool) {
	o, err := rawjson.ParseObject(message.Get(itemsMember))
	if err != nil {
		return i, false
	}
	if i.Items, err = rawjson.Elements(o.Get("items")); err != nil {
		return i, false
	}
	i.Response, _ = rawjson.String(o.Get("response"))
	i.Stored = string(o.Get("stored")) == "true"
	return i, true
}

// inputOf returns messages of the Chat API as items of the Responses API. The error is an
// [*Error] that names what cannot be carried.
func inputOf(messages []json.RawMessage) ([]json.RawMessage, error) {
	in := input{items: make([]json.RawMessage, 0, len(messages)), custom: map[string]bool{}}
	for n, raw := range messages {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, Invalid(fmt.Sprintf("messages[%d]", n), "The message is malformed.")
		}
		if err := in.message(o, fmt.Sprintf("messages[%d]", n)); err != nil {
			return nil, err
		}
	}
	return in.items, nil
}

// An input is the items of a request while it is made.
type input struct {
	items  []json.RawMessage
	custom map[string]bool // calls of tools that take text, by id
}

func (in *input) add(members ...rawjson.Member) {
	in.items = append(in.items, (&rawjson.Object{Members: members}).Bytes())
}

func quoted(name, value string) rawjson.Member {
	return rawjson.Member{Name: name, Value: rawjson.Quote(value)}
}

// message takes a message, which stands at param.
func (in *input) message(o *rawjson.Object, param string) error {
	kept, native := itemsIn(o)
	role, _ := rawjson.String(o.Get("role"))
	switch {
	case role == "tool":
		return in.result(o, kept, param)
	case role == "assistant" && native && kept.Response != "":
		in.said(o, kept)
		return nil
	case native:
		in.items = append(in.items, kept.Items...)
		return nil
	}
	switch role {
	case "assistant":
		return in.assistant(o, param)
	case "user", "system", "developer":
		content, err := inputContent(o.Get("content"), param)
		if err != nil {
			return err
		}
		in.add(quoted("type", "message"), quoted("role", role), rawjson.Member{Name: "content", Value: content})
		return nil
	}
	return Invalid(param+".role", fmt.Sprintf("The model's API is the Responses API, which has no messages of the role %.20q.", role))
}

// said takes a message of the model's as it was, but for what its client changed.
func (in *input) said(o *rawjson.Object, kept Items) {
	calls := map[string]*rawjson.Object{}
	raw, _ := rawjson.Elements(o.Get("tool_calls"))
	for _, each := range raw {
		if call, err := rawjson.ParseObject(each); err == nil {
			id, _ := rawjson.String(call.Get("id"))
			calls[id] = call
		}
	}
	now, isText := rawjson.String(o.Get("content"))
	if !isText { // or a list of parts
		now = contentOf(o)
	}
	edited := now != textOf(kept.Items)
	spoke := textOf(kept.Items) != ""
	answered := answeredIn(kept.Items)
	for _, item := range kept.Items {
		i, err := rawjson.ParseObject(item)
		if err != nil {
			continue // it was read
		}
		kind, _ := rawjson.String(i.Get("type"))
		id, _ := rawjson.String(i.Get("call_id"))
		switch {
		case kind == "message" && edited:
			if now != "" {
				in.speak(now)
				now = ""
			}
			continue
		case callsClient(i) && !answered[id]:
			if edited && !spoke && now != "" { // there was no text
				in.speak(now)
				now = ""
			}
			call := calls[id]
			if call == nil {
				continue
			}
			if in.custom[id] = kind == "custom_tool_call"; in.custom[id] || kind == "function_call" {
				item = withArguments(item, i, call)
			}
		}
		in.items = append(in.items, item)
	}
	if edited && !spoke && now != "" {
		in.speak(now)
	}
}

// speak adds a text of the assistant's.
func (in *input) speak(text string) {
	in.add(quoted("type", "message"), quoted("role", "assistant"), quoted("content", text))
}

// withArguments returns the item of a call with the arguments that its message has now.
func withArguments(item json.RawMessage, i, call *rawjson.Object) json.RawMessage {
	for kind, name := range map[string]string{"function": "arguments", "custom": "input"} {
		inner, err := rawjson.ParseObject(call.Get(kind))
		if err != nil || i.Get(name) == nil {
			continue
		}
		was, _ := rawjson.String(i.Get(name))
		if now := string(argumentText(inner.Get(name))); now != was {
			o := i.Clone()
			o.Set(name, rawjson.Quote(now))
			return o.Bytes()
		}
	}
	return item
}

// assistant takes a message of the assistant's of which nothing is known but itself.
func (in *input) assistant(o *rawjson.Object, param string) error {
	if !rawjson.IsNull(o.Get("audio")) {
		return NotInResponses(param + ".audio")
	}
	var parts []json.RawMessage
	if text, ok := rawjson.String(o.Get("content")); ok && text != "" {
		in.speak(text)
	} else if list, err := rawjson.Elements(o.Get("content")); err == nil {
		for _, raw := range list {
			part, err := rawjson.ParseObject(raw)
			if err != nil {
				return Invalid(param+".content", "Each part of content must be an object.")
			}
			if text, ok := rawjson.String(part.Get("text")); ok {
				parts = append(parts, (&rawjson.Object{Members: []rawjson.Member{quoted("type", "output_text"), quoted("text", text)}}).Bytes())
			}
			if refusal, ok := rawjson.String(part.Get("refusal")); ok {
				parts = append(parts, (&rawjson.Object{Members: []rawjson.Member{quoted("type", "refusal"), quoted("refusal", refusal)}}).Bytes())
			}
		}
	}
	if refusal, ok := rawjson.String(o.Get("refusal")); ok && refusal != "" {
		parts = append(parts, (&rawjson.Object{Members: []rawjson.Member{quoted("type", "refusal"), quoted("refusal", refusal)}}).Bytes())
	}
	if len(parts) > 0 {
		in.add(quoted("type", "message"), quoted("role", "assistant"), rawjson.Member{Name: "content", Value: rawjson.AppendArray(nil, parts)})
	}
	calls, _ := rawjson.Elements(o.Get("tool_calls"))
	for n, raw := range calls {
		call, err := rawjson.ParseObject(raw)
		if err != nil {
			return Invalid(fmt.Sprintf("%s.tool_calls[%d]", param, n), "A call must be an object.")
		}
		in.call(call)
	}
	return nil
}

// call takes a call of the Chat API.
func (in *input) call(call *rawjson.Object) {
	id, _ := rawjson.String(call.Get("id"))
	if inner, err := rawjson.ParseObject(call.Get("custom")); err == nil {
		in.custom[id] = true
		name, _ := rawjson.String(inner.Get("name"))
		in.add(quoted("type", "custom_tool_call"), quoted("call_id", id), quoted("name", name), quoted("input", string(argumentText(inner.Get("input")))))
		return
	}
	inner, err := rawjson.ParseObject(call.Get("function"))
	if err != nil {
		inner = &rawjson.Object{}
	}
	name, _ := rawjson.String(inner.Get("name"))
	in.add(quoted("type", "function_call"), quoted("call_id", id), quoted("name", name), quoted("arguments", string(argumentText(inner.Get("arguments")))))
}

// result takes what a tool answered. Where a client sent it as items, the id of its call
// is that of the message: the upstream may know it by another one than the client.
func (in *input) result(o *rawjson.Object, kept Items, param string) error {
	id, _ := rawjson.String(o.Get("tool_call_id"))
	if len(kept.Items) > 0 {
		for _, item := range kept.Items {
			if i, err := rawjson.ParseObject(item); err == nil {
				if was, _ := rawjson.String(i.Get("call_id")); was != id {
					i.Set("call_id", rawjson.Quote(id))
					item = i.Bytes()
				}
			}
			in.items = append(in.items, item)
		}
		return nil
	}
	output, err := inputContent(o.Get("content"), param)
	if err != nil {
		return err
	}
	if rawjson.IsNull(output) {
		output = json.RawMessage(`""`)
	}
	kind := "function_call_output"
	if in.custom[id] {
		kind = "custom_tool_call_output"
	}
	in.add(quoted("type", kind), quoted("call_id", id), rawjson.Member{Name: "output", Value: output})
	return nil
}

// inputContent returns the content of a message of the Chat API, which stands at param, as
// the Responses API has it.
func inputContent(content json.RawMessage, param string) (json.RawMessage, error) {
	if rawjson.Kind(content) != '[' {
		if rawjson.IsNull(content) {
			return json.RawMessage(`""`), nil
		}
		return content, nil
	}
	parts, err := rawjson.Elements(content)
	if err != nil {
		return nil, Invalid(param+".content", "\"content\" must be a string or an array.")
	}
	for n, raw := range parts {
		at := fmt.Sprintf("%s.content[%d]", param, n)
		part, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, Invalid(at, "Each part of content must be an object.")
		}
		if parts[n], err = inputPart(part, at); err != nil {
			return nil, err
		}
	}
	return rawjson.AppendArray(nil, parts), nil
}

// inputPart returns a part of content, which stands at param.
func inputPart(part *rawjson.Object, param string) (json.RawMessage, error) {
	kind, _ := rawjson.String(part.Get("type"))
	out := &rawjson.Object{}
	switch kind {
	case "text":
		out.Set("type", rawjson.Quote("input_text"))
		out.Set("text", part.Get("text"))
	case "image_url":
		out.Set("type", rawjson.Quote("input_image"))
		image, err := rawjson.ParseObject(part.Get("image_url"))
		if err != nil {
			out.Set("image_url", part.Get("image_url"))
			break
		}
		out.Set("image_url", image.Get("url"))
		if detail := image.Get("detail"); !rawjson.IsNull(detail) {
			out.Set("detail", detail)
		}
	case "file":
		out.Set("type", rawjson.Quote("input_file"))
		file, err := rawjson.ParseObject(part.Get("file"))
		if err != nil {
			return nil, Invalid(param+".file", "A part with a file needs a member file.")
		}
		out.Members = append(out.Members, file.Members...)
	default:
		return nil, Invalid(param+".type", fmt.Sprintf("The model's API is the Responses API, which has nothing for parts of the type %.40q.", kind))
	}
	return out.Bytes(), nil
}

// callsClient reports whether an item is a call that its client has to answer, or we: one
// that has an id of its own for its answer. Hosted tools answer themselves.
func callsClient(item *rawjson.Object) bool {
	kind, _ := rawjson.String(item.Get("type"))
	id, _ := rawjson.String(item.Get("call_id"))
	if id == "" || !strings.HasSuffix(kind, "_call") {
		return false
	}
	if execution, _ := rawjson.String(item.Get("execution")); kind == "tool_search_call" && execution != "client" {
		return false
	}
	return true
}

// answeredIn returns the ids of calls that have their answer among items.
func answeredIn(items []json.RawMessage) map[string]bool {
	answered := map[string]bool{}
	for _, raw := range items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		if kind, _ := rawjson.String(item.Get("type")); strings.HasSuffix(kind, "_output") {
			id, _ := rawjson.String(item.Get("call_id"))
			answered[id] = true
		}
	}
	return answered
}

// IsCall reports whether an item of the Responses API is a call that waits for an answer
// by its call_id: of a client, or of ours. Hosted tools answer themselves.
func IsCall(item *Object) bool { return callsClient(item) }

// Owns reports whether an item of the Responses API is a call of a tool that is offered
// here.
func (d *Dialogue) Owns(item *Object) bool {
	if !callsClient(item) {
		return false
	}
	call := callOf(item, nil)
	ours, _ := d.owner(call)
	return ours && !call.client
}

// betweenMessages stands between the texts of two messages of one answer, and between what was
// thought in two places, where an API has one.
const betweenMessages = "\n\n"

// textOf returns the text of the messages among items.
func textOf(items []json.RawMessage) string {
	var texts []string
	for _, raw := range items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		if kind, _ := rawjson.String(item.Get("type")); kind != "message" {
			continue
		}
		if text := contentOf(item); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, betweenMessages)
}

// contentOf returns the texts of an item's content, one behind the other.
func contentOf(item *rawjson.Object) string {
	var all strings.Builder
	parts, _ := rawjson.Elements(item.Get("content"))
	for _, raw := range parts {
		if part, err := rawjson.ParseObject(raw); err == nil {
			text, _ := rawjson.String(part.Get("text"))
			all.WriteString(text)
		}
	}
	return all.String()
}
