package responses

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A speech is one message of the model as its client gets it: what it thought, and what
// it says.
type speech struct {
	thinking *part // an item of its own
	talking  *part // the text of a message
	refusing *part // what stands in the same message in its place, or beside it
	message  string
	at       int
	parts    int               // that the message has
	thought  string            // the member in which the upstream gives what the model thinks
	held     []byte            // text that waits until it is known that the message is the last one
	likely   []json.RawMessage // how likely its tokens were
}

// A part is text that grows.
type part struct {
	id      string
	at      int    // the place of its item in the output
	content int    // its own in the content of the item
	summary bool   // it is in the summary of its item instead
	place   []byte // that of the part, as its events name it: members, each with a comma before it
	text    []byte

	logprobs []json.RawMessage // of its tokens, where the client asked
}

// stands says where a part stands, once its item has a place.
func (p *part) stands() {
	at := rawjson.AppendQuote(append(make([]byte, 0, 96), `,"item_id":`...), p.id)
	at = strconv.AppendInt(append(at, `,"output_index":`...), int64(p.at), 10)
	list := `,"content_index":`
	if p.summary {
		list = `,"summary_index":`
	}
	p.place = strconv.AppendInt(append(at, list...), int64(p.content), 10)
}

// thoughts are the members in which upstreams give what a model thinks.
var thoughts = []string{"reasoning_content", "reasoning"}

// chunk sends what a chunk of the model's message holds for the client.
func (c *Conversation) chunk(ch *model.Chunk) error {
	if ch.Preface {
		return nil
	}
	if ch.Same {
		c.talk(ch.Text(), nil)
		return nil
	}
	_, choice, delta := ch.Parts()
	c.say(delta, choice.Get("logprobs"))
	return nil
}

// say takes a message of the model, or what a chunk adds to it, and how likely its tokens were.
func (c *Conversation) say(delta *rawjson.Object, logprobs json.RawMessage) {
	for _, name := range thoughts {
		if s := stringOf(delta, name); s != "" {
			c.think(name, s)
			break
		}
	}
	content := delta.Get("content")
	if s, ok := rawjson.String(content); ok {
		c.talk(s, c.logprobs(logprobs))
	} else if parts, err := rawjson.Elements(content); err == nil {
		for _, each := range parts {
			if o, err := rawjson.ParseObject(each); err == nil {
				c.piece(o)
			}
		}
	}
	c.refuse(stringOf(delta, "refusal"))
}

// piece takes a part of content that is a list, such as Mistral's.
func (c *Conversation) piece(o *rawjson.Object) {
	if stringOf(o, "type") != "thinking" {
		c.talk(stringOf(o, "text"), nil)
		return
	}
	inner, _ := rawjson.Elements(o.Get("thinking"))
	for _, each := range inner {
		if t, err := rawjson.ParseObject(each); err == nil {
			c.think("", stringOf(t, "text"))
		}
	}
}

// think takes a piece of what the model thinks. Clients that ask for a summary get it as one:
// of a reasoning item, many read nothing else, and some take its content for the answer.
func (c *Conversation) think(member, s string) {
	if s == "" {
		return
	}
	p := c.speech.thinking
	if p == nil {
		p = &part{id: c.answer.name("rs_"), summary: c.request.summary}
		c.speech.thinking, c.speech.thought = p, member
		p.at = c.answer.add(object(text("id", p.id), text("type", "reasoning"), raw("summary", array())))
		p.stands()
		c.thoughtPart("added", p, "") // OpenAI's accumulator throws at a delta without it
	}
	p.text = append(p.text, s...)
	c.answer.delta(p.names().delta, p, s)
}

// A thoughtNames is what a part with what the model thinks is called: its type, and its
// events, those of its text and the beginning of its own.
type thoughtNames struct{ kind, delta, done, part string }

