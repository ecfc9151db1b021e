package responses

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A contents reads content of items, one after the other in the same room.
type contents struct {
	parts []json.RawMessage
	texts []json.RawMessage // literals, of the parts that are text
	part  rawjson.Object    // each part in turn
}

// chat returns a member of an item, the content of a message or the output of a call, as the
// Chat API has it: text where it is text alone, or the assistant's. Errors name a place in the
// item.
func (c *contents) chat(o *rawjson.Object, member, role string) (_ json.RawMessage, err error) {
	content := o.Get(member)
	if rawjson.Kind(content) == '"' {
		return content, nil
	}
	if rawjson.IsNull(content) {
		return noWords, nil
	}
	if c.parts, err = rawjson.AppendElements(c.parts[:0], content); err != nil {
		return nil, model.Invalid("."+member, "Content must be a string or an array of parts.")
	}
	c.texts = c.texts[:0]
	var others []json.RawMessage // by place, nil for texts; nil where there are only these
	for i, each := range c.parts {
		if err := c.part.Parse(each); err != nil {
			return nil, within("."+member, i, model.Invalid("", "Each part must be an object."))
		}
		part, s, err := chatPart(&c.part)
		switch {
		case err != nil:
			return nil, within("."+member, i, err)
		case part == nil:
			c.texts = append(c.texts, s)
		default:
			if others == nil {
				others = make([]json.RawMessage, len(c.parts))
			}
			others[i] = part
		}
	}
	if others == nil || role == "assistant" {
		return rawjson.JoinStrings("\n", c.texts), nil
	}
	next := 0 // of the texts
	for i := range others {
		if others[i] == nil {
			others[i] = object(text("type", "text"), raw("text", c.texts[next]))
			next++
		}
	}
	return rawjson.AppendArray(nil, others), nil
}

// noWords is the literal of no text, which nobody changes.
var noWords = slices.Clip(json.RawMessage(`""`))

// joined returns the contents of several results as that of one: text where all are.
func joined(contents []json.RawMessage) json.RawMessage {
	var texts, parts []json.RawMessage
	plain := true
	for _, content := range contents {
		if rawjson.Kind(content) != '"' {
			own, _ := rawjson.Elements(content) // as chatContent made it
			plain, parts = false, append(parts, own...)
			continue
		}
		if parts = append(parts, object(text("type", "text"), raw("text", content))); len(content) > len(noWords) {
			texts = append(texts, content)
		}
	}
	if !plain {
		return array(parts...)
	}
	return rawjson.JoinStrings("\n", texts)
}

// chatPart returns a part of content as the Chat API has it; nil with the literal of the text
// of one that is text.
func chatPart(o *rawjson.Object) (part, literal json.RawMessage, err error) {
	switch kind := stringOf(o, "type"); kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return nil, literalOf(o, "text"), nil
	case "refusal":
		return nil, literalOf(o, "refusal"), nil
	case "input_image":
		url := stringOf(o, "image_url")
		if url == "" {
			return nil, nil, model.Invalid("", "Files are not kept here: send the picture itself as image_url.")
		}
		image := rawjson.Object{Members: []rawjson.Member{text("url", url)}}
		if detail := o.Get("detail"); !rawjson.IsNull(detail) {
			image.Set("detail", detail)
		}
		return object(text("type", "image_url"), raw("image_url", image.Bytes())), nil, nil
	case "input_file":
		data := o.Get("file_data")
		if rawjson.IsNull(data) {
			return nil, nil, model.Invalid("", "Files are not kept or fetched here: send the file itself as file_data.")
		}
		file := rawjson.Object{Members: []rawjson.Member{raw("file_data", data)}}
		if name := o.Get("filename"); !rawjson.IsNull(name) {
			file.Set("filename", name)
		}
		return object(text("type", "file"), raw("file", file.Bytes())), nil, nil
	case "input_audio":
		return object(text("type", "input_audio"), raw("input_audio", o.Get("input_audio"))), nil, nil
	default:
		return nil, nil, model.Invalid(".type", fmt.Sprintf("Parts of the type %.40q are not known here.", kind))
	}
}
