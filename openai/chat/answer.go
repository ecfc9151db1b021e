package chat

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// adopt takes over the identity of the first reply: the client sees one
// completion, whatever happens inside.
func (c *Conversation) adopt(envelope *rawjson.Object) {
	// Copies, in one slice: a chunk is gone with the next one, and a body need not stay for these.
	id, created, name := envelope.Get("id"), envelope.Get("created"), envelope.Get("model")
	room := make([]byte, 0, len(id)+len(created)+len(name))
	own := func(raw json.RawMessage) json.RawMessage {
		from := len(room)
		room = append(room, raw...)
		return room[from:len(room):len(room)]
	}
	c.id, c.created, c.model = own(id), own(created), own(name)
	if !isText(c.id) {
		c.id = rawjson.Quote("chatcmpl-" + rand.Text()[:24])
	}
	if rawjson.Kind(c.created) != '0' {
		c.created = strconv.AppendInt(nil, time.Now().Unix(), 10)
	}
	if rawjson.Kind(c.model) != '"' {
		c.model = rawjson.Quote(c.request.Model)
	}
}

func (c *Conversation) identify(o *rawjson.Object) {
	o.Set("id", c.id)
	o.Set("created", c.created)
	o.Set("model", c.model)
}

// chunk sends what a chunk of the model's message holds for the client.
func (c *Conversation) chunk(ch *model.Chunk) error {
	switch {
	case ch.Preface:
		if len(c.rounds) == 0 { // such as Azure's first, with the prompt's filter results
			c.out.Event("", ch.Data)
		}
		return nil
	case ch.Same && c.asItIs:
		c.out.Event("", ch.Data)
		return nil
	}
	envelope, choice, delta := ch.Parts()
	if ch.First && c.id == nil {
		c.adopt(envelope)
	}
	if ch.Finish != "" {
		c.sent = false
	}
	c.asItIs = ch.Data != nil && !ch.Calls && ch.Finish == "" && c.fits(envelope, delta)
	if c.asItIs {
		c.role, c.sent = true, true
		c.out.Event("", ch.Data)
		return nil
	}
	if ch.Same && c.held.full() {
		c.held.text.WriteString(ch.Text())
		return nil
	}
	c.forward(envelope, choice, delta)
	if limit := c.options.Model.Limit(); c.held.size > limit {
		return model.TooLarge(limit)
	}
	return nil
}

// fits reports whether a chunk can go to the client byte for byte.
func (c *Conversation) fits(chunk, delta *rawjson.Object) bool {
	if len(c.rounds) > 0 || c.request.jsonFormat || (delta.Get("role") == nil) != c.role ||
		chunk.Get("error") != nil || chunk.Get("dragoman") != nil ||
		!bytes.Equal(chunk.Get("id"), c.id) || !bytes.Equal(chunk.Get("created"), c.created) || !bytes.Equal(chunk.Get("model"), c.model) {
		return false
	}
	usage := chunk.Get("usage")
	return rawjson.IsNull(usage) && (usage != nil || !c.request.includeUsage)
}

// forward sends what a delta holds for the client: one role in all, no finish
// reason yet, and a blank line between the texts of two rounds, as between what was
// thought in them. It changes the objects it is given.
func (c *Conversation) forward(chunk, choice, delta *rawjson.Object) {
	if c.role {
		delta.Delete("role")
	}
	if content := delta.Get("content"); content != nil && c.role && (rawjson.IsNull(content) || string(content) == `""`) {
		delta.Delete("content")
	}
	for i, name := range texts {
		if text := delta.Get(name); c.separate[i] && isText(text) {
			c.separate[i] = false
			delta.Set(name, append([]byte(`"\n\n`), text[1:]...))
		}
	}
	if cited := delta.Get("annotations"); len(c.visible) > 0 && !rawjson.IsNull(cited) {
		delta.Set("annotations", rawjson.AppendArray(nil, model.ShiftCitations(cited, c.before())))
	}
	if c.role && saysNothing(delta) {
		return
	}
	if !c.role {
		delta.Set("role", rawjson.Quote("assistant"))
		c.role = true
	}
	c.identify(chunk)
	chunk.Delete("error")
	chunk.Delete("dragoman")
	c.setUsage(chunk, nil)
	s := &c.scratch
	s.delta = delta.Append(s.delta[:0])
	choice.Set("delta", s.delta)
	choice.Set("finish_reason", null)
	s.choice = append(choice.Append(append(s.choice[:0], '[')), ']')
	chunk.Set("choices", s.choice)
	s.chunk = chunk.Append(s.chunk[:0])
	if c.request.jsonFormat {
		c.held.add(s.chunk)
		return
	}
	c.sent = true
	c.out.Event("", s.chunk)
}

