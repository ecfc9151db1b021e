package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/internal/wire/sse"
)

// readResponseBody takes a whole response of the Responses API apart.
func (r *Reply) readResponseBody(body []byte) error {
	o, err := rawjson.Read(body)
	switch {
	case errors.Is(err, rawjson.ErrNoObject):
		return invalidReply("is not a JSON object", err)
	case err != nil:
		return invalidReply("is not JSON", err)
	}
	return r.readResponse(o, nil)
}

// readResponse reads a response that has ended. items are those that its stream had,
// for an API that leaves them out at its end.
func (r *Reply) readResponse(o *rawjson.Object, items []json.RawMessage) error {
	if failure := o.Get("error"); !rawjson.IsNull(failure) {
		return reported(failure)
	}
	status, _ := rawjson.String(o.Get("status"))
	switch status {
	case "completed", "incomplete":
	case "failed":
		return reported(rawjson.Quote("the response failed"))
	default:
		return invalidReply("is a response that has not ended", nil)
	}
	output, err := rawjson.Elements(o.Get("output"))
	if err != nil {
		return invalidReply("has no output", err)
	}
	if len(output) == 0 {
		output = items
	}
	r.Response, r.Items = o, output
	r.Usage = chatUsage(o.Get("usage"))
	if err := r.readItems(); err != nil {
		return err
	}
	switch reason := reasonOf(o); {
	case status == "incomplete" && reason == "content_filter":
		r.Finish = "content_filter"
	case status == "incomplete":
		r.Finish = "length"
	case len(r.Calls) > 0:
		r.Finish = "tool_calls"
	default:
		r.Finish = "stop"
	}
	r.Envelope = envelopeOf(o, "chat.completion")
	if tier := o.Get("service_tier"); !rawjson.IsNull(tier) {
		r.Envelope.Set("service_tier", tier)
	}
	r.Choice = &rawjson.Object{Members: []rawjson.Member{
		{Name: "index", Value: json.RawMessage("0")}, {Name: "finish_reason", Value: rawjson.Quote(r.Finish)},
	}}
	return nil
}

// reasonOf returns why a response is incomplete.
func reasonOf(o *rawjson.Object) string {
	details, err := rawjson.ParseObject(o.Get("incomplete_details"))
	if err != nil {
		return ""
	}
	reason, _ := rawjson.String(details.Get("reason"))
	return reason
}

// envelopeOf returns what of a response goes around a message of the Chat API.
func envelopeOf(response *rawjson.Object, object string) *rawjson.Object {
	o := &rawjson.Object{}
	for _, each := range [][2]string{{"id", "id"}, {"created", "created_at"}, {"model", "model"}} {
		if value := response.Get(each[1]); !rawjson.IsNull(value) {
			o.Set(each[0], bytes.Clone(value))
		}
	}
	o.Set("object", rawjson.Quote(object))
	return o
}

// readItems makes a message of the Chat API of the output of a response.
func (r *Reply) readItems() error {
	r.Message = &rawjson.Object{}
	r.Message.Set("role", rawjson.Quote("assistant"))
	answered := answeredIn(r.Items) // calls that the API itself has answered
	objects := make([]*rawjson.Object, len(r.Items))
	for n, raw := range r.Items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			return invalidReply("has an item that is no object", err)
		}
		objects[n] = item
	}
	var thoughts, refusals []string
	var annotations, logprobs []json.RawMessage
	said := 0 // characters of the text before
	for n, item := range objects {
		kind, _ := rawjson.String(item.Get("type"))
		id, _ := rawjson.String(item.Get("call_id"))
		switch {
		case kind == "message":
			text := partsOf(item, "content", "text")
			if said > 0 && text != "" {
				said += len(betweenMessages)
			}
			annotations = append(annotations, citations(item, said)...)
			said += utf8.RuneCountInString(text)
			parts, _ := rawjson.Elements(item.Get("content"))
			for _, raw := range parts {
				part, err := rawjson.ParseObject(raw)
				if err != nil {
					continue
				}
				if refusal, _ := rawjson.String(part.Get("refusal")); refusal != "" {
					refusals = append(refusals, refusal)
				}
				likely, _ := rawjson.Elements(part.Get("logprobs"))
				logprobs = append(logprobs, likely...)
			}
		case kind == "reasoning":
			if thought := thoughtOf(item); thought != "" {
				thoughts = append(thoughts, thought)
			}
		case callsClient(item) && !answered[id]:
			if len(r.Calls) == maxCalls {
				return invalidReply("has too many calls", nil)
			}
			r.Calls = append(r.Calls, callOf(item, r.Items[n]))
		}
	}
	r.Message.Set("content", null)
	if text := textOf(r.Items); text != "" || len(r.Calls) == 0 && len(refusals) == 0 {
		r.Message.Set("content", rawjson.Quote(text))
	}
	if len(refusals) > 0 {
		r.Message.Set("refusal", rawjson.Quote(strings.Join(refusals, "\n")))
	}
	if len(thoughts) > 0 {
		r.Message.Set("reasoning_content", rawjson.Quote(strings.Join(thoughts, betweenMessages)))
	}
	if len(annotations) > 0 {
		r.Message.Set("annotations", rawjson.AppendArray(nil, annotations))
	}
	if len(logprobs) > 0 {
		r.Logprobs = (&rawjson.Object{Members: []rawjson.Member{
			{Name: "content", Value: rawjson.AppendArray(nil, logprobs)}, {Name: "refusal", Value: null},
		}}).Bytes()
	}
	return nil
}

