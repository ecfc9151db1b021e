package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/coding"
	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Reply is one message of the model, put together from whatever the upstream
// sent.
type Reply struct {
	// Envelope is the body, or the last chunk that had a choice, as it came.
	Envelope *rawjson.Object
	// Choice is the choice, or that of the last chunk.
	Choice *rawjson.Object
	// Message is the message, or all deltas merged, without tool_calls.
	Message *rawjson.Object
	// Calls are the tool calls of the message.
	Calls []*Call
	// Finish is the finish_reason; empty where the upstream gave none.
	Finish string
	// Usage is the usage object; nil for none.
	Usage json.RawMessage
	// Logprobs are those of the choice. Those of a stream that was listened to are
	// not kept.
	Logprobs json.RawMessage
	// Response is the response of an API that speaks Responses, and Items its output; nil
	// of another API.
	Response *rawjson.Object
	Items    []json.RawMessage
	// Note is the upstream's own dragoman member, where that is one of us.
	Note json.RawMessage

	counted Usage // what Usage says, once it was read
	read    bool
}

// used returns what the usage object says.
func (r *Reply) used() Usage {
	if !r.read {
		r.counted, r.read = ReadUsage(r.Usage), true
	}
	return r.counted
}

// Text returns the text of the message's content.
func (r *Reply) Text() string { return textIn(r.Message.Get("content")) }

// textIn returns the text of content, which may be a list with other parts beside it: Mistral's
// has what the model thought.
func textIn(content json.RawMessage) string {
	if s, ok := rawjson.String(content); ok {
		return s
	}
	parts, err := rawjson.Elements(content)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, part := range parts {
		s, _ := rawjson.String(rawjson.Find(part, "text"))
		b.WriteString(s)
	}
	return b.String()
}

// size returns the bytes of what the model wrote.
func (r *Reply) size() int64 {
	n := len(r.Message.Bytes())
	for _, c := range r.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return int64(n)
}

// CutOff reports whether the message is incomplete.
func (r *Reply) CutOff() bool {
	return r.Finish == "length" || r.Finish == "model_length" || r.Finish == "content_filter"
}

// givenUp returns why a choice is no answer that says of itself that the model did not come to
// its end: engines say abort or error, Mistral and OpenRouter error, DeepSeek
// insufficient_system_resource, Z.ai network_error. What it has until then, calls too, is torn.
func givenUp(choice *rawjson.Object, finish string) error {
	switch finish {
	case "abort", "error", "insufficient_system_resource", "network_error":
	default:
		return nil
	}
	if failure := choice.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	return cut(fmt.Errorf("finish_reason is %q", finish))
}

// readReply reads the answer to one request. What arrives decides whether it is a
// stream: some upstreams answer a request for one with JSON, or the other way
// round, and proxies lose content types.
func (a *answer) readReply(ctx context.Context, l Listener) (*Reply, error) {
	if encoding := a.resp.Header.Get("Content-Encoding"); coding.Compresses(encoding) {
		return nil, invalidReply(fmt.Sprintf("is compressed (Content-Encoding: %s), though it was asked for as it is", clip.Text(encoding, 40)), nil)
	}
	kind, _, _ := strings.Cut(a.resp.Header.Get("Content-Type"), ";")
	if strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
		return a.readAnyStream(ctx, a.body, l)
	}
	head, stream, err := sniff(ctx, a.body, a.room())
	if err != nil {
		return nil, cut(err)
	}
	if stream {
		return a.readAnyStream(ctx, io.MultiReader(bytes.NewReader(head), a.body), l)
	}
	document, err := readAll(a.body, head, a.client.Limit())
	if err != nil {
		return nil, err
	}
	r := &Reply{}
	if a.client.API == ResponsesAPI {
		if err := r.readResponseBody(document); err != nil {
			return nil, err
		}
		return r, r.replayResponse(l)
	}
	if err := r.readBody(document); err != nil {
		return nil, err
	}
	if l.Chunk == nil {
		return r, nil
	}
	return r, r.replay(l)
}

// readAnyStream reads a stream of either API.
func (a *answer) readAnyStream(ctx context.Context, body io.Reader, l Listener) (*Reply, error) {
	if a.client.API == ResponsesAPI {
		return a.readEvents(ctx, body, l)
	}
	return a.readStream(ctx, body, l)
}

// fields are what the lines of an event stream begin with.
var fields = [][]byte{[]byte("data:"), []byte("event:"), []byte("id:"), []byte("retry:"), []byte(":")}

// room returns room for a body of the size that its header tells, if it does, and some
// more: the end is seen only behind it.
func (a *answer) room() []byte {
	return make([]byte, 0, min(max(a.resp.ContentLength, 0), a.client.Limit())+bytes.MinRead)
}

