package messages

import (
	"context"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A result of a server has texts alone in this API, so a client that sends it back brings
// no pictures. They are remembered for it, by the part of the ids that all calls of one
// message have in common.

func picturesKey(tag string) string { return "pictures " + tag }

// keepPictures remembers the pictures of a message's results.
func (c *Conversation) keepPictures(ctx context.Context, m *memory.Message) {
	tag := ""
	for _, id := range c.shownAs {
		tag = tagOf(id)
	}
	pictures := m.After
	if len(pictures) == 0 {
		pictures = inResults(m)
	}
	if tag == "" || len(pictures) == 0 || c.options.Memory == nil {
		return
	}
	if err := c.options.Memory.Keep(ctx, c.thread.Request.Owner, []string{picturesKey(tag)}, &memory.Turn{Hidden: pictures}); err != nil && ctx.Err() == nil { // else the client has left
		c.options.Log.Error("pictures were not remembered", "error", err)
	}
}

// inResults returns a message with the pictures that stand in tool messages; none where
// there are no pictures.
func inResults(m *memory.Message) []json.RawMessage {
	pictures := said{}
	pictures.text("The pictures that the tools returned, in order:")
	for i := range m.Calls {
		o, err := rawjson.ParseObject(m.Calls[i].Result)
		if err != nil || !m.Calls[i].Ours() {
			continue
		}
		parts, _ := rawjson.Elements(o.Get("content"))
		for _, part := range parts {
			if p, err := rawjson.ParseObject(part); err == nil && p.Get("text") == nil {
				pictures.part(string(part))
			}
		}
	}
	if !pictures.other {
		return nil
	}
	return []json.RawMessage{members("role", "user", "content", pictures.content()).Bytes()}
}