// callOf returns the call that an item is. What is no call of a function by its name
// alone is the client's in any case.
func callOf(item *rawjson.Object, raw json.RawMessage) *Call {
	kind, _ := rawjson.String(item.Get("type"))
	c := &Call{}
	c.ID, _ = rawjson.String(item.Get("call_id"))
	c.Name, _ = rawjson.String(item.Get("name"))
	switch kind {
	case "function_call":
		c.Arguments = argumentText(item.Get("arguments"))
		c.client = !rawjson.IsNull(item.Get("namespace"))
	case "custom_tool_call":
		c.Arguments, c.Custom = argumentText(item.Get("input")), true
		c.client = !rawjson.IsNull(item.Get("namespace"))
	default:
		c.Name, c.Arguments, c.client = strings.TrimSuffix(kind, "_call"), raw, true
	}
	return c
}

// thoughtOf returns what an item of reasoning says in words: what the model thought, or a
// summary of it.
func thoughtOf(item *rawjson.Object) string {
	if text := partsOf(item, "content", "text"); text != "" {
		return text
	}
	var all []string
	parts, _ := rawjson.Elements(item.Get("summary"))
	for _, raw := range parts {
		if part, err := rawjson.ParseObject(raw); err == nil {
			if text, _ := rawjson.String(part.Get("text")); text != "" {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, betweenMessages)
}

// citations returns the annotations of an item, a message, in the form of the Chat API. before
// is how many characters of the text of the whole answer stand before its own.
func citations(item *rawjson.Object, before int) (all []json.RawMessage) {
	parts, _ := rawjson.Elements(item.Get("content"))
	for _, raw := range parts {
		if part, err := rawjson.ParseObject(raw); err == nil {
			all = append(all, chatAnnotations(part.Get("annotations"), before)...)
			text, _ := rawjson.String(part.Get("text"))
			before += utf8.RuneCountInString(text)
		}
	}
	return all
}

// chatAnnotations returns annotations of a text, which so many characters stand before, in the
// form of the Chat API, which has those that cite a page of the web.
func chatAnnotations(raw json.RawMessage, before int) (all []json.RawMessage) {
	given, _ := rawjson.Elements(raw)
	for _, each := range given {
		o, err := rawjson.ParseObject(each)
		if err != nil {
			continue
		}
		if kind, _ := rawjson.String(o.Get("type")); kind != "url_citation" {
			continue
		}
		o.Delete("type")
		shift(o, before)
		all = append(all, (&rawjson.Object{Members: []rawjson.Member{quoted("type", "url_citation"), {Name: "url_citation", Value: o.Bytes()}}}).Bytes())
	}
	return all
}

// ShiftCitations returns annotations of the Chat API as they are of a text that has so many
// characters more before it.
func ShiftCitations(annotations json.RawMessage, by int) []json.RawMessage {
	all, _ := rawjson.Elements(annotations)
	for i, each := range all {
		o, err := rawjson.ParseObject(each)
		if err != nil {
			continue
		}
		if page, err := rawjson.ParseObject(o.Get("url_citation")); err == nil {
			shift(page, by)
			o.Set("url_citation", page.Bytes())
			all[i] = o.Bytes()
		}
	}
	return all
}

// shift moves the place that a citation is of.
func shift(page *rawjson.Object, by int) {
	for _, name := range []string{"start_index", "end_index"} {
		if at, ok := rawjson.Int(page.Get(name)); ok {
			page.Set(name, strconv.AppendInt(nil, int64(at+by), 10))
		}
	}
}

// usageNames are the members of usage in the Responses API, by those of the Chat API.
var usageNames = map[string]string{
	"input_tokens": "prompt_tokens", "input_tokens_details": "prompt_tokens_details",
	"output_tokens": "completion_tokens", "output_tokens_details": "completion_tokens_details",
}

// chatUsage returns usage in the form of the Chat API.
func chatUsage(usage json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(usage)
	if err != nil {
		return nil
	}
	of := &rawjson.Object{}
	for _, m := range o.Members {
		name := usageNames[m.Name]
		if name == "" {
			name = m.Name
		}
		of.Set(name, m.Value)
	}
	return of.Bytes()
}

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
}

// readEvents takes a stream of events apart, to the one that ends the response.
func (a *answer) readEvents(body io.Reader, l Listener) (*Reply, error) {
	limit := a.client.Limit()
	events := sse.NewReader(body, int(limit))
	s := &itemStream{reply: &Reply{}, listener: l, limit: limit}
	for done := false; !done; {
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
		if s.held += int64(len(item)); s.held > s.limit {
			return TooLarge(s.limit)
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
	}
	return nil
}

// cite tells what the text of an item cites that is done, the last one that spoke.
func (s *itemStream) cite(raw json.RawMessage) error {
	item, err := rawjson.ParseObject(raw)
	if err != nil || string(item.Get("type")) != `"message"` {
		return nil // who reads the whole answer says what is wrong with it
	}
	all := citations(item, max(0, s.said-utf8.RuneCountInString(partsOf(item, "content", "text"))))
	if len(all) == 0 {
		return nil
	}
	return s.tell("annotations", rawjson.AppendArray(nil, all), nil)
}

// chunk tells of a piece of a text of the message.
func (s *itemStream) chunk(member, text string, logprobs json.RawMessage) error {
	if s.held += int64(len(text)); s.held > s.limit {
		return TooLarge(s.limit)
	}
	if text == "" {
		return nil
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

// replayResponse tells of a response that came as a whole as if it had been streamed:
// its items, each added and done at once.
func (r *Reply) replayResponse(l Listener) error {
	if l.Event != nil {
		if err := r.replayItems(l); err != nil {
			return err
		}
	}
	if l.Chunk != nil {
		chunk := &Chunk{First: true, parsed: true, envelope: *envelopeOf(r.Response, "chat.completion.chunk"), delta: *r.Message.Clone()}
		chunk.choice.Set("index", json.RawMessage("0"))
		if r.Logprobs != nil {
			chunk.choice.Set("logprobs", r.Logprobs)
		}
		chunk.choice.Set("finish_reason", null)
		if err := l.Chunk(chunk); err != nil {
			return err
		}
		r.endStream()
	}
	if l.Flush == nil {
		return nil
	}
	return l.Flush()
}

func (r *Reply) replayItems(l Listener) error {
	event := func(kind string, members ...rawjson.Member) error {
		return l.Event(kind, &rawjson.Object{Members: append([]rawjson.Member{quoted("type", kind)}, members...)})
	}
	whole := rawjson.Member{Name: "response", Value: r.Response.Bytes()}
	if err := event("response.created", whole); err != nil {
		return err
	}
	for n, item := range r.Items {
		place := []rawjson.Member{{Name: "output_index", Value: strconv.AppendInt(nil, int64(n), 10)}, {Name: "item", Value: item}}
		for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
			if err := event(kind, place...); err != nil {
				return err
			}
		}
	}
	status, _ := rawjson.String(r.Response.Get("status"))
	return event("response."+status, whole)
}
