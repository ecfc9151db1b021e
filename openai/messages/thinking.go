package messages

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// thoughts seals what a model thought, for clients that send it back, and opens it. A
// seal is good for its owner and for the text that it came with. Thoughts whose seal is
// not ours, too old or not for this text are dropped: another model had them.
type thoughts struct {
	ring  *seal.Ring
	owner string
}

// fields are the members in which Chat APIs have a model's thoughts as text.
var fields = []string{"reasoning_content", "reasoning"}

func (t thoughts) bound(text string) []byte {
	return seal.Bind([]byte(t.owner), []byte("messages"), []byte(text))
}

// withinText stands before the member that thoughts came in, where text of the same message of
// the model's stands before them: what it says behind them goes on with that.
const withinText = "+"

// close returns the signature of thoughts that came in a member, perhaps within the text of
// their message. Where the client does not get their text, they are in it.
func (t thoughts) close(field, text string, omitted, within bool) string {
	plain, shown := field, text
	if omitted {
		plain, shown = field+"\n"+text, ""
	}
	if within {
		plain = withinText + plain
	}
	return base64.StdEncoding.EncodeToString(t.ring.Close(seal.Reasoning, t.bound(shown), []byte(plain), time.Time{}))
}

// open puts thoughts into a message of the model's, as its API wants them back.
func (t thoughts) open(m *spoken, b block) {
	text := b.text("thinking")
	opened, ok := t.opened(b.text("signature"), text)
	if !ok {
		return
	}
	plain, within := strings.CutPrefix(string(opened), withinText)
	m.within = within
	for _, field := range fields {
		if plain == field {
			m.think(field, text)
		} else if omitted, ok := strings.CutPrefix(plain, field+"\n"); ok {
			m.think(field, omitted)
		}
	}
}

func (t thoughts) opened(signature, text string) ([]byte, bool) {
	sealed, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return nil, false
	}
	plain, err := t.ring.Open(seal.Reasoning, t.bound(text), sealed)
	return plain, err == nil
}

// think adds to the thoughts of a message.
func (m *spoken) think(field, text string) {
	if m.thinking == nil {
		m.thinking = map[string]*strings.Builder{}
	}
	if m.thinking[field] == nil {
		m.thinking[field] = &strings.Builder{}
	}
	m.thinking[field].WriteString(text)
}

// thoughts puts what the upstream wants back of what it thought into its message.
func (m *spoken) thoughts(message *rawjson.Object) {
	for _, o := range m.rest {
		message.Set(o.Name, o.Value)
	}
	for _, field := range fields {
		if text := m.thinking[field]; text != nil {
			have, _ := rawjson.String(message.Get(field))
			message.Set(field, rawjson.Quote(have+text.String()))
		}
	}
}

// A rest is what an API wants back of a message that a client of this one has no place for,
// such as signatures of its own.
type rest struct {
	Members map[string]json.RawMessage `json:"members,omitempty"`
	Calls   map[string]json.RawMessage `json:"calls,omitempty"`
}

// restOf returns what an API wants back of a message, and of its calls. remembered is the
// message as the API wants to see it again, and calls are by the ids that the client has of
// them. Items of the Responses API get those, too.
func restOf(remembered *rawjson.Object, calls map[string]json.RawMessage) rest {
	r := rest{Members: map[string]json.RawMessage{}, Calls: map[string]json.RawMessage{}}
	ids := map[string]string{}
	for id, raw := range calls {
		was, _ := rawjson.String(rawjson.Find(raw, "id"))
		if ids[was] = id; more(raw) {
			r.Calls[id] = raw
		}
	}
	if kept, ok := model.ItemsOf(remembered.Bytes()); ok {
		remembered = remembered.Clone()
		kept.Rename(ids)
		kept.Put(remembered)
	}
	for name, value := range remembered.All() {
		if wantedBack(name, value) {
			r.Members[name] = value
		}
	}
	return r
}

// sealRest seals what else an API wants back of a message, beside the text of its thoughts;
// empty where that is nothing.
func (t thoughts) sealRest(r rest) string {
	for _, field := range fields {
		delete(r.Members, field)
	}
	if len(r.Members) == 0 && len(r.Calls) == 0 {
		return ""
	}
	plain, err := json.Marshal(r)
	if err != nil {
		return "" // they are documents that came as JSON
	}
	return base64.StdEncoding.EncodeToString(t.ring.Close(seal.Reasoning, t.bound("rest"), plain, time.Time{}))
}

// wantedBack reports whether an API may want a member of a message back that a client of this one
// has no place for.
func wantedBack(name string, value json.RawMessage) bool {
	switch name {
	case "role", "content", "refusal", "audio", "annotations":
		return false
	}
	return !rawjson.IsNull(value)
}

// more reports whether a call has members that a client of this API cannot keep.
func more(raw json.RawMessage) bool {
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return false
	}
	for name := range o.All() {
		if name != "id" && name != "type" && name != "function" {
			return true
		}
	}
	f, err := rawjson.ParseObject(o.Get("function"))
	return err == nil && len(f.Members) > 2
}

// rest opens what sealRest sealed, and returns the calls as the API made them.
func (t thoughts) rest(m *spoken, b block) map[string]json.RawMessage {
	plain, ok := t.opened(b.text("data"), "rest")
	var r rest
	if !ok || json.Unmarshal(plain, &r) != nil {
		return nil
	}
	for name, value := range r.Members {
		delete(m.thinking, name) // it is in there
		m.rest = append(m.rest, rawjson.Member{Name: name, Value: value})
	}
	return r.Calls
}

// textOf returns the thoughts of a message or of a delta, and the member that has them: the
// first, since some have them twice. Those that stand in the content, as Mistral's do, have none
// that could bring them back.
func textOf(message *rawjson.Object) (field, text string) {
	for _, field := range fields {
		if text, _ := rawjson.String(message.Get(field)); text != "" {
			return field, text
		}
	}
	parts, _ := rawjson.Elements(message.Get("content"))
	var b strings.Builder
	for _, part := range parts {
		inner, _ := rawjson.Elements(rawjson.Find(part, "thinking"))
		for _, each := range inner {
			s, _ := rawjson.String(rawjson.Find(each, "text"))
			b.WriteString(s)
		}
	}
	return "", b.String()
}
