package chat

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// turn returns what has happened so far behind the message that the client gets.
func (c *Conversation) turn() *memory.Turn {
	return &memory.Turn{
		Hidden: c.dialogue.Hidden(), Text: c.seen(), Wrote: c.dialogue.Wrote, More: c.dialogue.More, Spent: c.dialogue.Spent,
	}
}

// keep stores a turn. That it cannot be kept costs the model its memory, and the
// client nothing else.
func (c *Conversation) keep(ctx context.Context, keys []string, t *memory.Turn) {
	if err := c.options.Memory.Keep(ctx, c.owner, keys, t); err != nil {
		c.options.Log.Error("a turn was not remembered", "error", err)
	}
}

// keepOpen records a message before the client gets its calls, or is asked something,
// where there is something that the client does not see.
func (c *Conversation) keepOpen(ctx context.Context, round *model.Round) {
	m := round.Message
	ours := slices.ContainsFunc(m.Calls, func(call memory.Call) bool { return call.Ours() })
	if c.options.Memory == nil || !ours && len(c.dialogue.Hidden()) == 0 {
		return
	}
	prefix := readID
	if c.dialogue.Wrote || m.Waits() {
		prefix = wroteID
	}
	var keys []string
	if m.Calls = slices.Clone(m.Calls); round.Mixed() {
		keys = c.nameCalls(m, prefix)
	}
	if m.Waits() {
		c.asks = prefix + rand.Text()[:22]
		keys = append(keys, askKey(c.asks))
		if d := c.visibleDigest(nil); !round.Mixed() && c.proves(d) {
			keys = append(keys, prefixKey(d)) // the client may go on without an answer
		}
	}
	if len(keys) == 0 {
		return
	}
	t := c.turn()
	kept := *m
	t.Open = &kept
	c.keep(ctx, keys, t)
}

// nameCalls gives the client's calls ids by which they are found again, and returns
// the keys.
func (c *Conversation) nameCalls(m *memory.Message, prefix string) (keys []string) {
	for i := range m.Calls {
		call := &m.Calls[i]
		if call.Ours() {
			continue
		}
		call.Client = prefix + rand.Text()[:22]
		if c.request.legacy {
			call.Client = fmt.Sprintf("call_legacy_%d", len(c.request.messages))
		}
		keys = append(keys, callKey(call.Client))
	}
	if !c.request.legacy {
		return keys
	}
	// Legacy clients send no ids back: the visible history has to do.
	if d := c.visibleDigest(m); c.proves(d) {
		return []string{prefixKey(d)}
	}
	return nil
}

// keepResumed records what became of the calls of an earlier turn, where the client
// keeps a message of it, with calls of its own.
func (c *Conversation) keepResumed(ctx context.Context) {
	var keys []string
	m := *c.pending.Message
	for i := range m.Calls {
		if !m.Calls[i].Ours() {
			keys = append(keys, callKey(m.Calls[i].Client))
		}
	}
	if len(keys) == 0 || c.options.Memory == nil {
		return
	}
	t := *c.resumed
	t.Open, t.Wrote, t.More, t.Spent = &m, c.dialogue.Wrote, c.dialogue.More, c.dialogue.Spent
	c.keep(ctx, keys, &t)
}

// remember records a turn that has ended: for the next one, or, when the client did
// not get its answer, for the request that it sends again.
func (c *Conversation) remember(err error) {
	if c.finished == nil {
		return
	}
	defer c.finished()
	ctx := context.Background() // it is worth more than the request, which may be over
	answered := c.pending != nil && slices.ContainsFunc(c.pending.Message.Calls, func(call memory.Call) bool { return call.Result != nil })
	if c.options.Memory == nil || len(c.dialogue.Hidden()) == 0 && !answered {
		return
	}
	c.rememberRequest(ctx, err, answered)
	if err != nil || c.last == nil || c.pending != nil {
		return
	}
	d := c.visibleDigest(nil)
	if !c.proves(d) {
		return
	}
	t := c.turn()
	t.Final = c.dialogue.Remember(c.last.Message).Bytes()
	if !c.identified && c.claimed(ctx, prefixKey(d), t) {
		t = &memory.Turn{Ambiguous: true}
	}
	c.keep(ctx, []string{prefixKey(d)}, t)
}

// claimed reports whether another turn ended with the same visible history, in a
// conversation that may be somebody else's.
func (c *Conversation) claimed(ctx context.Context, key string, t *memory.Turn) bool {
	found, err := c.options.Memory.Find(ctx, c.owner, []string{key})
	if err != nil || found[key] == nil {
		return false
	}
	other := found[key]
	return other.Ambiguous || !bytes.Equal(other.Final, t.Final) || !slices.EqualFunc(other.Hidden, t.Hidden, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// rememberRequest records what a request did that may have changed something, for
// the same request sent again. Once the client has its answer the record is
// dropped: a request like it is then a new one, and only one that came while this
// one ran still waits for what it did.
func (c *Conversation) rememberRequest(ctx context.Context, err error, answered bool) {
	key := requestKey(c.digest)
	if !c.dialogue.Wrote {
		return
	}
	t := c.turn()
	if err == nil && !c.options.Running.Waited(c.owner, c.digest) {
		t.Delivered = time.Now()
	}
	if answered {
		kept := *c.pending.Message
		t.Open, t.Undelivered = &kept, c.undelivered()
	}
	c.keep(ctx, []string{key}, t)
}

// undelivered returns what the client was to see of a message with calls of its own.
// Its documents are copies: those of a reply hold on to all of it.
func (c *Conversation) undelivered() *memory.Answer {
	r := c.pending.Reply
	a := &memory.Answer{
		ID: bytes.Clone(c.id), Created: bytes.Clone(c.created), Model: bytes.Clone(c.model),
		Text: c.visible, Rounds: c.rounds, Usage: bytes.Clone(c.usage), Logprobs: bytes.Clone(c.logprobs),
		Message: r.Message.Bytes(), Note: bytes.Clone(r.Note), Finish: r.Finish, Held: c.held.all(),
	}
	envelope, choice := r.Envelope.Clone(), r.Choice.Clone()
	envelope.Set("choices", null) // their place stays
	if choice.Get("message") != nil {
		choice.Set("message", null)
	}
	a.Envelope, a.Choice = envelope.Bytes(), choice.Bytes()
	return a
}

// repeat takes up a request again whose answer the client does not have.
func (c *Conversation) repeat(t *memory.Turn) {
	c.dialogue.AddHidden(t.Hidden...)
	c.dialogue.Wrote, c.dialogue.Spent = t.Wrote, t.Spent
	a := t.Undelivered
	if a == nil || t.Open == nil {
		return
	}
	r := &model.Reply{Note: a.Note, Finish: a.Finish}
	for to, from := range map[**rawjson.Object]json.RawMessage{&r.Envelope: a.Envelope, &r.Choice: a.Choice, &r.Message: a.Message} {
		o, err := rawjson.ParseObject(from)
		if err != nil {
			return // we made it
		}
		*to = o
	}
	message := *t.Open
	c.pending = &model.Round{Reply: r, Message: &message}
	c.id, c.created, c.model = a.ID, a.Created, a.Model
	c.rounds, c.usage, c.logprobs, c.held = slices.Clone(a.Rounds), a.Usage, a.Logprobs, held{chunks: a.Held}
	c.out.Begin(nil)
	if c.request.jsonFormat {
		return // the text is held with the message
	}
	c.told, c.visible = r, slices.Clone(a.Text)
	c.say(r, c.seen())
}
