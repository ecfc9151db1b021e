package messages

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A spoken message is one of the model's, as it is put together of blocks: of each round
// that they tell of there is one.
type spoken struct {
	said
	thinking map[string]*strings.Builder // what it thought, by the member that the upstream wants it back in
	rest     []rawjson.Member            // what else it wants back
	calls    []json.RawMessage
	ids      []string // of the client's calls
	results  []json.RawMessage
	tag      string // of the ids of its calls
	within   bool   // its text was interrupted by thoughts
}

// again returns a message without what was spoken, with its room.
func (m *spoken) again() spoken {
	return spoken{said: said{parts: m.parts[:0]}, calls: m.calls[:0], ids: m.ids[:0], results: m.results[:0]}
}

// has reports whether a block is a call that the model made in the same message.
func (m *spoken) has(b block) bool {
	return b.kind == "tool_use" && m.tag != "" && tagOf(b.text("id")) == m.tag
}

// tagged returns the part that the ids of the message's calls have in common.
func (m *spoken) tagged() string {
	if m.tag == "" && len(m.ids) > 0 {
		return tagOf(m.ids[0])
	}
	return m.tag
}

// turn adds what the model said. A client that does not see calls of servers brings its
// own searches all the same: they are for where nothing is remembered of the turn.
func (t *translator) turn(turn *turn) error {
	if t.shown || !slices.ContainsFunc(turn.blocks, func(b block) bool { return b.kind == "web_search_tool_result" }) {
		return t.assistant(turn)
	}
	whole := *t
	whole.messages, whole.rounds, whole.said, whole.pieces, whole.calls, whole.shown = nil, nil, said{}, nil, nil, true
	whole.whole = map[int][]json.RawMessage{} // it has all of it
	t.endSaid()
	at := len(t.messages)
	if err := t.assistant(turn); err != nil {
		return err
	}
	if err := whole.assistant(turn); err != nil {
		return err
	}
	if len(t.messages) == at+1 {
		t.whole[at] = whole.messages
	}
	return nil
}

// assistant adds what the model said: a message for each round that the blocks tell of.
func (t *translator) assistant(turn *turn) error {
	m := &t.message
	*m = m.again()
	var kept map[string]json.RawMessage // calls as the upstream made them, by id
	for _, b := range turn.blocks {
		if len(m.results) > 0 && b.kind != "mcp_tool_result" && b.kind != "mcp_tool_listing" && b.kind != "web_search_tool_result" && !m.has(b) {
			t.say(m)
			*m = m.again()
		}
		switch b.kind {
		case "text":
			if m.within {
				m.goOn(b.Get("text"))
			} else {
				m.literal(b.Get("text"))
			}
			m.within = false
		case "compaction":
			m.literal(b.Get("content"))
		case "thinking":
			t.thoughts.open(m, b)
		case "redacted_thinking":
			kept = t.thoughts.rest(m, b)
		case "tool_use", "mcp_tool_use":
			if err := t.call(m, b, kept); err != nil {
				return within(b.place(), err)
			}
		case "mcp_tool_result":
			r, err := t.toolResult(b)
			if err != nil {
				return within(b.place(), err)
			}
			content, more := r.ours()
			t.more = t.more || more
			m.results = append(m.results, model.ChatResult(r.id, content))
		case "server_tool_use":
			if t.shown && tagOf(b.text("id")) != "" {
				if err := t.call(m, b, kept); err != nil {
					return within(b.place(), err)
				}
			}
		case "web_search_tool_result":
			if t.shown && tagOf(b.text("tool_use_id")) != "" {
				m.results = append(m.results, model.ChatResult(b.text("tool_use_id"), t.found(b)))
			}
		default:
			// What other servers made of their own, such as searches, has no meaning here.
		}
	}
	t.say(m)
	return nil
}

// call adds a call, of the client's or of ours.
func (t *translator) call(m *spoken, b block, kept map[string]json.RawMessage) error {
	id, name := b.text("id"), b.text("name")
	if id == "" || name == "" {
		return wrong("", "a call has an id and a name.")
	}
	input := b.Get("input")
	if rawjson.Kind(input) != '{' {
		if input = []byte("{}"); !rawjson.IsNull(b.Get("input")) {
			return wrong(".input", "must be an object.")
		}
	}
	switch b.kind {
	case "mcp_tool_use":
		m.tag = tagOf(id)
		name = t.name(serverTool{b.text("server_name"), name})
	case "server_tool_use":
		m.tag, name = tagOf(id), t.search
	default:
		m.ids = append(m.ids, id)
		if of := b.text("toolset_name"); of != "" {
			name = familyTool{of, name}.function()
		}
	}
	made := model.ChatCall(id, name, rawjson.Quote(string(input)))
	if was, err := rawjson.ParseObject(kept[id]); err == nil {
		made = overCall(was, made)
	}
	m.calls = append(m.calls, made)
	return nil
}

// overCall puts a call over the one that the upstream made, which has more members.
func overCall(was *rawjson.Object, call json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(call)
	if err != nil {
		return call // it was made here
	}
	f, errF := rawjson.ParseObject(o.Get("function"))
	if function, err := rawjson.ParseObject(was.Get("function")); err == nil && errF == nil {
		o.Set("function", over(function, f).Bytes())
	}
	return over(was, o).Bytes()
}

// over puts the members of an object over those of another, which it returns.
func over(o, with *rawjson.Object) *rawjson.Object {
	for _, m := range with.Members {
		o.Set(m.Name, m.Value)
	}
	return o
}

// say adds a message of the model's, with the results of our calls in it.
func (t *translator) say(m *spoken) {
	if m.empty() && len(m.calls) == 0 {
		return
	}
	content := null
	if !m.empty() {
		content = m.content()
	}
	message := model.ChatAnswer(content, m.calls)
	if len(m.rest)+len(m.thinking) > 0 {
		o := members("role", "assistant", "content", content)
		if m.thoughts(o); len(m.calls) > 0 {
			o.Set("tool_calls", rawjson.AppendArray(nil, m.calls))
		}
		t.untaken(o) // another model may have thought it
		message = o.Bytes()
	}
	t.put(message)
	at := len(t.messages) - 1
	if len(m.rest) > 0 {
		if _, ok := model.ItemsOf(message); ok {
			t.whole[at] = []json.RawMessage{message} // they were sealed here: no client can say them
		}
	}
	if tag := m.tagged(); tag != "" && t.shown && t.rounds != nil {
		t.spoken[tag] = at
	}
	if len(m.results) > 0 {
		t.put(m.results...)
		if m.tag != "" && t.rounds != nil {
			t.rounds[m.tag] = len(t.messages) - 1
		}
	}
	clear(t.calls)
	for i, id := range m.ids {
		if t.calls == nil {
			t.calls = map[string]int{}
		}
		t.calls[id] = i
	}
}
