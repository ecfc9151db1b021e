package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/sse"
)

// An itemStream is an answer of the Responses API that comes in events.
type itemStream struct {
	reply    *Reply
	listener Listener
	limit    int64
	held     int64
	envelope *rawjson.Object
	items    []json.RawMessage
	begun    bool
	said     int // characters of text so far, last of the item at speaking
	speaking int
	thought  bool // the model thought something, last in the item at thinking
	thinking int
	parted   bool // another part of a summary begins
	text     []byte
}

// readEvents takes a stream of events apart, to the one that ends the response.
func (a *answer) readEvents(ctx context.Context, body io.Reader, l Listener) (_ *Reply, err error) {
	limit := a.client.Limit()
	events := sse.NewReader(body, int(limit))
	s := &itemStream{reply: &Reply{}, listener: l, limit: limit}
	defer func() {
		if err != nil {
			a.broke = string(s.text)
		}
	}()
	var meter flood.Meter // of what adds nothing to the answer
	for done := false; !done; {
		meter.Wait(ctx)
		before := s.held
		e, err := events.Next()
		switch {
		case err == io.EOF:
			err = cut(io.ErrUnexpectedEOF)
		case err != nil:
			err = cut(err)
		default:
			done, err = s.event(e)
		}
		if err != nil {
			return nil, err
		}
		if s.held == before {
			meter.Add(len(e.Data))
		}
		if (done || !events.Pending()) && l.Flush != nil {
			if err := l.Flush(); err != nil {
				return nil, err
			}
		}
	}
	s.reply.endStream()
	return s.reply, nil
}

// endStream makes a reply what the last chunk of a stream leaves.
func (r *Reply) endStream() {
	r.Envelope.Set("object", rawjson.Quote("chat.completion.chunk"))
}

// event takes one event, and reports whether it was the last one.
func (s *itemStream) event(e sse.Event) (done bool, err error) {
	data := bytes.TrimSpace(e.Data)
	if e.Comment || len(data) == 0 || string(data) == "[DONE]" {
		return false, nil
	}
	o, err := rawjson.Read(data)
	switch {
	case errors.Is(err, rawjson.ErrNoObject):
		return false, invalidReply("has an event that is not a JSON object", err)
	case err != nil:
		return false, invalidReply("has an event that is not JSON", err)
	}
	kind, _ := rawjson.String(o.Get("type"))
	if kind == "" {
		kind = e.Name
	}
	switch kind {
	case "error":
		if inner := o.Get("error"); !rawjson.IsNull(inner) {
			return true, reported(inner)
		}
		return true, reported(data)
	case "response.failed", "response.completed", "response.incomplete", "response.cancelled":
		return true, s.end(kind, o)
	}
	if s.listener.Event != nil {
		if err := s.listener.Event(kind, o); err != nil {
			return false, err
		}
	}
	return false, s.take(kind, o)
}

// end takes the event that ends the response.
func (s *itemStream) end(kind string, o *rawjson.Object) error {
	response, err := rawjson.ParseObject(o.Get("response"))
	if err != nil {
		return invalidReply("ends with no response", err)
	}
	if kind == "response.failed" {
		if failure := response.Get("error"); !rawjson.IsNull(failure) {
			return reported(failure)
		}
		return reported(rawjson.Quote("the response failed"))
	}
	items := s.items[:0:0]
	for _, item := range s.items {
		if item != nil {
			items = append(items, item)
		}
	}
	if err := s.reply.readResponse(response, items); err != nil {
		return err
	}
	if s.listener.Event != nil {
		return s.listener.Event(kind, o)
	}
	return nil
}

// errTooManyItems is for an output with more items than anybody can use.
var errTooManyItems = errors.New("more items than fit")

