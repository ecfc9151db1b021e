package responses

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// undelivered returns the items that the client was to get beside calls of its own and
// requests for approval: those are made anew where the request comes again, with other ids.
func (c *Conversation) undelivered() json.RawMessage {
	kept := slices.DeleteFunc(c.answer.finished(), func(item json.RawMessage) bool {
		o, err := rawjson.ParseObject(item)
		return err == nil && (model.IsCall(o) || slices.Contains(c.thread.Consents, stringOf(o, "id")))
	})
	return object(raw("output", array(kept...)), raw("text", array(quoted(c.seen)...)), raw("usage", c.usage))
}

// repeat takes up a request again whose answer the client does not have.
func (c *Conversation) repeat(lost *recall.Lost) {
	o, err := rawjson.ParseObject(lost.Answer)
	if err != nil {
		return // we made it
	}
	c.pending = &model.Round{Reply: &model.Reply{Message: &rawjson.Object{}}, Message: lost.Open}
	c.usage = o.Get("usage")
	texts, _ := rawjson.Elements(o.Get("text"))
	for _, each := range texts {
		s, _ := rawjson.String(each)
		c.seen = append(c.seen, s)
	}
	c.out.Begin(nil)
	c.answer.open()
	items, _ := rawjson.Elements(o.Get("output"))
	for _, item := range items {
		c.answer.whole(item)
	}
}

func quoted(texts []string) []json.RawMessage {
	all := make([]json.RawMessage, len(texts))
	for i, s := range texts {
		all[i] = rawjson.Quote(s)
	}
	return all
}
