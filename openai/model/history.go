package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Expect makes room for so many messages, and for some that are ours.
func (d *Dialogue) Expect(messages int) { d.history = slices.Grow(d.history, messages+4) }

// Add puts a message of the client's behind the history, in a form that the dialect
// takes. o is the message taken apart; it may be changed.
func (d *Dialogue) Add(message json.RawMessage, o *rawjson.Object) {
	dropped := d.Request.Native == nil && o.Delete(itemsMember) // which is ours to say
	if d.fit(o) || dropped {
		message = o.Bytes()
	}
	d.push(message, o)
}

// AddHidden puts messages behind the history that the client does not see. They may
// have been said to another upstream, of another dialect.
func (d *Dialogue) AddHidden(messages ...json.RawMessage) {
	for _, message := range messages {
		o, err := rawjson.ParseObject(message)
		if err != nil {
			continue // we made it
		}
		d.notePictures(o)
		dropped := d.DropReasoning(o)
		if d.Client.API != ResponsesAPI && o.Delete(itemsMember) {
			dropped = true
		}
		if d.fit(o) || dropped {
			message = o.Bytes()
		}
		d.push(message, o)
	}
}

// Begin ends the part of the history that the client knows. The guide is put into
// its first system message unless one is there already.
func (d *Dialogue) Begin(guide string) {
	d.showMoved()
	d.history = withGuide(d.history, guide)
	d.from = len(d.history)
}

// Shared returns the messages of the client's from within the history, where they went into
// it as they are: all but the first, which the guide may stand in. A list of a thousand is 24
// KiB, and there is one of it then. Where they did not, messages itself comes back. It may be
// asked before the model is, and what it returns must not be changed.
func (d *Dialogue) Shared(messages []json.RawMessage) []json.RawMessage {
	from := d.from - len(messages)
	if from < 0 || len(messages) == 0 {
		return messages
	}
	within := d.history[from:d.from:d.from]
	for i, m := range messages[1:] {
		if in := within[i+1]; len(m) == 0 || len(in) != len(m) || &in[0] != &m[0] {
			return messages
		}
	}
	return within
}

// History returns all messages, as the upstream knows them.
func (d *Dialogue) History() []json.RawMessage { return slices.Clone(d.history) }

// Hidden returns the messages that were added since Begin.
func (d *Dialogue) Hidden() []json.RawMessage { return slices.Clone(d.history[d.from:]) }

// Remember returns a model's message as its upstream wants to see it again: whole,
// but for reasoning that this dialect does not take back, and with audio named by
// its id. tool_calls are added by whoever knows them.
func (d *Dialogue) Remember(r *Reply) *rawjson.Object {
	o := &rawjson.Object{}
	for _, m := range r.Message.Members {
		switch {
		case m.Name == "tool_calls", m.Name == "function_call":
			continue
		case m.Name == "audio" && rawjson.Kind(m.Value) == '{':
			if audio, err := rawjson.ParseObject(m.Value); err == nil {
				m.Value = (&rawjson.Object{Members: []rawjson.Member{{Name: "id", Value: audio.Get("id")}}}).Bytes()
			}
		}
		o.Members = append(o.Members, m)
	}
	d.DropReasoning(o)
	if o.Get("role") == nil {
		o.Members = append([]rawjson.Member{{Name: "role", Value: rawjson.Quote("assistant")}}, o.Members...)
	}
	if o.Get("content") == nil {
		o.Set("content", null)
	}
	if r.Response != nil {
		id, _ := rawjson.String(r.Response.Get("id"))
		Items{Items: r.Items, Response: id, Stored: d.Request.Native != nil && d.Request.Native.Stores}.Put(o)
	}
	return o
}

// Unseen reports whether a message of the model's has something that clients of other APIs
// than its own do not see, and that the model wants back beside calls: what it thought, in
// a form that only its API can read.
func (d *Dialogue) Unseen(message json.RawMessage) bool {
	if d.Client.API != ResponsesAPI || d.Request.Native != nil {
		return false
	}
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return false
	}
	kept, _ := itemsIn(o)
	return slices.ContainsFunc(kept.Items, func(raw json.RawMessage) bool {
		item, err := rawjson.ParseObject(raw)
		return err == nil && string(item.Get("type")) == `"reasoning"`
	})
}

// DropReasoning takes the reasoning out of a message that this dialect does not
// take back, and reports whether there was some. Of an API that nobody knows,
// everything may be wanted.
func (d *Dialogue) DropReasoning(o *rawjson.Object) bool {
	known := d.Client.dialect().Name() != dialect.Conservative
	before := len(o.Members)
	o.Members = slices.DeleteFunc(o.Members, func(m rawjson.Member) bool {
		return known && strings.Contains(m.Name, "reasoning") && !slices.Contains(d.wire().Reasoning, m.Name)
	})
	return len(o.Members) < before
}

var patterns sync.Map // of compiled Wire.CallID

