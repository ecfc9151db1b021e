package model

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A Call is one tool call of a model's message.
type Call struct {
	// ID is the upstream's id of the call, or one that we made where it gave none.
	ID string
	// Name is the name that the model used.
	Name string
	// Custom reports that it is a call of a custom tool, whose input is free text.
	Custom bool
	// Arguments are the arguments as the model wrote them, whole or not, or the
	// input of a custom call.
	Arguments []byte

	client bool          // it is of a kind that is the client's in any case
	extra  growingObject // what else the upstream sent along
	index  int
	minted bool // the upstream gave no usable id
	shape  shape
}

// Raw returns the call as an entry of tool_calls with the given id and arguments,
// and with everything unknown that the upstream sent along, such as Gemini's
// thought signatures.
func (c *Call) Raw(id, name, args string) json.RawMessage {
	kind, field := "function", "arguments"
	if c.Custom {
		kind, field = "custom", "input"
	}
	o := c.extra.result()
	inner := &rawjson.Object{}
	if have, err := rawjson.ParseObject(o.Get(kind)); err == nil {
		inner = have
	}
	inner.Set("name", rawjson.Quote(name))
	inner.Set(field, rawjson.Quote(args))
	o.Delete("index")
	o.Set("id", rawjson.Quote(id))
	o.Set("type", rawjson.Quote(kind))
	o.Set(kind, inner.Bytes())
	return o.Bytes()
}

// maxCalls is the number of calls that one message may have.
const maxCalls = 256

// callCost is what a call costs beside its own bytes.
const callCost = 512

// assembler puts tool calls together from the deltas of a stream, or from a
// whole message. Providers deviate in every way that the format allows and in
// some that it does not.
type assembler struct {
	calls []*Call
	cost  int // about how many bytes are held
}

// add takes one entry of tool_calls.
func (a *assembler) add(raw json.RawMessage) error {
	a.cost += len(raw)
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
		if len(a.calls) == maxCalls {
			return fmt.Errorf("more than %d calls", maxCalls)
		}
		if !hasIndex {
			index = len(a.calls)
		}
		c = a.begin(&Call{ID: id, Name: name, Custom: kind == "custom", index: index})
	} else {
		c.extendName(name)
	}
	c.Arguments = append(c.Arguments, fragment...)
	c.shape.read(fragment)
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
	a.cost += c.extra.merge(o)
	return nil
}

// begin adds a new call.
func (a *assembler) begin(c *Call) *Call {
	if c.ID == "" {
		c.ID, c.minted = mintID("call_"), true
	}
	if c.Name == "" && len(a.calls) > 0 {
		// A call that continues no other and has no name of its own repeats the name
		// of the one before.
		c.Name = a.calls[len(a.calls)-1].Name
	}
	a.calls = append(a.calls, c)
	a.cost += callCost
	return c
}

// find returns the call that a delta continues; nil when it begins a new one.
func (a *assembler) find(index int, hasIndex bool, id, name string, fragment []byte) *Call {
	var c *Call
	for i := len(a.calls) - 1; i >= 0 && c == nil; i-- {
		switch have := a.calls[i]; {
		case id != "" && have.ID == id && !(hasIndex && have.index != index && name != "" && name != have.Name):
			// The id says it, whatever the index says. Some engines give all calls of a
			// message the same: then another index and another name do.
			c = have
		case hasIndex && have.index == index && (id == "" || have.minted || name == ""):
			// An id that nobody has seen is no new call without a name: some
			// engines make up another id for each piece.
			c = have
		case !hasIndex && id == "" && (name == "" || name == have.Name):
			c = have
		}
	}
	if c == nil {
		return nil
	}
	if len(c.Arguments) > 0 && name != "" && name != c.Name {
		return nil // names do not go on behind arguments
	}
	if len(fragment) == 0 {
		return c
	}
	// Some gateways put the next call's arguments behind the complete arguments
	// of the one before; "{}" alone is a placeholder that the real ones replace.
	if trimmed := bytes.TrimSpace(fragment); len(trimmed) > 0 && trimmed[0] == '{' && c.shape.closed() && complete(c.Arguments) {
		if string(bytes.TrimSpace(c.Arguments)) != "{}" {
			return nil
		}
		c.Arguments, c.shape = nil, shape{}
	}
	return c
}

// extendName adds a piece of a name; some providers repeat the whole name in
// every delta instead.
func (c *Call) extendName(piece string) {
	if piece != "" && piece != c.Name {
		c.Name += piece
	}
}

// complete reports whether args is one whole JSON object.
func complete(args []byte) bool {
	trimmed := bytes.TrimSpace(args)
	return len(trimmed) > 1 && trimmed[0] == '{' && trimmed[len(trimmed)-1] == '}' && rawjson.Valid(trimmed)
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

// A shape follows the braces of arguments that come in pieces, so that asking
// whether they are complete costs nothing most of the time.
type shape struct {
	depth           int
	text, escaped   bool
	opened, trailed bool // something began; something stands behind its end
}

func (s *shape) read(fragment []byte) {
	for _, b := range fragment {
		switch {
		case s.escaped:
			s.escaped = false
		case s.text:
			s.escaped = b == '\\'
			s.text = b != '"'
		case b == ' ' || b == '\t' || b == '\n' || b == '\r':
		case s.opened && s.depth == 0:
			s.trailed = true
		case b == '"':
			s.text = true
		case b == '{' || b == '[':
			s.opened = true
			s.depth++
		case b == '}' || b == ']':
			s.depth--
		}
	}
}

// closed reports whether what was opened was closed and nothing follows.
func (s *shape) closed() bool { return s.opened && s.depth == 0 && !s.text && !s.trailed }

// mintID returns a new random id. OpenAI takes ids of up to 40 characters.
func mintID(prefix string) string {
	return prefix + rand.Text()[:24]
}
