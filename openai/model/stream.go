package model

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/sse"
)

// afterFinish is how long is waited for what may come behind finish_reason, such
// as the usage.
const afterFinish = 5 * time.Second

// A stream is an answer that comes in chunks.
type stream struct {
	reply    *Reply
	listener Listener
	limit    int64

	message  growingObject
	logprobs growing
	calls    assembler
	held     int64  // about how many bytes are kept of it
	last     []byte // the chunk that tells the rest of the answer: the first, until one ends it; nil before

	chunk   Chunk
	pattern pattern
}

// readStream takes a stream of chunks apart. It reads on behind finish_reason, for
// the usage, until [DONE] or the end.
func (a *answer) readStream(ctx context.Context, body io.Reader, l Listener) (_ *Reply, err error) {
	limit := a.client.Limit()
	events := sse.NewReader(body, int(limit))
	s := &stream{reply: &Reply{}, listener: l, limit: limit}
	defer func() {
		if content := s.message.get("content"); err != nil && content != nil {
			a.broke, _ = rawjson.String(content.append(nil))
		}
	}()
	var meter flood.Meter // of what adds nothing to the answer
	for done := false; !done; {
		meter.Wait(ctx)
		before := s.held
		e, err := events.Next()
		if err == nil {
			done, err = s.event(e)
		} else {
			done, err = true, s.broken(err)
		}
		if err != nil {
			return nil, err
		}
		if s.held == before {
			meter.Add(len(e.Data))
		}
		if s.reply.Finish != "" && !a.body.final {
			a.body.finish(afterFinish)
		}
		if (done || !events.Pending()) && l.Flush != nil {
			if err := l.Flush(); err != nil {
				return nil, err
			}
		}
	}
	r := s.reply
	if s.last == nil {
		return nil, invalidReply("is an empty stream", nil)
	}
	s.told()
	r.Calls, r.Message = s.calls.calls, s.message.result()
	if s.logprobs.kind() != 0 {
		r.Logprobs = s.logprobs.append(nil)
	}
	return r, nil
}

// broken says what the end of a stream means that has no [DONE]: what came behind
// finish_reason is not worth an error.
func (s *stream) broken(err error) error {
	switch {
	case s.reply.Finish != "" && !errors.Is(err, sse.ErrTooLarge):
		return nil
	case err == io.EOF:
		return cut(io.ErrUnexpectedEOF)
	}
	return cut(err)
}

// event takes one event, and reports whether it was the last one.
func (s *stream) event(e sse.Event) (done bool, err error) {
	data := bytes.TrimSpace(e.Data)
	switch {
	case e.Comment || len(data) == 0:
		return false, nil
	case string(data) == "[DONE]":
		return true, nil
	case e.Name == "error":
		if o, err := rawjson.ParseObject(data); err == nil && !rawjson.IsNull(o.Get("error")) {
			return true, reported(o.Get("error"))
		}
		return true, reported(data)
	}
	return false, s.data(data)
}

// data takes one chunk.
func (s *stream) data(data []byte) error {
	c := &s.chunk
	c.First, c.Preface, c.Same, c.Calls, c.Finish, c.parsed = false, false, false, false, "", false
	if text, ok := s.pattern.match(data); ok {
		if err := s.keep(s.message.get("content").appendText(text)); err != nil || s.listener.Chunk == nil {
			return err
		}
		c.Data, c.Same, c.text = data, true, text
		return s.listener.Chunk(c)
	}
	if !rawjson.Valid(data) {
		return invalidReply("has a chunk that is not a JSON object", nil)
	}
	// Its lines become one, as every event that goes out has.
	if bytes.IndexByte(data, '\n') >= 0 {
		data = bytes.ReplaceAll(data, []byte{'\n'}, []byte{' '})
	}
	// Engines that cut text into tokens cut characters too.
	torn := !utf8.Valid(data)
	if torn {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	if c.Data = data; c.parse() != nil {
		return invalidReply("has a chunk that is not a JSON object", nil)
	}
	return s.parsed(c, torn)
}

// parsed takes a chunk that was taken apart: what belongs to calls, and what ends
// the message, is kept; the rest is told on.
func (s *stream) parsed(c *Chunk, torn bool) error {
	r := s.reply
	if failure := c.envelope.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	if usage := c.envelope.Get("usage"); !rawjson.IsNull(usage) {
		r.Usage = bytes.Clone(usage)
	}
	if note := c.envelope.Get("dragoman"); note != nil {
		r.Note = bytes.Clone(note)
	}
	if len(c.choices) == 0 {
		return s.preface(c)
	}
	calls := c.delta.Get("tool_calls")
	if torn && !rawjson.IsNull(calls) {
		// Nobody knows what the arguments were.
		return invalidReply("has a tool call that is not UTF-8", nil)
	}
	before := s.calls.cost
	if err := s.calls.addAll(calls, false); err != nil {
		return invalidReply("has a malformed tool call", err)
	}
	c.Finish, _ = rawjson.String(c.choice.Get("finish_reason"))
	if err := givenUp(&c.choice, c.Finish); err != nil {
		return err
	}
	c.First = s.last == nil
	if c.First || c.Finish != "" {
		s.last = append(s.last[:0], c.Data...)
	}
	if c.Finish != "" {
		r.Finish = c.Finish
	}
	c.Calls = c.delta.Delete("tool_calls")
	cost := s.calls.cost - before + s.message.merge(&c.delta)
	if lp := c.choice.Get("logprobs"); s.listener.Chunk == nil && !rawjson.IsNull(lp) {
		cost += s.logprobs.add("logprobs", lp)
	}
	if err := s.keep(cost); err != nil || s.listener.Chunk == nil {
		return err
	}
	if s.pattern.before = s.pattern.before[:0]; !c.Calls && c.Finish == "" && rawjson.IsNull(c.envelope.Get("usage")) {
		s.pattern.learn(c)
	}
	return s.listener.Chunk(c)
}

// preface tells of a chunk without choices where it may matter to a client: at the
// beginning, and only if it is a chunk and not, say, a ping.
func (s *stream) preface(c *Chunk) error {
	if s.last != nil || s.listener.Chunk == nil ||
		rawjson.Kind(c.envelope.Get("choices")) != '[' || !rawjson.IsNull(c.envelope.Get("usage")) {
		return nil
	}
	c.Preface = true
	return s.listener.Chunk(c)
}

// told takes the last chunk for the envelope and the choice of the answer.
func (s *stream) told() {
	r := s.reply
	r.Envelope, _ = rawjson.ParseObject(s.last) // it was parsed before
	choices, _ := rawjson.Elements(r.Envelope.Get("choices"))
	r.Choice, _ = rawjson.ParseObject(choices[0])
}

// keep counts what is held of the stream.
func (s *stream) keep(size int) error {
	if s.held += int64(size); s.held > s.limit {
		return TooLarge(s.limit)
	}
	return nil
}
