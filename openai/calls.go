package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// toolCall is one tool call of a model's message.
type toolCall struct {
	id, name string
	custom   bool   // type custom: the input is text
	args     []byte // arguments, or the input of a custom call
	object   *rawjson.Object
	index    int
	minted   bool // the upstream gave no usable id
}

// raw returns the call as an entry of tool_calls with the given id and
// arguments, and with everything unknown that the upstream sent along, such as
// Gemini's thought signatures.
func (c *toolCall) raw(id, name, args string) json.RawMessage {
	kind, field := "function", "arguments"
	if c.custom {
		kind, field = "custom", "input"
	}
	inner := &rawjson.Object{}
	if have, err := rawjson.ParseObject(c.object.Get(kind)); err == nil {
		inner = have
	}
	inner.Set("name", rawjson.Quote(name))
	inner.Set(field, rawjson.Quote(args))
	o := c.object.Clone()
	o.Delete("index")
	o.Set("id", rawjson.Quote(id))
	o.Set("type", rawjson.Quote(kind))
	o.Set(kind, inner.Bytes())
	return o.Bytes()
}

// assembler puts tool calls together from the deltas of a stream, or from a
// whole message. Providers deviate in every way that the format allows and in
// some that it does not.
type assembler struct {
	calls []*toolCall
}

// add takes one entry of tool_calls.
func (a *assembler) add(raw json.RawMessage) error {
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return err
	}
	kind := "function"
	if o.Get("custom") != nil {
		kind = "custom"
	}
	inner, err := rawjson.ParseObject(o.Get(kind))
	if err != nil {
		inner = &rawjson.Object{}
	}
	id, _ := rawjson.String(o.Get("id"))
	name, _ := rawjson.String(inner.Get("name"))
	fragment := argumentText(inner.Get("arguments"))
	if kind == "custom" {
		fragment = argumentText(inner.Get("input"))
	}
	index, hasIndex := rawjson.Int(o.Get("index"))
	c := a.find(index, hasIndex, id, name, fragment)
	if c == nil {
		c = &toolCall{id: id, name: name, custom: kind == "custom", object: &rawjson.Object{}, index: index}
		if !hasIndex {
			c.index = len(a.calls)
		}
		if id == "" {
			c.id, c.minted = mintID("call_"), true
		}
		if name == "" && len(a.calls) > 0 {
			// A call that continues no other and has no name of its own repeats
			// the name of the one before.
			c.name = a.calls[len(a.calls)-1].name
		}
		a.calls = append(a.calls, c)
	} else {
		c.extendName(name)
	}
	c.args = append(c.args, fragment...)
	// The rest is kept for the history; what is assembled here is not.
	for _, member := range []string{"id", "index", "type"} {
		o.Delete(member)
	}
	inner.Delete("name")
	inner.Delete("arguments")
	inner.Delete("input")
	if len(inner.Members) > 0 {
		o.Set(kind, inner.Bytes())
	} else {
		o.Delete(kind)
	}
	merge(c.object, o)
	return nil
}

// find returns the call that a delta continues; nil when it begins a new one.
func (a *assembler) find(index int, hasIndex bool, id, name string, fragment []byte) *toolCall {
	var c *toolCall
	for i := len(a.calls) - 1; i >= 0 && c == nil; i-- {
		switch have := a.calls[i]; {
		case id != "" && have.id == id:
			// The id says it, whatever the index says.
			c = have
		case hasIndex && have.index == index && (id == "" || have.minted || name == ""):
			// An id that nobody has seen is no new call without a name: some
			// engines make up another id for each piece.
			c = have
		case !hasIndex && id == "" && (name == "" || name == have.name):
			c = have
		}
	}
	if c == nil {
		return nil
	}
	if len(c.args) > 0 && name != "" && name != c.name && c.id != id {
		return nil // names do not go on behind arguments
	}
	if len(fragment) == 0 {
		return c
	}
	// Some gateways put the next call's arguments behind the complete arguments
	// of the one before; "{}" alone is a placeholder that the real ones replace.
	if trimmed := bytes.TrimSpace(fragment); len(trimmed) > 0 && trimmed[0] == '{' && complete(c.args) {
		if string(bytes.TrimSpace(c.args)) != "{}" {
			return nil
		}
		c.args = nil
	}
	return c
}

// extendName adds a piece of a name; some providers repeat the whole name in
// every delta instead.
func (c *toolCall) extendName(piece string) {
	if piece != "" && piece != c.name {
		c.name += piece
	}
}

// complete reports whether args is one whole JSON object.
func complete(args []byte) bool {
	trimmed := bytes.TrimSpace(args)
	return len(trimmed) > 1 && trimmed[0] == '{' && trimmed[len(trimmed)-1] == '}' && json.Valid(trimmed)
}

// argumentText returns arguments as text: they should be a string, but TGI and
// others send the object itself.
func argumentText(raw json.RawMessage) []byte {
	if rawjson.IsNull(raw) {
		return nil
	}
	if s, ok := rawjson.String(raw); ok {
		return []byte(s)
	}
	return raw
}

// mintID returns a new random id. OpenAI takes ids of up to 40 characters.
func mintID(prefix string) string {
	return prefix + rand.Text()[:24]
}
