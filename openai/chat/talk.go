package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// A Talk is a conversation of this program with a model, turn by turn. Each turn is
// a [dragoman.Conversation], to be driven by a [dragoman.Loop]:
//
//	talk := &chat.Talk{Client: &model.Client{BaseURL: url, Key: key}, Model: "gpt-5"}
//	err := loop.Run(ctx, talk.Say("What is the weather in Oslo?"))
//	fmt.Println(talk.Text())
//
// The Talk keeps the history, calls and results of tools included. It is used from
// one goroutine, one turn after the other. Set Client and Model.
type Talk struct {
	// Client is the model API.
	Client *model.Client
	// Model is the name of the model.
	Model string
	// Members are further members of each request, such as temperature; nil for
	// none. It is a JSON object. Its model wins over Model; messages, tools, tool_choice
	// and stream are the talk's own, whatever it says of them.
	Members json.RawMessage
	// System is the system message; empty for none. It may be changed between turns.
	System string
	// Guide is a text about results for the model; empty for none.
	Guide string
	// Shape says how the model shall read the results of a tool; nil means the
	// envelope with its defaults. Where its shapes have a shelf, the toolset must run
	// read_more: see [result.Shelf.Around].
	Shape func(*dragoman.Tool) *result.Shape
	// Offers keeps converted lists of tools between turns and talks; nil converts
	// anew each turn.
	Offers *model.Offers
	// Search says when the model searches for the tools that it needs in place of
	// being offered all. The toolset must then run find_tools: see
	// [model.Finder.Around]. The zero Search: never.
	Search model.Search
	// Can says what [dragoman.Loop.Ask] can be asked; zero: nothing.
	Can dragoman.Kind
	// Said is told the text of the answer piece by piece; nil tells nobody.
	Said func(text string)
	// Progress is told how a call gets on; nil tells nobody.
	Progress func(*dragoman.Tool, dragoman.Progress)

	messages []json.RawMessage
	left     []string
	withheld string
	text     string
	finish   string
	usage    json.RawMessage
	noUsage  bool // the API refuses to be asked for it
	more     bool // a result in the history was cut, so that the model may read more of it
}

// Text returns the text of the last turn's answer, or that in which the model refuses
// one; empty where it has none. [Talk.Finish] says whether it is the whole.
func (t *Talk) Text() string { return t.text }

// Finish returns why the last turn's answer ended, in the API's words: stop where it is
// whole, length or content_filter where it was cut off, and no call in it was made;
// empty where the API does not say, and for a turn that failed.
func (t *Talk) Finish() string { return t.finish }

// Usage returns the usage of all turns so far, summed; nil where the API gave none. It
// is asked for it, unless Members say something of stream_options.
func (t *Talk) Usage() json.RawMessage { return t.usage }

// Messages returns the history as the model knows it, but for the system message.
// [Talk.Resume] goes on from it.
func (t *Talk) Messages() []json.RawMessage { return slices.Clone(t.messages) }

// Resume puts messages that [Talk.Messages] returned in the place of the history, so that a
// program that keeps them goes on with a talk later, and elsewhere. What was cut in them can
// be read on as far as the shelf of the shapes still has it. It is for the time between turns.
// Where one is no JSON object, it returns an error and changes nothing.
func (t *Talk) Resume(messages []json.RawMessage) error {
	more := false
	for i, message := range messages {
		o, err := rawjson.ParseObject(message)
		if err != nil {
			return fmt.Errorf("message %d of a talk: %w", i, err)
		}
		role, _ := rawjson.String(o.Get("role"))
		more = more || role == "tool" && result.HasHandle((&model.Reply{Message: o}).Text())
	}
	t.messages, t.more = slices.Clone(messages), more
	return nil
}

// Left returns the names of the tools that the last turn was not offered because
// the model's dialect cannot take them, or no more of them.
func (t *Talk) Left() []string { return t.left }

// Withheld says why the last turn was offered no tools although there are some;
// empty where it was.
func (t *Talk) Withheld() string { return t.withheld }

// Say returns the turn that begins with a message of the user.
func (t *Talk) Say(message string) dragoman.Conversation {
	return &talkTurn{talk: t, message: message}
}

// talkTurn is one turn of a [Talk].
type talkTurn struct {
	talk     *Talk
	message  string
	dialogue *model.Dialogue
	round    *model.Round
	text     strings.Builder
	finish   string
	spoke    bool // a blank line is due before more text
}