// take takes what an event says of the message.
func (s *itemStream) take(kind string, o *rawjson.Object) error {
	text := func(name string) string {
		t, _ := rawjson.String(o.Get(name))
		return t
	}
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if response, err := rawjson.ParseObject(o.Get("response")); err == nil {
			s.envelope = envelopeOf(response, "chat.completion.chunk")
		}
	case "response.output_item.done":
		at, _ := rawjson.Int(o.Get("output_index"))
		if at < 0 || at > 4096 {
			return invalidReply("has a place for an item that cannot be", errTooManyItems)
		}
		for len(s.items) <= at {
			s.items = append(s.items, nil)
		}
		item := bytes.Clone(o.Get("item"))
		if err := s.keep(len(item)); err != nil {
			return err
		}
		s.items[at] = item
		return s.cite(item)
	case "response.output_text.delta":
		at, _ := rawjson.Int(o.Get("output_index"))
		piece := text("delta")
		if s.said > 0 && at != s.speaking && piece != "" { // as between the messages of a whole one
			if err := s.chunk("content", betweenMessages, nil); err != nil {
				return err
			}
			s.said += len(betweenMessages)
		}
		s.said, s.speaking = s.said+utf8.RuneCountInString(piece), at
		return s.chunk("content", piece, o.Get("logprobs"))
	case "response.refusal.delta":
		return s.chunk("refusal", text("delta"), nil)
	case "response.reasoning_summary_part.added":
		s.parted = true
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		at, _ := rawjson.Int(o.Get("output_index"))
		piece := text("delta")
		if piece == "" {
			return nil
		}
		if s.thought && (s.parted || at != s.thinking) {
			if err := s.chunk("reasoning_content", betweenMessages, nil); err != nil {
				return err
			}
		}
		s.thought, s.thinking, s.parted = true, at, false
		return s.chunk("reasoning_content", piece, nil)
	default: // pieces of what comes whole with its item: arguments, code
		return s.keep(len(text("delta")))
	}
	return nil
}

// keep counts what is held of the stream, or said of what will be.
func (s *itemStream) keep(size int) error {
	if s.held += int64(size); s.held > s.limit {
		return TooLarge(s.limit)
	}
	return nil
}

// cite tells what the text of an item cites that is done, the last one that spoke.
func (s *itemStream) cite(raw json.RawMessage) error {
	item, err := rawjson.ParseObject(raw)
	if err != nil || string(item.Get("type")) != `"message"` {
		return nil // who reads the whole answer says what is wrong with it
	}
	all := citations(item, max(0, s.said-utf8.RuneCountInString(contentOf(item))))
	if len(all) == 0 {
		return nil
	}
	return s.tell("annotations", rawjson.AppendArray(nil, all), nil)
}

// chunk tells of a piece of a text of the message.
func (s *itemStream) chunk(member, text string, logprobs json.RawMessage) error {
	if err := s.keep(len(text)); err != nil {
		return err
	}
	if text == "" {
		return nil
	}
	if member == "content" {
		s.text = append(s.text, text...)
	}
	return s.tell(member, rawjson.Quote(text), logprobs)
}

// tell tells of a piece of the message as the Chat API does.
func (s *itemStream) tell(member string, piece, logprobs json.RawMessage) error {
	if s.listener.Chunk == nil {
		return nil
	}
	if s.envelope == nil {
		s.envelope = &rawjson.Object{}
		s.envelope.Set("object", rawjson.Quote("chat.completion.chunk"))
	}
	c := &Chunk{First: !s.begun, parsed: true, envelope: *s.envelope.Clone()}
	s.begun = true
	c.choice.Set("index", json.RawMessage("0"))
	if rawjson.Kind(logprobs) == '[' && string(logprobs) != "[]" {
		c.choice.Set("logprobs", (&rawjson.Object{Members: []rawjson.Member{{Name: "content", Value: logprobs}}}).Bytes())
	}
	c.choice.Set("finish_reason", null)
	if c.First {
		c.delta.Set("role", rawjson.Quote("assistant"))
	}
	c.delta.Set(member, piece)
	return s.listener.Chunk(c)
}
