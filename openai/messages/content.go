package messages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// A reader makes content for a Chat API of blocks.
type reader struct {
	// files says that the upstream takes files, such as PDF, as parts of a message.
	files bool
	// in is what blocks within blocks are taken apart in.
	in *blockReader
	// pictures is set where there are some.
	pictures *bool
}

// takesFiles are the dialects whose APIs document a part of the type file.
var takesFiles = []string{"openai", "openai-strict", "azure", "openrouter", "gemini"}

// said is content as a Chat API has it: texts, and other parts where there are any.
type said struct {
	parts []json.RawMessage // in their order: literals of texts, and objects
	other bool              // there are parts that are no text
	grown int               // how many there were when one went on that can be appended to

	// system are the system messages that parts are reminders of, by their place, where the
	// upstream takes those as they are.
	system map[int]json.RawMessage
}

// text adds a text, unless it is empty.
func (s *said) text(text string) {
	if text != "" {
		s.literal(rawjson.Quote(text))
	}
}

// literal adds a text by its literal, unless it is empty.
func (s *said) literal(text json.RawMessage) {
	if rawjson.Kind(text) == '"' && len(text) > len(`""`) {
		s.parts = append(s.parts, text)
	}
}

// goOn adds a text by its literal to the last one, of which it is the rest.
func (s *said) goOn(text json.RawMessage) {
	n := len(s.parts)
	if n == 0 || rawjson.Kind(text) != '"' {
		s.literal(text)
		return
	}
	last := s.parts[n-1]
	if s.grown != n {
		last, s.grown = slices.Clone(last), n // it is the request's
	}
	s.parts[n-1] = append(last[:len(last)-1], text[1:]...)
}

func (s *said) part(part string) {
	s.parts, s.other = append(s.parts, json.RawMessage(part)), true
}

func (s *said) empty() bool { return len(s.parts) == 0 }

// joined returns the texts as the literal of one: templates of many models take nothing else.
func (s *said) joined() json.RawMessage {
	texts := s.parts
	if s.other {
		texts = slices.DeleteFunc(slices.Clone(texts), func(part json.RawMessage) bool { return part[0] != '"' })
	}
	return rawjson.JoinStrings("\n\n", texts)
}

// content returns the member content.
func (s *said) content() json.RawMessage {
	if !s.other {
		return s.joined()
	}
	parts := make([]json.RawMessage, len(s.parts))
	for i, part := range s.parts {
		if parts[i] = part; part[0] == '"' {
			parts[i] = json.RawMessage(`{"type":"text","text":` + string(part) + `}`)
		}
	}
	return rawjson.AppendArray(nil, parts)
}

// stands has a system message stand for the last part.
func (s *said) stands(system json.RawMessage) {
	if s.system == nil {
		s.system = map[int]json.RawMessage{}
	}
	s.system[len(s.parts)-1] = system
}

// messages returns the parts from one to another as messages: one of a person, but where
// system messages stand by themselves.
func (s said) messages(from, to int) (out []json.RawMessage) {
	var now said
	end := func() {
		if !now.empty() {
			out = append(out, model.ChatMessage("user", now.content()))
		}
		now = said{}
	}
	for i := from; i < to; i++ {
		part := s.parts[i]
		if system := s.system[i]; system != nil {
			end()
			out = append(out, system)
			continue
		}
		now.parts, now.other = append(now.parts, part), now.other || part[0] != '"'
	}
	end()
	return out
}

// read adds a block of a person, or of a tool's result. Errors name a place in it.
func (r reader) read(s *said, b block) error {
	switch b.kind {
	case "text":
		s.literal(b.Get("text"))
	case "image":
		return r.image(s, b)
	case "document":
		return r.document(s, b)
	case "search_result":
		inner, err := r.in.read(b.Get("content"))
		if err == nil {
			s.text(strings.TrimSpace(b.text("title") + "\n" + b.text("source")))
			err = r.all(s, inner)
		}
		return within(".content", err)
	case "tool_reference":
		s.text("The tool " + b.text("tool_name") + " can be called now.")
	case "browser_state":
		text, err := browserState(b)
		s.text(text)
		return err
	default:
		return wrong(".type", fmt.Sprintf("blocks of the type %q are not taken here.", b.kind))
	}
	return nil
}

// all adds the blocks of some content.
func (r reader) all(s *said, all []block) error {
	for i, b := range all {
		if err := r.read(s, b); err != nil {
			if b.at < 0 {
				return err
			}
			return within(fmt.Sprintf(".%d", i), err)
		}
	}
	return nil
}