// Offer implements [dragoman.Conversation].
func (c *talkTurn) Offer(list *dragoman.List) error {
	t := c.talk
	if t.Client == nil || t.Model == "" {
		return errors.New("a talk needs a Client and a Model")
	}
	request := &rawjson.Object{}
	request.Set("model", rawjson.Quote(t.Model))
	if t.Members != nil {
		more, err := rawjson.ParseObject(t.Members)
		if err != nil {
			return fmt.Errorf("Members of a talk: %w", err)
		}
		for _, m := range more.Members {
			request.Set(m.Name, m.Value)
		}
	}
	request.Set("stream", json.RawMessage("true"))
	c.dialogue = &model.Dialogue{Client: t.Client, Request: model.Request{Object: request}, Offers: t.Offers, Search: t.Search, Shape: t.Shape, Can: t.Can, Usage: !t.noUsage, More: t.more}
	if t.Progress != nil {
		c.dialogue.Progress = func(tool *dragoman.Tool) func(dragoman.Progress) {
			return func(p dragoman.Progress) { t.Progress(tool, p) }
		}
	}
	c.dialogue.Expect(len(t.messages) + 2)
	for _, message := range slices.Concat(t.system(), t.messages, []json.RawMessage{model.ChatMessage("user", rawjson.Quote(c.message))}) {
		o, err := rawjson.ParseObject(message)
		if err != nil {
			return err
		}
		c.dialogue.Add(message, o)
	}
	c.dialogue.Begin(t.Guide)
	c.dialogue.Offer(list)
	t.left, t.withheld = c.dialogue.Left(), ""
	return nil
}

func (t *Talk) system() []json.RawMessage {
	if t.System == "" {
		return nil
	}
	return []json.RawMessage{model.ChatMessage("system", rawjson.Quote(t.System))}
}

// Next implements [dragoman.Conversation].
func (c *talkTurn) Next(ctx context.Context, last bool) ([]dragoman.Call, error) {
	c.spoke = c.text.Len() > 0
	round, err := c.dialogue.Next(ctx, last, model.Listener{Chunk: c.chunk})
	if err != nil {
		return nil, err
	}
	c.talk.withheld, c.talk.noUsage = c.dialogue.Withheld, !c.dialogue.Usage
	c.talk.usage = model.AddUsage(c.talk.usage, round.Reply.Usage)
	if c.round = round; len(round.Run) == 0 {
		c.finish = round.Reply.Finish
		c.dialogue.AddHidden(answered(c.dialogue.Remember(round.Reply)))
	}
	return round.Run, nil
}

// answered returns the last message of a turn in a form in which it can stand in a
// history: APIs refuse one that says nothing, such as one whose calls were not made.
func answered(message *rawjson.Object) json.RawMessage {
	for _, name := range []string{"content", "refusal", "audio"} {
		if value := message.Get(name); !rawjson.IsNull(value) && string(value) != `""` && string(value) != "[]" {
			return message.Bytes()
		}
	}
	message.Set("content", rawjson.Quote("(no answer)"))
	return message.Bytes()
}

func (c *talkTurn) chunk(chunk *model.Chunk) error {
	if chunk.Preface {
		return nil
	}
	piece := chunk.Text()
	if piece == "" && !chunk.Same {
		_, _, delta := chunk.Parts()
		piece, _ = rawjson.String(delta.Get("refusal"))
	}
	if piece == "" {
		return nil
	}
	if c.spoke {
		c.spoke, piece = false, "\n\n"+piece
	}
	c.text.WriteString(piece)
	if c.talk.Said != nil {
		c.talk.Said(piece)
	}
	return nil
}

// Answer implements [dragoman.Conversation]. A call that asks and gets no answer
// from the loop is given up.
func (c *talkTurn) Answer(_ context.Context, results []dragoman.Result) error {
	if c.dialogue.Answer(c.round, results) {
		return nil
	}
	m := *c.round.Message
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		if call := &m.Calls[i]; call.Waiting != nil {
			call.Result, call.Waiting = c.dialogue.Unanswered(call), nil
		}
	}
	c.dialogue.AddHidden(model.Documents(&m)...)
	return nil
}

// Close implements [dragoman.Conversation]. A turn that failed is forgotten, unless
// something was done in it that the model has to know.
func (c *talkTurn) Close(err error) error {
	t := c.talk
	if t.text, t.finish = c.text.String(), c.finish; c.dialogue == nil || err != nil && !c.dialogue.Wrote {
		return nil
	}
	t.messages, t.more = withoutSystem(c.dialogue.History()), c.dialogue.More
	return nil
}

// withoutSystem drops the system message, which each turn puts in anew: its text and
// the guide may change.
func withoutSystem(messages []json.RawMessage) []json.RawMessage {
	if len(messages) == 0 {
		return messages
	}
	first, err := rawjson.ParseObject(messages[0])
	if err != nil {
		return messages
	}
	if role, _ := rawjson.String(first.Get("role")); role == "system" {
		return messages[1:]
	}
	return messages
}

var _ dragoman.Conversation = (*talkTurn)(nil)
