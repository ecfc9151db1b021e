package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// Ids of the client's calls, where we keep something that belongs to them. The
// prefix says whether a call ran that may have changed something: should the
// record be lost, nothing may run twice.
const (
	readID  = "dragoman0"
	wroteID = "dragoman1"
)

// restore makes the history of the request whole.
func (c *Chat) restore(ctx context.Context) error {
	turns := c.options.Turns
	retry := "request " + c.requestDigest()
	running, end := turns.begin(c.options.Caller, retry)
	for running != nil && c.options.Retried {
		// The client gave up on the first run of this request: let it end.
		select {
		case <-running:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		running, end = turns.begin(c.options.Caller, retry)
	}
	c.finished = end

	messages := c.request.messages
	c.history = make([]json.RawMessage, 0, len(messages)+8)
	prefix := sha256.New()
	digests := !turns.empty(c.options.Caller)
	for i := 0; i < len(messages); i++ {
		o, err := rawjson.ParseObject(messages[i])
		if err != nil {
			return Invalid(fmt.Sprintf("messages.%d", i), "The message is malformed.")
		}
		role, _ := rawjson.String(o.Get("role"))
		if digests {
			digestMessage(prefix, o)
		}
		if role != "assistant" {
			c.history = append(c.history, c.fitHistory(messages[i], o))
			continue
		}
		t, err := c.findTurn(o, messages[i+1:], prefix, digests)
		if err != nil {
			return err
		}
		c.more = c.more || t != nil && t.more
		switch {
		case t == nil:
			c.history = append(c.history, c.fitHistory(messages[i], o))
		case t.open == nil:
			c.history = append(append(c.history, t.hidden...), t.final)
		default:
			for i+1 < len(messages) {
				next, err := rawjson.ParseObject(messages[i+1])
				if err != nil || !isTool(next) {
					break
				}
				if digests {
					digestMessage(prefix, next)
				}
				i++
			}
			c.reopen(t, o, messages)
			c.wrote = c.wrote || t.wrote && i >= len(messages)-1
		}
	}
	c.history = withGuide(c.history, c.options.Guide)
	c.from = len(c.history)
	if c.options.Retried {
		if t := turns.find(c.options.Caller, retry); t != nil {
			c.history = append(c.history, t.hidden...)
			c.wrote = t.wrote
			c.repeat(t)
		}
	}
	return nil
}

// A handover is a mixed message whose calls of ours were made, and what the
// client was to see of it: what a retry of the request gets.
type handover struct {
	exchange           *exchange
	visible            []string
	rounds             []roundInfo
	usage, logprobs    json.RawMessage
	id, created, model json.RawMessage
}

// repeat takes up a message again that was handed over to the client, which does
// not have it.
func (c *Chat) repeat(t *turn) {
	h := t.handover
	if h == nil {
		return
	}
	x := *h.exchange
	x.calls = slices.Clone(x.calls)
	c.pending, c.rounds, c.usage, c.logprobs = &x, slices.Clone(h.rounds), h.usage, h.logprobs
	c.id, c.created, c.model = h.id, h.created, h.model
	c.out.begin(nil)
	if c.request.jsonFormat {
		return // the text is held with the message
	}
	c.visible = slices.Clone(h.visible)
	if text := c.seen(); text != "" && c.request.Stream {
		choice := x.reply.choice.Clone()
		choice.Delete("message")
		choice.Delete("logprobs")
		delta := &rawjson.Object{Members: []rawjson.Member{{Name: "content", Value: rawjson.Quote(text)}}}
		_ = c.forward(x.reply, x.reply.envelope.Clone(), choice, delta)
	}
}

func isTool(o *rawjson.Object) bool {
	role, _ := rawjson.String(o.Get("role"))
	return role == "tool"
}

// findTurn returns what we keep of the turn that ended with an assistant message;
// nil when that is nothing. rest are the messages behind it: a turn that is lost
// and still open must not go on, since nobody knows what to do again; one that
// ended long ago has only lost the model's memory of its tools.
func (c *Chat) findTurn(o *rawjson.Object, rest []json.RawMessage, prefix hash.Hash, digests bool) (*turn, error) {
	lost := false
	for _, id := range callIDs(o) {
		if !strings.HasPrefix(id, readID) && !strings.HasPrefix(id, wroteID) {
			continue
		}
		if t := c.options.Turns.find(c.options.Caller, "call "+id); t != nil {
			return t, nil
		}
		lost = lost || strings.HasPrefix(id, wroteID)
	}
	if lost && onlyTools(rest) {
		return nil, &Error{
			Status: http.StatusBadRequest, Type: TypeInvalidRequest, Code: CodeTurnExpired, Param: "messages",
			Message: "What tools did in this turn is not remembered any more, and they may have changed something. Start the turn anew from its user message.",
		}
	}
	if !digests {
		return nil, nil
	}
	return c.options.Turns.find(c.options.Caller, "prefix "+string(prefix.Sum(nil))), nil
}

func onlyTools(messages []json.RawMessage) bool {
	for _, m := range messages {
		if o, err := rawjson.ParseObject(m); err != nil || !isTool(o) {
			return false
		}
	}
	return true
}

func callIDs(o *rawjson.Object) []string {
	calls, err := rawjson.Elements(o.Get("tool_calls"))
	if err != nil {
		return nil
	}
	var ids []string
	for _, raw := range calls {
		if call, err := rawjson.ParseObject(raw); err == nil {
			id, _ := rawjson.String(call.Get("id"))
			ids = append(ids, id)
		}
	}
	return ids
}

// reopen puts a turn with an open exchange back in its place. What the client
// changed counts: calls it dropped stay dropped, text and arguments it edited
// replace the model's. Results that it did not send are not invented.
func (c *Chat) reopen(t *turn, visible *rawjson.Object, messages []json.RawMessage) {
	open := t.open
	hidden := t.hidden
	message, _ := rawjson.ParseObject(open.message)
	if text := contentText(visible.Get("content")); text != open.text {
		hidden = withoutText(hidden)
		message.Set("content", visible.Get("content"))
		if visible.Get("content") == nil {
			message.Set("content", json.RawMessage("null"))
		}
	}
	kept := map[string]*rawjson.Object{}
	if raw, err := rawjson.Elements(visible.Get("tool_calls")); err == nil {
		for _, r := range raw {
			if call, err := rawjson.ParseObject(r); err == nil {
				id, _ := rawjson.String(call.Get("id"))
				kept[id] = call
			}
		}
	}
	results := toolResults(messages)
	var calls, tools []json.RawMessage
	for _, call := range open.calls {
		if call.client == "" {
			calls = append(calls, call.raw)
			tools = append(tools, open.tools[call.id])
			continue
		}
		mine, ok := kept[call.client]
		if !ok {
			continue
		}
		calls = append(calls, call.edited(mine))
		if result, ok := results[call.client]; ok {
			o, _ := rawjson.ParseObject(result)
			o.Set("tool_call_id", rawjson.Quote(call.id))
			tools = append(tools, o.Bytes())
		}
	}
	message.Delete("tool_calls")
	if len(calls) > 0 {
		message.Set("tool_calls", rawjson.AppendArray(nil, calls))
	}
	c.history = append(c.history, hidden...)
	c.history = append(c.history, message.Bytes())
	c.history = append(c.history, tools...)
	c.history = append(c.history, open.after...)
}

// edited returns the upstream's form of a call as the client has it now.
func (call *openCall) edited(now *rawjson.Object) json.RawMessage {
	for _, kind := range []string{"function", "custom"} {
		inner, err := rawjson.ParseObject(now.Get(kind))
		if err != nil {
			continue
		}
		name, _ := rawjson.String(inner.Get("name"))
		args := string(argumentText(inner.Get("arguments"))) + string(argumentText(inner.Get("input")))
		if name == call.name && args == call.args {
			return call.raw
		}
		o := now.Clone()
		o.Set("id", rawjson.Quote(call.id))
		return o.Bytes()
	}
	return call.raw
}

// toolResults returns the tool messages by the ids that they answer.
func toolResults(messages []json.RawMessage) map[string]json.RawMessage {
	results := map[string]json.RawMessage{}
	for _, m := range messages {
		if o, err := rawjson.ParseObject(m); err == nil && isTool(o) {
			if id, ok := rawjson.String(o.Get("tool_call_id")); ok {
				results[id] = m
			}
		}
	}
	return results
}

func withoutText(messages []json.RawMessage) []json.RawMessage {
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		out[i] = m
		if o, err := rawjson.ParseObject(m); err == nil && o.Get("tool_calls") != nil {
			o.Set("content", json.RawMessage("null"))
			out[i] = o.Bytes()
		}
	}
	return out
}