// sniff reads the beginning of a body into room, without space or a byte order mark, and
// reports whether it is that of an event stream.
func sniff(ctx context.Context, body io.Reader, room []byte) (head []byte, stream bool, err error) {
	buf := room[:cap(room)]
	n := 0
	var meter flood.Meter
	for {
		meter.Wait(ctx)
		more, err := body.Read(buf[n:])
		n += more
		begin := bytes.TrimLeft(bytes.TrimPrefix(buf[:n], []byte("\xef\xbb\xbf")), " \t\r\n")
		undecided := len(begin) == 0 || bytes.HasPrefix([]byte("\xef\xbb\xbf"), begin)
		for _, field := range fields {
			if bytes.HasPrefix(begin, field) {
				return begin, true, nil
			}
			undecided = undecided || bytes.HasPrefix(field, begin)
		}
		switch {
		case err == io.EOF || err == nil && !undecided:
			return begin, false, nil
		case err != nil:
			return nil, false, err
		case len(begin) == 0: // upstreams send space while they think
			n = 0
			meter.Add(more)
		}
	}
}

// readAll reads the rest of a body, behind what was read of it, where there may be room.
func readAll(body io.Reader, read []byte, limit int64) ([]byte, error) {
	for {
		if len(read) == cap(read) {
			read = slices.Grow(read, bytes.MinRead)
		}
		n, err := body.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case int64(len(read)) > limit:
			return nil, TooLarge(limit)
		case err == io.EOF:
			return read, nil
		case err != nil:
			return nil, cut(err)
		}
	}
}

// TooLarge is the error for an answer of which more than limit bytes would have to be
// kept.
func TooLarge(limit int64) *Error {
	return invalidReply(fmt.Sprintf("is larger than %d bytes", limit), nil)
}

// readBody takes a whole chat.completion apart.
func (r *Reply) readBody(body []byte) error {
	o, choices, err := rawjson.ReadArray(body, "choices")
	switch r.Envelope = o; {
	case errors.Is(err, rawjson.ErrNoObject):
		return invalidReply("is not a JSON object", err)
	case err != nil:
		return invalidReply("is not JSON", err)
	}
	if failure := r.Envelope.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	if len(choices) == 0 {
		return invalidReply("has no choices", nil)
	}
	if r.Choice, err = rawjson.ParseObject(choices[0]); err != nil {
		return invalidReply("has a choice that is no object", err)
	}
	if r.Message, err = rawjson.ParseObject(r.Choice.Get("message")); err != nil {
		return invalidReply("has a choice without a message", err)
	}
	r.Finish, _ = rawjson.String(r.Choice.Get("finish_reason"))
	if err := givenUp(r.Choice, r.Finish); err != nil {
		return err
	}
	r.Usage, r.Note = r.Envelope.Get("usage"), r.Envelope.Get("dragoman")
	r.Logprobs = r.Choice.Get("logprobs")
	var a assembler
	if err := a.addAll(r.Message.Get("tool_calls"), true); err != nil {
		return invalidReply("has a malformed tool call", err)
	}
	r.Calls = a.calls
	r.Message.Delete("tool_calls")
	return nil
}

// addAll takes the tool_calls of a delta, or of a whole message, where each entry
// is a call of its own.
func (a *assembler) addAll(raw json.RawMessage, whole bool) error {
	if rawjson.IsNull(raw) {
		return nil
	}
	entries, err := rawjson.Elements(raw)
	if err != nil {
		return err
	}
	if whole && len(entries) > maxCalls {
		return fmt.Errorf("more than %d calls", maxCalls)
	}
	for _, entry := range entries {
		part := a
		if whole {
			part = &assembler{}
		}
		if err := part.add(entry); err != nil {
			return err
		}
		if whole {
			a.calls = append(a.calls, part.calls...)
		}
	}
	return nil
}

// Values of the members of chunks, which nobody changes.
var kindOfChunk, null = slices.Clip(json.RawMessage(`"chat.completion.chunk"`)), slices.Clip(json.RawMessage("null"))

// replay tells of a reply that came as a whole as if it had been streamed.
func (r *Reply) replay(l Listener) error {
	chunk := &Chunk{First: true, parsed: true, envelope: *r.Envelope.Clone(), choice: *r.Choice.Clone(), delta: *r.Message.Clone()}
	chunk.envelope.Set("object", kindOfChunk)
	chunk.choice.Delete("message")
	chunk.choice.Set("finish_reason", null)
	if err := l.Chunk(chunk); err != nil {
		return err
	}
	r.Envelope.Set("object", kindOfChunk)
	r.Choice.Delete("message")
	r.Choice.Delete("logprobs")
	if l.Flush == nil {
		return nil
	}
	return l.Flush()
}