var null = json.RawMessage("null")

// saysNothing reports whether a delta has no member that is not null.
func saysNothing(delta *rawjson.Object) bool {
	for _, m := range delta.Members {
		if !rawjson.IsNull(m.Value) {
			return false
		}
	}
	return true
}

// setUsage puts usage into a chunk as the client asked for it: a number only in
// the last one, null in all others, nothing where it did not ask.
func (c *Conversation) setUsage(chunk *rawjson.Object, usage json.RawMessage) {
	switch {
	case usage != nil:
		chunk.Set("usage", usage)
	case c.request.includeUsage:
		chunk.Set("usage", null)
	default:
		chunk.Delete("usage")
	}
}

// account adds a reply to the sums of the completion.
func (c *Conversation) account(r *model.Reply) {
	if c.id == nil {
		c.adopt(r.Envelope)
	}
	c.usage = c.options.Sum(c.usage, r.Usage)
	if c.request.jsonFormat || rawjson.IsNull(c.logprobs) {
		c.logprobs = r.Logprobs
	} else if !rawjson.IsNull(r.Logprobs) {
		c.logprobs = model.AddLogprobs(c.logprobs, r.Logprobs)
	}
	id, name, usage := r.Envelope.Get("id"), r.Envelope.Get("model"), r.Usage
	if usage == nil {
		usage = null // the sum has no figures of this round
	}
	round := append(make([]byte, 0, len(id)+len(name)+len(usage)+64), '{')
	if !rawjson.IsNull(id) {
		round = append(append(append(round, `"id":`...), id...), ',')
	}
	if !rawjson.IsNull(name) {
		round = append(append(append(round, `"model":`...), name...), ',')
	}
	round = append(append(round, `"usage":`...), usage...)
	round = strconv.AppendInt(append(round, `,"calls":`...), int64(len(r.Calls)), 10)
	c.rounds = append(c.rounds, append(round, '}'))
}

// finish ends the answer: with the client's calls where the model made some, and
// with the model's last words where it did not.
func (c *Conversation) finish(ctx context.Context) error {
	r, round := c.last, c.pending
	if r == nil {
		r = round.Reply
	}
	if c.last = r; c.told != r {
		c.see(r)
	}
	var calls []json.RawMessage
	if round != nil {
		if round.Message.Waits() && !round.Mixed() {
			c.sayAsks(r, round.Message)
		}
		c.thread.KeepOpen(ctx, round, c.seen())
		if round.Mixed() {
			for i := range round.Message.Calls {
				if call := &round.Message.Calls[i]; !call.Ours() {
					calls = append(calls, recall.Visible(call))
				}
			}
		}
	}
	for _, payload := range c.held.all() {
		c.out.Event("", payload)
	}
	finish := r.Finish
	switch {
	case len(calls) > 0 && c.request.legacy:
		finish = "function_call"
	case len(calls) > 0:
		finish = "tool_calls"
	case finish == "" || finish == "tool_calls" || finish == "function_call":
		finish = "stop"
	}
	if c.request.Stream {
		return c.finishStream(r, calls, finish)
	}
	return c.finishBody(r, calls, finish)
}

func (c *Conversation) finishStream(r *model.Reply, calls []json.RawMessage, finish string) error {
	base := r.Envelope.Clone()
	c.identify(base)
	base.Set("object", rawjson.Quote("chat.completion.chunk"))
	base.Delete("error")
	base.Delete("dragoman")
	c.setUsage(base, nil)
	for i, call := range calls {
		c.finalChunk(base, &rawjson.Object{}, c.callDelta(i, call), null)
	}
	delta := json.RawMessage("{}")
	if !c.role {
		delta = json.RawMessage(`{"role":"assistant","content":""}`)
	}
	base.Set("dragoman", c.extra(r))
	final := r.Choice.Clone()
	final.Delete("delta")
	if c.sent {
		final.Delete("logprobs")
	}
	// An upstream that puts usage on this chunk without being asked has clients that
	// expect it there.
	if !c.request.includeUsage && !rawjson.IsNull(r.Envelope.Get("usage")) {
		c.setUsage(base, c.usage)
	}
	c.finalChunk(base, final, delta, rawjson.Quote(finish))
	if c.request.includeUsage && !rawjson.IsNull(c.usage) {
		base.Delete("dragoman")
		base.Set("choices", json.RawMessage("[]"))
		base.Set("usage", c.usage)
		c.out.Event("", base.Bytes())
	}
	c.out.Event("", []byte("[DONE]"))
	return c.out.Flush()
}

