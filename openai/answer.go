package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// adopt takes over the identity of the first reply: the client sees one
// completion, whatever happens inside.
func (c *Chat) adopt(envelope *rawjson.Object) {
	c.id, c.created, c.model = envelope.Get("id"), envelope.Get("created"), envelope.Get("model")
	if id, _ := rawjson.String(c.id); id == "" {
		c.id = rawjson.Quote(mintID("chatcmpl-"))
	}
	if rawjson.Kind(c.created) != '0' {
		c.created = strconv.AppendInt(nil, time.Now().Unix(), 10)
	}
	if rawjson.Kind(c.model) != '"' {
		c.model = rawjson.Quote(c.request.Model)
	}
}

func (c *Chat) identify(o *rawjson.Object) {
	o.Set("id", c.id)
	o.Set("created", c.created)
	o.Set("model", c.model)
}

// asItIs reports whether a chunk can go to the client byte for byte.
func (c *Chat) asItIs(chunk, delta *rawjson.Object) bool {
	if len(c.rounds) > 0 || c.request.jsonFormat || (delta.Get("role") == nil) != c.role ||
		chunk.Get("error") != nil || chunk.Get("dragoman") != nil ||
		!bytes.Equal(chunk.Get("id"), c.id) || !bytes.Equal(chunk.Get("created"), c.created) || !bytes.Equal(chunk.Get("model"), c.model) {
		return false
	}
	if usage := chunk.Get("usage"); !rawjson.IsNull(usage) || usage == nil && c.request.includeUsage {
		return false
	}
	c.role = true
	return true
}