// maxCallID is how long the id of a call may be.
func (d *Dialogue) maxCallID() int {
	if d.Client.API == ResponsesAPI {
		return 64
	}
	return cmp.Or(d.wire().MaxCallIDLength, 40)
}

// fitLiteral is fitID for the literal of an id, and reports whether it is another one. What is
// no text is no id. Most are short enough as they are spelled, and are not decoded.
func (d *Dialogue) fitLiteral(literal json.RawMessage) (fit string, other bool) {
	if d.wire().CallID == "" && len(literal) <= len(`""`)+d.maxCallID() {
		return "", false
	}
	id, ok := rawjson.String(literal)
	if !ok {
		return "", false
	}
	fit = d.fitID(id)
	return fit, fit != id
}

// fitID returns id if the dialect takes it as the id of a call, and otherwise one
// that it takes and that is the same for the same id.
func (d *Dialogue) fitID(id string) string {
	wire, fits := d.wire(), len(id) <= d.maxCallID()
	if d.Client.API == ResponsesAPI && (fits || d.Request.Native != nil) { // whose items have ids of their own making
		return id
	}
	if wire.CallID == "" && fits {
		return id
	}
	if wire.CallID != "" {
		compiled, ok := patterns.Load(wire.CallID)
		if !ok {
			re, err := regexp.Compile(wire.CallID)
			if err != nil {
				return id
			}
			compiled, _ = patterns.LoadOrStore(wire.CallID, re)
		}
		if compiled.(*regexp.Regexp).MatchString(id) {
			return id
		}
	}
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, 9) // what Mistral asks for, the strictest of all
	for i := range short {
		short[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(short)
}

// fit gives the calls of a message, and the result that names one, what the dialect
// takes, and makes a tool's content a string where it must be one. What is no
// text in it is moved out where models do not see it there. It reports whether it
// changed anything.
func (d *Dialogue) fit(o *rawjson.Object) (changed bool) {
	if id := o.Get("tool_call_id"); rawjson.Kind(id) == '"' {
		if fit, other := d.fitLiteral(id); other {
			o.Set("tool_call_id", rawjson.Quote(fit))
			changed = true
		}
		if text, ok := plainText(o.Get("content")); ok && d.wire().StringContent {
			o.Set("content", rawjson.Quote(text))
			changed = true
		}
		if d.Client.API != ResponsesAPI { // which takes pictures there
			changed = d.moveParts(o) || changed
		}
	}
	return d.fitCalls(o) || changed
}

// fitCalls gives the calls of a message ids that the dialect takes, and arguments that are a
// JSON object: many upstreams refuse all of a history that has others, which a model cut or
// wrote wrong.
func (d *Dialogue) fitCalls(o *rawjson.Object) (changed bool) {
	raw := o.Get("tool_calls")
	if rawjson.Kind(raw) != '[' {
		return false
	}
	err := rawjson.EachElement(raw, func(call json.RawMessage) {
		_, other := d.fitLiteral(rawjson.Find(call, "id"))
		changed = changed || other || d.broken(call)
	})
	if !changed || err != nil {
		return false // as nearly always
	}
	calls, _ := rawjson.Elements(raw)
	for i := range calls {
		call, err := rawjson.ParseObject(calls[i])
		if err != nil {
			continue
		}
		if fit, other := d.fitLiteral(call.Get("id")); other {
			call.Set("id", rawjson.Quote(fit))
		}
		if d.broken(calls[i]) {
			if function, err := rawjson.ParseObject(call.Get("function")); err == nil {
				function.Set("arguments", rawjson.Quote("{}"))
				call.Set("function", function.Bytes())
			}
		}
		calls[i] = call.Bytes()
	}
	o.Set("tool_calls", rawjson.AppendArray(nil, calls))
	return true
}

// broken reports whether the arguments of a call are a text that is no JSON object. The
// Responses API takes any.
func (d *Dialogue) broken(call json.RawMessage) bool {
	if d.Client.API == ResponsesAPI {
		return false
	}
	text, ok := rawjson.Text(rawjson.Find(rawjson.Find(call, "function"), "arguments"), &d.room)
	return ok && !complete(text)
}

// plainText returns the text of content that is a list of nothing but text.
func plainText(content json.RawMessage) (string, bool) {
	if rawjson.Kind(content) != '[' {
		return "", false
	}
	parts, err := rawjson.Elements(content)
	if err != nil {
		return "", false
	}
	var all []string
	for _, raw := range parts {
		part, err := rawjson.ParseObject(raw)
		if err != nil {
			return "", false
		}
		text, ok := rawjson.String(part.Get("text"))
		if !ok {
			return "", false
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n"), true
}

// Restart puts messages in the place of the whole history, as what the client knows of it.
func (d *Dialogue) Restart(messages ...json.RawMessage) {
	d.history, d.moved = nil, nil
	d.AddHidden(messages...)
	d.Begin("")
}