func (c *Conversation) finalChunk(base, choice *rawjson.Object, delta, finish json.RawMessage) {
	choice.Set("index", json.RawMessage("0"))
	choice.Set("delta", delta)
	choice.Set("finish_reason", finish)
	base.Set("choices", choice.Alone())
	c.out.Event("", base.Bytes())
}

// callDelta returns the delta that gives the client one of its calls.
func (c *Conversation) callDelta(index int, call json.RawMessage) json.RawMessage {
	delta := &rawjson.Object{}
	if !c.role {
		delta.Set("role", rawjson.Quote("assistant"))
		c.role = true
	}
	o, err := rawjson.ParseObject(call)
	switch {
	case err != nil: // we made it
	case c.request.legacy:
		delta.Set("function_call", o.Get("function"))
	default:
		indexed := rawjson.Object{Members: append([]rawjson.Member{{Name: "index", Value: strconv.AppendInt(nil, int64(index), 10)}}, o.Members...)}
		delta.Set("tool_calls", rawjson.AppendArray(nil, []json.RawMessage{indexed.Bytes()}))
	}
	return delta.Bytes()
}

func (c *Conversation) finishBody(r *model.Reply, calls []json.RawMessage, finish string) error {
	body := r.Envelope.Clone()
	c.identify(body)
	body.Set("object", rawjson.Quote("chat.completion"))
	message := r.Message.Clone()
	if message.Get("role") == nil {
		message.Set("role", rawjson.Quote("assistant"))
	}
	if content := message.Get("content"); rawjson.IsNull(content) || rawjson.Kind(content) == '"' {
		switch text := c.seen(); {
		case text != "" && text == r.Text(): // as it came
		case text != "":
			message.Set("content", rawjson.Quote(text))
		case content == nil || len(calls) > 0:
			message.Set("content", json.RawMessage("null"))
		}
		if len(c.rounds) > 1 && len(c.cited) > 0 {
			message.Set("annotations", rawjson.AppendArray(nil, c.cited))
		}
	}
	for i, thought := range c.thought {
		if len(thought) > 1 || len(thought) == 1 && !isText(message.Get(texts[i])) { // else as it came
			message.Set(texts[i], rawjson.Quote(strings.Join(thought, betweenRounds)))
		}
	}
	if len(calls) > 0 {
		message.Set("tool_calls", rawjson.AppendArray(nil, calls))
		if c.request.legacy {
			legacyMessage(message)
		}
	}
	choice := r.Choice.Clone()
	choice.Delete("delta")
	choice.Set("index", json.RawMessage("0"))
	choice.Set("message", message.Bytes())
	choice.Set("finish_reason", rawjson.Quote(finish))
	if c.logprobs != nil {
		choice.Set("logprobs", c.logprobs)
	}
	body.Set("choices", choice.Alone())
	if !rawjson.IsNull(c.usage) {
		body.Set("usage", c.usage)
	}
	body.Delete("error")
	body.Delete("dragoman")
	body.Set("dragoman", c.extra(r))
	return c.out.Body(body.Line())
}

// extra is the dragoman member of the answer: each round with its usage and the
// upstream's own ids, and the hidden messages when the client asked for them.
func (c *Conversation) extra(r *model.Reply) json.RawMessage {
	o := &rawjson.Object{}
	if have, err := rawjson.ParseObject(r.Note); err == nil {
		o = have
	}
	o.Set("rounds", rawjson.AppendArray(nil, c.rounds))
	if len(c.options.Missing) > 0 {
		servers := make([]json.RawMessage, len(c.options.Missing))
		for i, s := range c.options.Missing {
			servers[i] = json.RawMessage(`{"server":` + string(rawjson.Quote(s.Label)) + `,"state":` + string(rawjson.Quote(string(s.State))) + `}`)
		}
		o.Set("missing", rawjson.AppendArray(nil, servers))
	}
	if left := c.dialogue.Left(); len(left) > 0 {
		o.Set("left_out", quoted(left[:min(len(left), maxLeftOut)]))
		if len(left) > maxLeftOut {
			o.Set("left_out_total", strconv.AppendInt(nil, int64(len(left)), 10))
		}
	}
	if c.thread.Asks != "" {
		o.Set("asks", c.asked(c.pending.Message))
	}
	if c.request.wantMessages {
		o.Set("messages", rawjson.AppendArray(nil, c.dialogue.Hidden()))
	}
	return o.Bytes()
}

// maxLeftOut is how many tools that were left out an answer names.
const maxLeftOut = 50

func quoted(names []string) json.RawMessage {
	literals := make([]json.RawMessage, len(names))
	for i, name := range names {
		literals[i] = rawjson.Quote(name)
	}
	return rawjson.AppendArray(nil, literals)
}
