package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/sse"
)

// A reply is one message of the model, put together from whatever the upstream
// sent.
type reply struct {
	envelope *rawjson.Object // the body, or the last chunk that had a choice
	choice   *rawjson.Object // the choice, or that of the last chunk
	message  *rawjson.Object // the message, or all deltas merged; no tool_calls
	calls    []*toolCall
	finish   string
	usage    json.RawMessage
	logprobs json.RawMessage // all of a stream's, merged
	note     json.RawMessage // the upstream's own dragoman member
	held     [][]byte        // chunks that wait until it is known whether tools follow
	sent     bool            // the choice's logprobs have gone to the client
}

// text returns the message's content, when that is text.
func (r *reply) text() string {
	s, _ := rawjson.String(r.message.Get("content"))
	return s
}

// readReply reads the answer to one model request. In a stream, everything that
// the client may see already is forwarded to it.
func (c *Chat) readReply(resp *http.Response) (*reply, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	r := &reply{message: &rawjson.Object{}, choice: &rawjson.Object{}}
	// Some upstreams answer a request for a stream with JSON, and the other way
	// round: what arrives decides.
	if kind == "text/event-stream" {
		return r, c.readStream(resp.Body, r)
	}
	body, err := readAll(resp.Body, c.options.maxMessage())
	if err != nil {
		return nil, err
	}
	if looksLikeStream(body) { // behind a proxy that lost its content type
		return r, c.readStream(bytes.NewReader(body), r)
	}
	if err := r.readBody(body); err != nil {
		return nil, err
	}
	if c.request.Stream {
		return r, c.replay(r)
	}
	return r, nil
}

func looksLikeStream(body []byte) bool {
	body = bytes.TrimSpace(body)
	return bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) || bytes.HasPrefix(body, []byte(":"))
}

func readAll(body io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, cut(err)
	case int64(len(b)) > limit:
		return nil, invalidReply(fmt.Sprintf("is larger than %d bytes", limit), nil)
	}
	return b, nil
}

// readBody takes a whole chat.completion apart.
func (r *reply) readBody(body []byte) error {
	var err error
	if err = rawjson.Check(body); err != nil {
		return invalidReply("is not JSON", err)
	}
	if r.envelope, err = rawjson.ParseObject(body); err != nil {
		return invalidReply("is not a JSON object", err)
	}
	if failure := r.envelope.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	choices, err := rawjson.Elements(r.envelope.Get("choices"))
	if err != nil || len(choices) == 0 {
		return invalidReply("has no choices", err)
	}
	if r.choice, err = rawjson.ParseObject(choices[0]); err != nil {
		return invalidReply("has a choice that is no object", err)
	}
	if r.message, err = rawjson.ParseObject(r.choice.Get("message")); err != nil {
		return invalidReply("has a choice without a message", err)
	}
	r.finish, _ = rawjson.String(r.choice.Get("finish_reason"))
	r.usage, r.note = r.envelope.Get("usage"), r.envelope.Get("dragoman")
	r.logprobs = r.choice.Get("logprobs")
	var a assembler
	if err := a.addAll(r.message.Get("tool_calls"), true); err != nil {
		return invalidReply("has a malformed tool call", err)
	}
	r.calls = a.calls
	r.message.Delete("tool_calls")
	return nil
}