var (
	asContent = thoughtNames{"reasoning_text", "response.reasoning_text.delta", "response.reasoning_text.done", "response.content_part."}
	asSummary = thoughtNames{"summary_text", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part."}
)

func (p *part) names() *thoughtNames {
	if p.summary {
		return &asSummary
	}
	return &asContent
}

// thoughtPart tells that the part with what the model thinks is added, or done.
func (c *Conversation) thoughtPart(what string, p *part, s string) {
	if c.request.Stream {
		c.answer.of(p, p.names().part+what, raw("part", object(text("type", p.names().kind), text("text", s))))
	}
}

// endThinking ends the item of what the model thought.
func (c *Conversation) endThinking() {
	p := c.speech.thinking
	if p == nil {
		return
	}
	c.speech.thinking = nil
	s := string(p.text)
	if c.request.Stream {
		c.answer.of(p, p.names().done, text("text", s))
	}
	c.thoughtPart("done", p, s)
	item := rawjson.Object{Members: []rawjson.Member{text("id", p.id), text("type", "reasoning")}}
	if said := object(text("type", p.names().kind), text("text", s)); p.summary {
		item.Members = append(item.Members, raw1("summary", said))
	} else {
		item.Members = append(item.Members, raw("summary", array()), raw1("content", said))
	}
	if c.request.sealed && c.speech.thought != "" {
		item.Set("encrypted_content", rawjson.Quote(c.seals.thought([]rawjson.Member{text(c.speech.thought, s)})))
	}
	c.answer.done(p.at, item.Bytes())
}

// logprobs returns how likely each token of a text was, as the Chat API says it and this
// one does, too; nothing where the client did not ask.
func (c *Conversation) logprobs(said json.RawMessage) []json.RawMessage {
	o, err := rawjson.ParseObject(said)
	if err != nil || !c.request.logprobs {
		return nil
	}
	tokens, _ := rawjson.Elements(o.Get("content"))
	return tokens
}

// cloned returns documents that stay when what they came in is gone.
func cloned(documents []json.RawMessage) []json.RawMessage {
	all := make([]json.RawMessage, len(documents))
	for i, document := range documents {
		all[i] = bytes.Clone(document)
	}
	return all
}

// talk takes a piece of the model's text, with how likely its tokens were.
func (c *Conversation) talk(s string, logprobs []json.RawMessage) {
	switch {
	case s == "":
		return
	case c.holds:
		c.speech.held, c.speech.likely = append(c.speech.held, s...), append(c.speech.likely, cloned(logprobs)...)
		return
	}
	c.sayText(s, logprobs)
}

func (c *Conversation) sayText(s string, logprobs []json.RawMessage) {
	p := c.speech.talking
	if p == nil {
		p = c.newPart(noText)
		c.speech.talking = p
	}
	p.text, p.logprobs = append(p.text, s...), append(p.logprobs, cloned(logprobs)...)
	c.answer.delta("response.output_text.delta", p, s, raw("logprobs", array(logprobs...)))
}

// refuse takes a piece of what the model says in place of an answer.
func (c *Conversation) refuse(s string) {
	if s == "" {
		return
	}
	p := c.speech.refusing
	if p == nil {
		p = c.newPart(noRefusal)
		c.speech.refusing = p
	}
	p.text = append(p.text, s...)
	c.answer.delta("response.refusal.delta", p, s)
}

// Parts that begin without text. Nobody changes them.
var (
	noText    = outputText(rawjson.Quote(""), nil, nil)
	noRefusal = object(text("type", "refusal"), text("refusal", ""))
)

// newPart begins a part of a message, behind those that it has, and the message where there
// is none.
func (c *Conversation) newPart(content json.RawMessage) *part {
	c.endThinking()
	if c.speech.message == "" {
		c.speech.message = c.answer.name("msg_")
		if c.speech.at = c.answer.room(); c.request.Stream {
			c.answer.added(c.speech.at, message(c.speech.message, "in_progress", ""))
		}
	}
	p := &part{id: c.speech.message, at: c.speech.at, content: c.speech.parts}
	c.speech.parts++
	if c.request.Stream {
		p.stands()
		c.answer.of(p, "response.content_part.added", raw("part", content))
	}
	return p
}

// message returns a message of the model as an item; phase is empty where it is not known.
func message(id, status, phase string, content ...json.RawMessage) json.RawMessage {
	size := 128 + len(id) + len(status)
	for _, part := range content {
		size += len(part) + 1
	}
	b := rawjson.AppendQuote(append(make([]byte, 0, size), `{"id":`...), id)
	b = rawjson.AppendQuote(append(b, `,"type":"message","status":`...), status)
	b = append(b, `,"role":"assistant"`...)
	if phase != "" {
		b = rawjson.AppendQuote(append(b, `,"phase":`...), phase)
	}
	return append(rawjson.AppendArray(append(b, `,"content":`...), content), '}')
}

// outputText returns the text of a message as a part of its content.
func outputText(literal json.RawMessage, annotations, logprobs []json.RawMessage) json.RawMessage {
	size := 72 + len(literal)
	for _, parts := range [][]json.RawMessage{annotations, logprobs} {
		for _, part := range parts {
			size += len(part) + 1
		}
	}
	b := append(make([]byte, 0, size), `{"type":"output_text","annotations":`...)
	b = append(rawjson.AppendArray(b, annotations), `,"logprobs":`...)
	b = append(rawjson.AppendArray(b, logprobs), `,"text":`...)
	return append(append(b, literal...), '}')
}

// endSpeech ends the items of a message that was read.
func (c *Conversation) endSpeech(round *model.Round) {
	if len(round.Run) == 0 && len(c.speech.held) > 0 {
		c.sayText(string(c.speech.held), c.speech.likely)
	}
	c.endThinking()
	s := &c.speech
	if s.message == "" {
		return
	}
	var content []json.RawMessage
	if p := s.talking; p != nil {
		said := string(p.text)
		c.seen = append(c.seen, said)
		cited := append(c.cite(said), citations(round.Reply.Message, said)...)
		wrote := text("text", said)
		whole := outputText(wrote.Value, cited, p.logprobs)
		if c.request.Stream {
			for i, annotation := range cited {
				c.answer.of(p, "response.output_text.annotation.added", number("annotation_index", i), raw("annotation", annotation))
			}
			c.answer.of(p, "response.output_text.done", wrote, raw("logprobs", array(p.logprobs...)))
			c.answer.of(p, "response.content_part.done", raw("part", whole))
		}
		content = append(content, whole)
	}
	if p := s.refusing; p != nil {
		wrote := text("refusal", string(p.text))
		whole := object(text("type", "refusal"), wrote)
		if c.request.Stream {
			c.answer.of(p, "response.refusal.done", wrote)
			c.answer.of(p, "response.content_part.done", raw("part", whole))
		}
		content = slices.Insert(content, min(p.content, len(content)), whole) // it may have come before the text
	}
	status, phase := "completed", "final_answer"
	switch {
	case round.Reply.CutOff(): // nobody knows whether calls would have followed
		status, phase = "incomplete", ""
	case round.Message != nil:
		phase = "commentary"
	}
	c.answer.done(s.at, message(s.message, status, phase, content...))
}