// keepExchange records an exchange before the client gets its calls, where there
// is something that the client does not see.
func (c *Chat) keepExchange(x *exchange) {
	clients := 0
	for _, call := range x.calls {
		if call.run < 0 {
			clients++
		}
	}
	if clients == 0 || c.options.Turns == nil || len(x.run) == 0 && len(c.history) == c.from {
		return
	}
	prefix := readID
	if c.wrote {
		prefix = wroteID
	}
	open := &openExchange{text: c.seen(), message: x.message.Bytes(), tools: map[string]json.RawMessage{}, after: x.after}
	t := &turn{hidden: append([]json.RawMessage(nil), c.history[c.from:]...), open: open, wrote: c.wrote, more: c.more}
	n := 0
	for i := range x.calls {
		call := &x.calls[i]
		kept := openCall{id: call.id, raw: call.raw, name: call.call.name, args: string(call.call.args)}
		if call.run < 0 {
			call.client = prefix + rand.Text()[:22]
			if c.request.legacy {
				call.client = fmt.Sprintf("call_legacy_%d", len(c.request.messages))
			}
			kept.client = call.client
			t.keys = append(t.keys, "call "+call.client)
		} else {
			open.tools[call.id] = x.tools[n]
			n++
		}
		open.calls = append(open.calls, kept)
	}
	if c.request.legacy {
		// Legacy clients send no ids back: the visible history has to do.
		t.keys = []string{"prefix " + c.visibleDigest(x)}
	}
	c.options.Turns.keep(c.options.Caller, t)
}

