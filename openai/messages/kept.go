package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A client that sees calls of servers and asked for no thoughts has no place for what an API
// wants back beside them. It is remembered for it, by the part of the ids that all calls of one
// message have in common, as pictures are.

func restKey(tag string) string { return "rest " + tag }

// keepRest remembers what the upstream wants back of a message that the client has no place for.
func (c *Conversation) keepRest(ctx context.Context, round *model.Round, tag string, calls map[string]json.RawMessage) {
	if c.request.thinks || c.options.Memory == nil || !c.unseen(round) && !c.dialogue.Unseen(round.Message.Message) {
		return
	}
	document, err := json.Marshal(restOf(c.dialogue.Remember(round.Reply), calls))
	if err == nil {
		err = c.options.Memory.Keep(ctx, c.thread.Request.Owner, []string{restKey(tag)}, &memory.Turn{Hidden: []json.RawMessage{document}})
	}
	if err != nil && ctx.Err() == nil { // else the client has left
		c.options.Log.Error("what the model wants back was not remembered", "error", err)
	}
}

// putKept puts what is remembered where it belongs: pictures behind results, and what an
// upstream wants back into its messages.
func (c *Conversation) putKept(ctx context.Context) error {
	if len(c.rounds)+len(c.spoken) == 0 || c.options.Memory == nil || !c.options.Memory.Any(ctx, c.thread.Request.Owner) {
		return nil
	}
	var keys []string
	for tag := range c.rounds {
		keys = append(keys, picturesKey(tag))
	}
	for tag := range c.spoken {
		keys = append(keys, restKey(tag))
	}
	turns, err := c.options.Memory.Find(ctx, c.thread.Request.Owner, keys)
	if err != nil {
		return fmt.Errorf("finding what belongs to calls: %w", err)
	}
	messages, whole := c.thread.Request.Messages, c.thread.Request.Whole
	for tag, at := range c.rounds {
		turn := turns[picturesKey(tag)]
		if turn == nil {
			continue
		}
		for at+1 < len(messages) && isResult(messages[at+1]) { // of the client's own calls
			at++
		}
		whole[at] = append([]json.RawMessage{messages[at]}, turn.Hidden...)
	}
	for tag, at := range c.spoken {
		if turn := turns[restKey(tag)]; turn != nil && len(turn.Hidden) == 1 && whole[at] == nil {
			whole[at] = []json.RawMessage{withRest(messages[at], turn.Hidden[0])}
		}
	}
	return nil
}

// withRest returns a message of the model with what its upstream wants back.
func withRest(message, document json.RawMessage) json.RawMessage {
	var r rest
	o, err := rawjson.ParseObject(message)
	if err != nil || json.Unmarshal(document, &r) != nil {
		return message // we made them
	}
	for _, name := range slices.Sorted(maps.Keys(r.Members)) {
		o.Set(name, r.Members[name])
	}
	calls, _ := rawjson.Elements(o.Get("tool_calls"))
	for i, call := range calls {
		id, _ := rawjson.String(rawjson.Find(call, "id"))
		if was, err := rawjson.ParseObject(r.Calls[id]); err == nil {
			calls[i] = overCall(was, call)
		}
	}
	if len(calls) > 0 {
		o.Set("tool_calls", rawjson.AppendArray(nil, calls))
	}
	return o.Bytes()
}

func isResult(message json.RawMessage) bool {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return false
	}
	role, _ := rawjson.String(o.Get("role"))
	return role == "tool"
}
