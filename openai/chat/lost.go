package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// An undelivered answer is what a client was to see of a turn beside its calls, as it is
// kept for the request when it is sent again.
type undelivered struct {
	// ID, Created and Model are the identity of the completion.
	ID      json.RawMessage `json:"id,omitempty"`
	Created json.RawMessage `json:"created,omitempty"`
	Model   json.RawMessage `json:"model,omitempty"`
	// Text is the text of each round that the client may see, and Cited what that cites.
	Text  []string          `json:"text,omitempty"`
	Cited []json.RawMessage `json:"cited,omitempty"`
	// Rounds are the rounds as the answer tells of them.
	Rounds []json.RawMessage `json:"rounds,omitempty"`
	// Usage and Logprobs are the sums over all rounds.
	Usage    json.RawMessage `json:"usage,omitempty"`
	Logprobs json.RawMessage `json:"logprobs,omitempty"`
	// Envelope, Choice, Message and Note are the last reply: its document without
	// choices, its choice, its message, and the upstream's own dragoman member.
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Choice   json.RawMessage `json:"choice,omitempty"`
	Message  json.RawMessage `json:"message,omitempty"`
	Note     json.RawMessage `json:"note,omitempty"`
	// Finish is the last reply's finish_reason, and Held what a stream was still
	// to get of it.
	Finish string            `json:"finish,omitempty"`
	Held   []json.RawMessage `json:"held,omitempty"`
}

// undelivered returns what the client was to see of a message with calls of its own.
func (c *Conversation) undelivered() json.RawMessage {
	r := c.pending.Reply
	envelope, choice := r.Envelope.Clone(), r.Choice.Clone()
	envelope.Set("choices", null) // their place stays
	if choice.Get("message") != nil {
		choice.Set("message", null)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(undelivered{
		ID: c.id, Created: c.created, Model: c.model,
		Text: c.visible, Cited: c.cited, Rounds: c.rounds, Usage: c.usage, Logprobs: c.logprobs,
		Envelope: envelope.Bytes(), Choice: choice.Bytes(), Message: r.Message.Bytes(), Note: r.Note,
		Finish: r.Finish, Held: c.held.all(),
	})
	if err != nil {
		c.options.Log.Error("an answer was not kept", "error", err)
		return nil
	}
	return b.Bytes()
}

// repeat takes up a request again whose answer the client does not have.
func (c *Conversation) repeat(lost *recall.Lost) {
	var a undelivered
	if json.Unmarshal(lost.Answer, &a) != nil {
		return // we made it
	}
	r := &model.Reply{Note: a.Note, Finish: a.Finish}
	for to, from := range map[**rawjson.Object]json.RawMessage{&r.Envelope: a.Envelope, &r.Choice: a.Choice, &r.Message: a.Message} {
		o, err := rawjson.ParseObject(from)
		if err != nil {
			return // we made it
		}
		*to = o
	}
	c.pending = &model.Round{Reply: r, Message: lost.Open}
	c.id, c.created, c.model = a.ID, a.Created, a.Model
	c.rounds, c.usage, c.logprobs, c.held = a.Rounds, a.Usage, a.Logprobs, held{chunks: a.Held}
	c.out.Begin(nil)
	if c.request.jsonFormat {
		return // the text is held with the message
	}
	c.say(r, strings.Join(a.Text, betweenRounds), a.Cited...)
	c.told, c.visible, c.cited = r, slices.Clone(a.Text), a.Cited
}