// source returns the source of an image or a document.
func (b block) source() (block, error) {
	o, err := rawjson.ParseObject(b.Get("source"))
	if err != nil {
		return block{}, wrong(".source", "must be an object.")
	}
	source := block{Object: o}
	source.kind = source.text("type")
	return source, nil
}

func (r reader) image(s *said, b block) error {
	source, err := b.source()
	if err != nil {
		return err
	}
	*r.pictures = true
	switch source.kind {
	case "base64":
		url := result.Image{MIMEType: source.text("media_type"), Base64: source.text("data")}.URL()
		s.part(`{"type":"image_url","image_url":{"url":` + string(rawjson.Quote(url)) + `}}`)
	case "url":
		s.part(`{"type":"image_url","image_url":{"url":` + string(rawjson.Quote(source.text("url"))) + `}}`)
	default:
		return model.Invalid(".source", ".source.type: an image is sent as base64 or as a url.")
	}
	return nil
}

func (r reader) document(s *said, b block) error {
	source, err := b.source()
	if err != nil {
		return err
	}
	title := b.text("title")
	if about := b.text("context"); about != "" {
		s.text(about)
	}
	switch {
	case source.kind == "text":
		s.text(strings.TrimLeft(title+"\n", "\n") + source.text("data"))
	case source.kind == "content":
		inner, err := r.in.read(source.Get("content"))
		if err == nil {
			s.text(title)
			err = r.all(s, inner)
		}
		return within(".source.content", err)
	case source.kind == "base64" && r.files:
		if title == "" {
			title = "document.pdf"
		}
		data := "data:" + source.text("media_type") + ";base64," + source.text("data")
		s.part(`{"type":"file","file":{"filename":` + string(rawjson.Quote(title)) + `,"file_data":` + string(rawjson.Quote(data)) + `}}`)
	case source.kind == "base64":
		// By these words Claude Code takes a document out of its history, which would be refused for ever.
		return model.Invalid(".source", ".source: this model does not support PDF input, since its API takes no files. Send the text of the document, or pictures of its pages.")
	default:
		return model.Invalid(".source", ".source.type: a document is sent as text, content or base64; nothing is fetched here.")
	}
	return nil
}

// A toolResult is a tool_result: what came of a call of the client's.
type toolResult struct {
	id     string
	call   int // the place of the call in its message
	said   said
	failed bool
}

func (r reader) toolResult(b block) (t toolResult, err error) {
	if t.id = b.text("tool_use_id"); t.id == "" {
		return t, wrong(".tool_use_id", "must name the call.")
	}
	if t.failed, err = onOff(b.Object, "is_error", false, ""); err != nil {
		return t, err
	}
	content := b.Get("content")
	switch {
	case rawjson.IsNull(content):
		return t, nil
	case rawjson.Kind(content) == '"':
		t.said.literal(content)
		return t, nil
	}
	inner, err := r.in.read(content)
	if err == nil {
		err = r.all(&t.said, inner)
	}
	return t, within(".content", err)
}

// text returns the literal of what the model reads of it, but for pictures.
func (t *toolResult) text() json.RawMessage {
	literal := t.said.joined()
	if t.failed {
		text, _ := rawjson.String(literal)
		return rawjson.Quote(failure(text))
	}
	return literal
}

// ours is that of the result of a call of ours, which was written for the model when the
// call was made. It reports whether there is more of it to be read.
func (t *toolResult) ours() (literal json.RawMessage, more bool) {
	literal = t.said.joined()
	text, _ := rawjson.String(literal)
	if more = result.HasHandle(text); rawjson.Kind([]byte(text)) == '{' {
		return literal, more
	}
	return t.text(), more
}

// failure is what a model reads of a call of the client's that failed: the same as of
// one of ours.
func failure(text string) string {
	content := `{"content":[{"type":"text","text":` + string(rawjson.Quote(text)) + `}],"isError":true}`
	return (&result.Shape{}).Message(dragoman.Call{}, dragoman.Result{Ran: dragoman.RanYes, Failed: true, Content: json.RawMessage(content)}).Text
}

// pictures returns the parts of a result that are no text.
func (t *toolResult) pictures() []json.RawMessage {
	if !t.said.other {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.said.parts), func(part json.RawMessage) bool { return part[0] == '"' })
}