// addAll takes the tool_calls of a delta, or of a whole message, where each
// entry is a call of its own.
func (a *assembler) addAll(raw json.RawMessage, whole bool) error {
	if rawjson.IsNull(raw) {
		return nil
	}
	entries, err := rawjson.Elements(raw)
	if err != nil {
		return err
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

// readStream takes a stream of chunks apart. It reads on behind finish_reason,
// for the usage, until [DONE] or the end.
func (c *Chat) readStream(body io.Reader, r *reply) error {
	events := sse.NewReader(body, int(c.options.maxMessage()))
	c.pattern.before = c.pattern.before[:0] // of another answer
	var a assembler
	for done := false; !done; {
		e, err := events.Next()
		switch {
		case err == io.EOF:
			if r.finish == "" {
				return cut(io.ErrUnexpectedEOF)
			}
			done = true
		case err != nil:
			// What came behind finish_reason is not worth an error.
			if r.finish == "" || errors.Is(err, sse.ErrTooLarge) {
				return cut(err)
			}
			done = true
		case e.Comment || len(e.Data) == 0:
		case string(bytes.TrimSpace(e.Data)) == "[DONE]":
			done = true
		case e.Name == "error":
			if o, err := rawjson.ParseObject(e.Data); err == nil && !rawjson.IsNull(o.Get("error")) {
				return reported(o.Get("error"))
			}
			return reported(e.Data)
		default:
			if err := c.readChunk(e.Data, r, &a); err != nil {
				return err
			}
		}
		if done || !events.Pending() {
			if err := c.out.flush(); err != nil {
				return fmt.Errorf("%w: %w", errClientGone, err)
			}
		}
	}
	r.calls = a.calls
	if r.envelope == nil {
		return invalidReply("is an empty stream", nil)
	}
	return nil
}

// readChunk takes one chunk: what belongs to calls, and what ends the round, is
// kept; the rest goes to the client.
func (c *Chat) readChunk(data []byte, r *reply, a *assembler) error {
	if c.pattern.matches(data, r) {
		c.out.event(data)
		return nil
	}
	chunk, choice, delta := &c.scratch.chunk, &c.scratch.choice, &c.scratch.delta
	if err := chunk.Parse(data); err != nil || !json.Valid(data) {
		return invalidReply("has a chunk that is not a JSON object", err)
	}
	if failure := chunk.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	if usage := chunk.Get("usage"); !rawjson.IsNull(usage) {
		r.usage = append(json.RawMessage(nil), usage...)
	}
	if note := chunk.Get("dragoman"); note != nil {
		r.note = append(json.RawMessage(nil), note...)
	}
	choices, err := rawjson.AppendElements(c.scratch.choices[:0], chunk.Get("choices"))
	c.scratch.choices = choices
	if err != nil || len(choices) == 0 {
		if c.request.Stream && len(c.rounds) == 0 && r.envelope == nil && rawjson.IsNull(chunk.Get("usage")) {
			c.out.event(data) // Azure's first chunk, with the prompt's filter results
		}
		return nil
	}
	if err := choice.Parse(choices[0]); err != nil {
		return invalidReply("has a choice that is no object", err)
	}
	if delta.Parse(choice.Get("delta")) != nil {
		delta.Members = delta.Members[:0]
	}
	if err := a.addAll(delta.Get("tool_calls"), false); err != nil {
		return invalidReply("has a malformed tool call", err)
	}
	finish, _ := rawjson.String(choice.Get("finish_reason"))
	first := r.envelope == nil
	if first || finish != "" {
		// These two outlive the read buffer: the last one ends the answer.
		kept, _ := rawjson.ParseObject(append([]byte(nil), data...))
		keptChoices, _ := rawjson.Elements(kept.Get("choices"))
		r.envelope = kept
		r.choice, _ = rawjson.ParseObject(keptChoices[0])
	}
	if finish != "" {
		r.finish, r.sent = finish, false
	}
	hasCalls := delta.Delete("tool_calls")
	merge(r.message, delta)
	if lp := choice.Get("logprobs"); !c.request.Stream && !rawjson.IsNull(lp) {
		r.logprobs = mergeLogprobs(r.logprobs, lp)
	}
	if first && len(c.rounds) == 0 {
		c.adopt(r.envelope)
	}
	if !c.request.Stream {
		return nil // it is answered as a whole
	}
	if !hasCalls && finish == "" && c.asItIs(chunk, delta) {
		r.sent = true
		c.out.event(data)
		c.pattern.learn(data, delta)
		return nil
	}
	return c.forward(r, chunk, choice, delta)
}

// A pattern is what the chunks of a stream that hold text and nothing else have
// in common: everything before and behind the text. Most chunks of a stream
// differ in the text alone; those are told by it without being taken apart.
type pattern struct {
	before, behind []byte
}

// learn takes the pattern of a chunk that went to the client as it is.
func (p *pattern) learn(data []byte, delta *rawjson.Object) {
	p.before = p.before[:0]
	for _, m := range delta.Members {
		if m.Name != "content" && !rawjson.IsNull(m.Value) {
			return
		}
	}
	text := delta.Get("content")
	at := bytes.Index(data, text)
	if !rawjson.IsString(text) || at != bytes.LastIndex(data, text) {
		return
	}
	p.before = append(p.before, data[:at]...)
	p.behind = append(p.behind[:0], data[at+len(text):]...)
}

// matches reports whether a chunk fits the pattern, and adds its text to the
// reply if it does.
func (p *pattern) matches(data []byte, r *reply) bool {
	if len(p.before) == 0 || len(data) < len(p.before)+len(p.behind) ||
		!bytes.HasPrefix(data, p.before) || !bytes.HasSuffix(data, p.behind) {
		return false
	}
	text := data[len(p.before) : len(data)-len(p.behind)]
	have := r.message.Get("content")
	if !rawjson.IsString(text) || rawjson.Kind(have) != '"' {
		return false
	}
	r.message.Set("content", append(have[:len(have)-1], text[1:]...))
	return true
}

func mergeLogprobs(old, more json.RawMessage) json.RawMessage {
	if rawjson.IsNull(old) {
		return append(json.RawMessage(nil), more...)
	}
	return mergeValue("logprobs", old, more)
}

// replay sends a reply that came as a whole as if it had been streamed.
func (c *Chat) replay(r *reply) error {
	if len(c.rounds) == 0 {
		c.adopt(r.envelope)
	}
	chunk := r.envelope.Clone()
	chunk.Set("object", rawjson.Quote("chat.completion.chunk"))
	choice := r.choice.Clone()
	choice.Delete("message")
	choice.Set("finish_reason", json.RawMessage("null"))
	if err := c.forward(r, chunk, choice, r.message.Clone()); err != nil {
		return err
	}
	r.envelope.Set("object", rawjson.Quote("chat.completion.chunk"))
	r.choice.Delete("message")
	r.choice.Delete("logprobs")
	return c.out.flush()
}

// cut is the error for an answer that ended before its end.
func cut(err error) *Error {
	return &Error{
		Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamCut,
		Message: "The model's answer broke off before its end.", Err: err,
	}
}

// invalidReply is the error for an answer that is none.
func invalidReply(what string, err error) *Error {
	return &Error{
		Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamInvalid,
		Message: "The upstream's answer " + what + ".", Err: err,
	}
}

// reported is the error for an upstream that reports one where an answer should
// be: in its own words, and in the shape that clients read.
func reported(failure json.RawMessage) *Error {
	e := &Error{Status: http.StatusBadGateway, Type: TypeServer, Code: CodeUpstreamInvalid}
	text := errorText(failure)
	e.Message = "The upstream reported an error: " + clip(text, 300)
	if relayable(failure) {
		e.Body = append(append([]byte(`{"error":`), failure...), '}')
	}
	return e
}

// relayable reports whether an error object has what clients read of it.
func relayable(failure json.RawMessage) bool {
	o, err := rawjson.ParseObject(failure)
	return err == nil && rawjson.Kind(o.Get("message")) == '"'
}

// errorText returns the words of an error: the text itself, its message, or what
// other APIs call it; else all of it.
func errorText(failure json.RawMessage) string {
	if text, ok := rawjson.String(failure); ok {
		return text
	}
	if o, err := rawjson.ParseObject(failure); err == nil {
		for _, name := range []string{"message", "error", "detail", "msg"} {
			if part := o.Get(name); !rawjson.IsNull(part) {
				return errorText(part)
			}
		}
	}
	return string(failure)
}

// statusError is the error for an upstream that answered with an error status:
// its own document where it is one, ours where it is not, such as the HTML page
// of a proxy.
func statusError(resp *http.Response) *Error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	e := &Error{
		Status: resp.StatusCode, Type: TypeServer, Code: CodeUpstreamInvalid, Err: err,
		Message: fmt.Sprintf("The upstream answered with status %d.", resp.StatusCode), Header: http.Header{},
	}
	copyHeader(e.Header, resp.Header)
	if resp.StatusCode < 400 {
		e.Status = http.StatusBadGateway
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		e.Type = TypeAuthentication
	case resp.StatusCode == http.StatusForbidden:
		e.Type = TypePermission
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		e.Type = TypeInvalidRequest
	}
	if o, err := rawjson.ParseObject(body); err == nil && rawjson.Check(body) == nil && len(o.Members) > 0 {
		if relayable(o.Get("error")) {
			e.Body = body
		}
		e.Message = fmt.Sprintf("The upstream answered with status %d: %s", resp.StatusCode, clip(errorText(body), 300))
	}
	return e
}