// forward sends what a delta holds for the client: one role in all, no finish
// reason yet, and a blank line between the texts of two rounds. It changes the
// objects it is given.
func (c *Chat) forward(r *reply, chunk, choice, delta *rawjson.Object) error {
	if c.role {
		delta.Delete("role")
	}
	if content := delta.Get("content"); content != nil {
		isText, empty := content[0] == '"', len(content) == len(`""`)
		switch {
		case c.role && (rawjson.IsNull(content) || isText && empty):
			delta.Delete("content")
		case isText && !empty && c.separate:
			c.separate = false
			delta.Set("content", append([]byte(`"\n\n`), content[1:]...))
		}
	}
	if c.role && saysNothing(delta) {
		return nil
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
	s.deltaBytes = delta.Append(s.deltaBytes[:0])
	choice.Set("delta", s.deltaBytes)
	choice.Set("finish_reason", null)
	s.choiceBytes = append(choice.Append(append(s.choiceBytes[:0], '[')), ']')
	chunk.Set("choices", s.choiceBytes)
	s.chunkBytes = chunk.Append(s.chunkBytes[:0])
	if c.request.jsonFormat {
		r.held = append(r.held, bytes.Clone(s.chunkBytes))
		return nil
	}
	r.sent = true
	c.out.event(s.chunkBytes)
	return nil
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
func (c *Chat) setUsage(chunk *rawjson.Object, usage json.RawMessage) {
	switch {
	case usage != nil:
		chunk.Set("usage", usage)
	case c.request.includeUsage:
		chunk.Set("usage", null)
	default:
		chunk.Delete("usage")
	}
}

// sort parts the calls of a reply into ours and the client's. It returns nil
// when there are none to answer or hand over.
func (c *Chat) sort(r *reply, last bool) *exchange {
	if cutOff(r.finish) {
		// What is cut off must not run, nor be handed on, nor be remembered.
		r.calls = nil
	}
	if c.request.oneCall && len(r.calls) > 1 {
		r.calls = r.calls[:1]
	}
	x := &exchange{reply: r, message: c.forHistory(r.message)}
	used := map[string]bool{}
	for _, call := range r.calls {
		mine, name := c.owner(call)
		if !mine {
			e := exchangeCall{call: call, run: -1, id: c.callID(call, used)}
			e.raw = call.raw(e.id, name, string(call.args))
			e.client = e.id
			call.name = name
			x.calls = append(x.calls, e)
			continue
		}
		if last {
			continue
		}
		run := dragoman.Call{ID: c.callID(call, used), Can: c.options.Can}
		args := string(call.args)
		if tool, plan := c.tool(call.name); tool != nil {
			run.Tool, name = tool, tool.Name
			run.Progress = c.progress(tool)
			var problem *dragoman.Problem
			run.Arguments, _, problem = plan.Decode(args, r.finish)
			run.Problem = problem
			if !complete(call.args) {
				// The history must hold a JSON object: some upstreams refuse the
				// request otherwise.
				args = "{}"
				if encoded, err := plan.Encode(run.Arguments); problem == nil && err == nil {
					args = string(encoded)
				}
			}
		} else {
			run.Name, run.Problem = clip(call.name, 80), unknownTool(call.name, c.ours)
			name = validName(call.name)
			if !complete(call.args) && !call.custom {
				args = "{}"
			}
		}
		x.calls = append(x.calls, exchangeCall{call: call, run: len(x.run), id: run.ID, raw: call.raw(run.ID, name, args)})
		x.run = append(x.run, run)
	}
	if len(x.calls) == 0 {
		return nil
	}
	return x
}

// cutOff reports whether a finish_reason says that the message is incomplete.
func cutOff(finish string) bool {
	return finish == "length" || finish == "model_length" || finish == "content_filter"
}

// owner says whose a call is, and by which name. The client's own tools come
// first, then ours, then the client's in the wrong case.
func (c *Chat) owner(call *toolCall) (ours bool, name string) {
	if c.request.names[call.name] {
		return false, call.name
	}
	if tool, _ := c.tool(call.name); tool != nil {
		return true, call.name
	}
	for have := range c.request.names {
		if equalFold(have, call.name) {
			return false, have
		}
	}
	return true, call.name
}

func equalFold(a, b string) bool { return bytes.EqualFold([]byte(a), []byte(b)) }

// validName makes a name that nobody offered fit to stand in the history.
func validName(name string) string {
	valid := make([]byte, 0, len(name))
	for i := 0; i < len(name) && len(valid) < 64; i++ {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-':
			valid = append(valid, b)
		default:
			valid = append(valid, '_')
		}
	}
	if len(valid) == 0 {
		return "unknown"
	}
	return string(valid)
}

// callID returns the call's id if it can stand in the history, or a new one.
func (c *Chat) callID(call *toolCall, used map[string]bool) string {
	id := call.id
	if id == "" || used[id] {
		id = mintID("call_")
	}
	id = c.fitID(id)
	used[id] = true
	return id
}

// finish ends the answer: with the client's calls where the model made some, and
// with the model's last words where it did not.
func (c *Chat) finish() error {
	r, x := c.last, c.pending
	if r == nil {
		r = x.reply
	}
	c.last = r
	if c.request.jsonFormat || x == nil || len(x.run) == 0 {
		c.see(r)
	}
	if x != nil {
		c.keepExchange(x)
	}
	for _, payload := range r.held {
		c.out.event(payload)
	}
	finish := r.finish
	var calls []json.RawMessage
	if x != nil {
		for _, e := range x.calls {
			if e.run < 0 {
				calls = append(calls, e.call.raw(e.client, e.call.name, string(e.call.args)))
			}
		}
	}
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

func (c *Chat) finishStream(r *reply, calls []json.RawMessage, finish string) error {
	base := r.envelope.Clone()
	c.identify(base)
	base.Set("object", rawjson.Quote("chat.completion.chunk"))
	base.Delete("error")
	c.setUsage(base, nil)
	chunk := func(choice *rawjson.Object, delta json.RawMessage, finish json.RawMessage) []byte {
		choice.Set("index", json.RawMessage("0"))
		choice.Set("delta", delta)
		choice.Set("finish_reason", finish)
		base.Set("choices", rawjson.AppendArray(nil, []json.RawMessage{choice.Bytes()}))
		return base.Bytes()
	}
	base.Delete("dragoman")
	for i, call := range calls {
		delta := &rawjson.Object{}
		if !c.role {
			delta.Set("role", rawjson.Quote("assistant"))
			c.role = true
		}
		if o, err := rawjson.ParseObject(call); err == nil {
			indexed := rawjson.Object{Members: append([]rawjson.Member{{Name: "index", Value: strconv.AppendInt(nil, int64(i), 10)}}, o.Members...)}
			delta.Set("tool_calls", rawjson.AppendArray(nil, []json.RawMessage{indexed.Bytes()}))
		}
		if c.request.legacy {
			if o, err := rawjson.ParseObject(call); err == nil {
				delta.Delete("tool_calls")
				delta.Set("function_call", o.Get("function"))
			}
		}
		c.out.event(chunk(&rawjson.Object{}, delta.Bytes(), json.RawMessage("null")))
	}
	delta := json.RawMessage("{}")
	if !c.role {
		delta = json.RawMessage(`{"role":"assistant","content":""}`)
	}
	if extra := c.extra(r); extra != nil {
		base.Set("dragoman", extra)
	}
	final := r.choice.Clone()
	final.Delete("delta")
	if r.sent {
		final.Delete("logprobs")
	}
	if !c.request.includeUsage && rideUsage(r) {
		c.setUsage(base, c.usage)
	}
	c.out.event(chunk(final, delta, rawjson.Quote(finish)))
	if c.request.includeUsage && !rawjson.IsNull(c.usage) {
		base.Delete("dragoman")
		base.Set("choices", json.RawMessage("[]"))
		base.Set("usage", c.usage)
		c.out.event(base.Bytes())
	}
	c.out.event([]byte("[DONE]"))
	return c.out.flush()
}

// rideUsage reports whether the upstream put usage on the chunk with the finish
// reason without being asked; the client of such an upstream expects it there.
func rideUsage(r *reply) bool { return !rawjson.IsNull(r.envelope.Get("usage")) }

func (c *Chat) finishBody(r *reply, calls []json.RawMessage, finish string) error {
	body := r.envelope.Clone()
	c.identify(body)
	body.Set("object", rawjson.Quote("chat.completion"))
	message := r.message.Clone()
	if message.Get("role") == nil {
		message.Set("role", rawjson.Quote("assistant"))
	}
	if content := message.Get("content"); rawjson.IsNull(content) || rawjson.Kind(content) == '"' {
		switch text := c.seen(); {
		case text != "":
			message.Set("content", rawjson.Quote(text))
		case content == nil || len(calls) > 0:
			message.Set("content", json.RawMessage("null"))
		}
	}
	if len(calls) > 0 {
		message.Set("tool_calls", rawjson.AppendArray(nil, calls))
		if c.request.legacy {
			legacyMessage(message)
		}
	}
	choice := r.choice.Clone()
	choice.Delete("delta")
	choice.Set("index", json.RawMessage("0"))
	choice.Set("message", message.Bytes())
	choice.Set("finish_reason", rawjson.Quote(finish))
	if c.logprobs != nil {
		choice.Set("logprobs", c.logprobs)
	}
	body.Set("choices", rawjson.AppendArray(nil, []json.RawMessage{choice.Bytes()}))
	if !rawjson.IsNull(c.usage) {
		body.Set("usage", c.usage)
	}
	body.Delete("error")
	body.Delete("dragoman")
	if extra := c.extra(r); extra != nil {
		body.Set("dragoman", extra)
	}
	return c.out.body(append(body.Bytes(), '\n'))
}

// extra is the dragoman member of the answer: each round with its usage and the
// upstream's own ids, and the hidden messages when the client asked for them.
func (c *Chat) extra(r *reply) json.RawMessage {
	o := &rawjson.Object{}
	if have, err := rawjson.ParseObject(r.note); err == nil {
		o = have
	}
	var rounds []json.RawMessage
	for _, info := range c.rounds {
		var round rawjson.Object
		for _, m := range []rawjson.Member{{Name: "id", Value: info.id}, {Name: "model", Value: info.model}} {
			if !rawjson.IsNull(m.Value) {
				round.Set(m.Name, m.Value)
			}
		}
		// null says that the sum has no figures of this round.
		round.Set("usage", json.RawMessage("null"))
		if info.usage != nil {
			round.Set("usage", info.usage)
		}
		round.Set("calls", strconv.AppendInt(nil, int64(info.calls), 10))
		rounds = append(rounds, round.Bytes())
	}
	o.Set("rounds", rawjson.AppendArray(nil, rounds))
	if len(c.ours.left) > 0 {
		var left []json.RawMessage
		for _, name := range c.ours.left {
			left = append(left, rawjson.Quote(name))
		}
		o.Set("left_out", rawjson.AppendArray(nil, left))
	}
	if c.request.wantMessages {
		o.Set("messages", rawjson.AppendArray(nil, c.history[c.from:]))
	}
	return o.Bytes()
}