// remember records a turn that has ended: for the next one, or, when it ended
// early, for the client that tries again.
func (c *Chat) remember(err error) {
	if c.finished != nil {
		defer c.finished()
	}
	turns := c.options.Turns
	open := c.pending != nil && len(c.pending.tools) > 0 // with results of ours
	if turns == nil || c.history == nil || len(c.history) == c.from && !open {
		return
	}
	hidden := append([]json.RawMessage(nil), c.history[c.from:]...)
	if c.wrote {
		t := &turn{keys: []string{"request " + c.requestDigest()}, hidden: hidden, wrote: true, more: c.more}
		if open {
			t.handover = &handover{
				exchange: c.pending, visible: c.visible, rounds: c.rounds, usage: c.usage, logprobs: c.logprobs,
				id: c.id, created: c.created, model: c.model,
			}
		}
		turns.keep(c.options.Caller, t)
	}
	if err == nil && c.last != nil && (c.pending == nil || len(c.pending.calls) == 0) {
		final := c.forHistory(c.last.message)
		turns.keep(c.options.Caller, &turn{
			keys: []string{"prefix " + c.visibleDigest(nil)}, hidden: hidden, final: final.Bytes(), wrote: c.wrote, more: c.more,
		})
	}
}

func (c *Chat) requestDigest() string {
	h := sha256.New()
	for _, m := range c.request.object.Members {
		writePart(h, []byte(m.Name))
		writePart(h, m.Value)
	}
	return string(h.Sum(nil))
}

// visibleDigest is the digest of the history as the client will send it next
// time: its own messages and our answer.
func (c *Chat) visibleDigest(x *exchange) string {
	h := sha256.New()
	for _, m := range c.request.messages {
		if o, err := rawjson.ParseObject(m); err == nil {
			digestMessage(h, o)
		}
	}
	answer := rawjson.Object{}
	answer.Set("role", rawjson.Quote("assistant"))
	answer.Set("content", rawjson.Quote(c.seen()))
	if x != nil {
		var calls []json.RawMessage
		for _, call := range x.calls {
			if call.run < 0 {
				calls = append(calls, call.call.raw(call.client, call.call.name, string(call.call.args)))
			}
		}
		answer.Set("tool_calls", rawjson.AppendArray(nil, calls))
	}
	digestMessage(h, &answer)
	return string(h.Sum(nil))
}

// digestMessage adds what matters of a message to a digest. Clients send
// messages back with members dropped, added, null or in another order; what the
// model reads of them stays the same.
func digestMessage(h hash.Hash, o *rawjson.Object) {
	role, _ := rawjson.String(o.Get("role"))
	id, _ := rawjson.String(o.Get("tool_call_id"))
	writePart(h, []byte(role))
	writePart(h, []byte(id))
	writePart(h, []byte(contentText(o.Get("content"))))
	calls, _ := rawjson.Elements(o.Get("tool_calls"))
	for _, raw := range calls {
		call, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		id, _ := rawjson.String(call.Get("id"))
		writePart(h, []byte(id))
		for _, kind := range []string{"function", "custom"} {
			if inner, err := rawjson.ParseObject(call.Get(kind)); err == nil {
				name, _ := rawjson.String(inner.Get("name"))
				writePart(h, []byte(name))
				writePart(h, argumentText(inner.Get("arguments")))
				writePart(h, argumentText(inner.Get("input")))
			}
		}
	}
	writePart(h, []byte{byte(len(calls))})
}

func writePart(h hash.Hash, part []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
	h.Write(n[:])
	h.Write(part)
}

// contentText returns a message's content as text; content of several parts, or
// of parts that are no text, in its raw form.
func contentText(raw json.RawMessage) string {
	if text, ok := rawjson.String(raw); ok {
		return text
	}
	if rawjson.IsNull(raw) {
		return ""
	}
	if parts, err := rawjson.Elements(raw); err == nil && len(parts) == 1 {
		if part, err := rawjson.ParseObject(parts[0]); err == nil {
			if text, ok := rawjson.String(part.Get("text")); ok {
				return text
			}
		}
	}
	return string(raw)
}
