package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// chatContent returns the content of a message, or the output of a call, as the Chat API
// has it: text where it is text alone.
func chatContent(content json.RawMessage, role, param string) (json.RawMessage, error) {
	if rawjson.IsString(content) {
		return content, nil
	}
	if rawjson.IsNull(content) {
		return json.RawMessage(`""`), nil
	}
	parts, err := rawjson.Elements(content)
	if err != nil {
		return nil, model.Invalid(param+".content", "Content must be a string or an array of parts.")
	}
	var texts []string
	var chat []json.RawMessage
	plain := true
	for i, each := range parts {
		o, err := rawjson.ParseObject(each)
		at := fmt.Sprintf("%s.content[%d]", param, i)
		if err != nil {
			return nil, model.Invalid(at, "Each part must be an object.")
		}
		part, s, err := chatPart(o, at)
		if err != nil {
			return nil, err
		}
		if part == nil {
			texts = append(texts, s)
			part = object(text("type", "text"), text("text", s))
		} else {
			plain = false
		}
		chat = append(chat, part)
	}
	switch {
	case plain:
		return rawjson.Quote(strings.Join(texts, "\n")), nil
	case role == "assistant":
		return rawjson.Quote(strings.Join(texts, "\n")), nil
	}
	return rawjson.AppendArray(nil, chat), nil
}

// joined returns the content of two results as that of one: text where both are.
func joined(one, other json.RawMessage) json.RawMessage {
	a, plain := rawjson.String(one)
	if b, ok := rawjson.String(other); plain && ok {
		return rawjson.Quote(strings.Join(nonEmpty([]string{a, b}), "\n"))
	}
	var all []json.RawMessage
	for _, content := range []json.RawMessage{one, other} {
		if s, ok := rawjson.String(content); ok {
			all = append(all, object(text("type", "text"), text("text", s)))
		} else if parts, err := rawjson.Elements(content); err == nil {
			all = append(all, parts...)
		}
	}
	return array(all...)
}

// chatPart returns a part of content as the Chat API has it; nil with the text of one
// that is text.
func chatPart(o *rawjson.Object, param string) (part json.RawMessage, s string, err error) {
	switch kind := stringOf(o, "type"); kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return nil, stringOf(o, "text"), nil
	case "refusal":
		return nil, stringOf(o, "refusal"), nil
	case "input_image":
		url := stringOf(o, "image_url")
		if url == "" {
			return nil, "", model.Invalid(param, "Files are not kept here: send the picture itself as image_url.")
		}
		image := rawjson.Object{Members: []rawjson.Member{text("url", url)}}
		if detail := o.Get("detail"); !rawjson.IsNull(detail) {
			image.Set("detail", detail)
		}
		return object(text("type", "image_url"), raw("image_url", image.Bytes())), "", nil
	case "input_file":
		data := o.Get("file_data")
		if rawjson.IsNull(data) {
			return nil, "", model.Invalid(param, "Files are not kept or fetched here: send the file itself as file_data.")
		}
		file := rawjson.Object{Members: []rawjson.Member{raw("file_data", data)}}
		if name := o.Get("filename"); !rawjson.IsNull(name) {
			file.Set("filename", name)
		}
		return object(text("type", "file"), raw("file", file.Bytes())), "", nil
	case "input_audio":
		return object(text("type", "input_audio"), raw("input_audio", o.Get("input_audio"))), "", nil
	default:
		return nil, "", model.Invalid(param+".type", fmt.Sprintf("Parts of the type %.40q are not known here.", kind))
	}
}
