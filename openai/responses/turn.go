package responses

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A turn is what items say of the assistant, until somebody else speaks.
type turn struct {
	any    bool
	texts  []json.RawMessage // literals; none of no text
	calls  []json.RawMessage // of the client's tools
	closed []json.RawMessage // messages that are complete
	said   saying            // the message that is being read
	more   bool              // there is more to it than texts and calls of the client's
}

// A saying is one message of the assistant.
type saying struct {
	thought []rawjson.Member // what the upstream wants back of what it thought
	text    json.RawMessage  // a literal; nil for no text
	spoke   bool
	calls   []json.RawMessage
	results []json.RawMessage // of our calls
}

// again returns the saying without what is said, with its room.
func (s saying) again() saying {
	return saying{thought: s.thought[:0], calls: s.calls[:0], results: s.results[:0]}
}

// again returns the turn without what is in it, with its room.
func (t *turn) again() turn {
	return turn{texts: t.texts[:0], calls: t.calls[:0], closed: t.closed[:0], said: t.said.again()}
}

// say takes the literal of a text.
func (t *turn) say(s json.RawMessage) {
	if t.any = true; len(s) == len(noWords) {
		s = nil
	} else {
		t.texts = append(t.texts, s)
	}
	if t.said.spoke || len(t.said.calls) > 0 {
		t.more = true
		t.next()
	}
	t.said.text, t.said.spoke = s, true
}

// think takes what the upstream wants back of what it thought.
func (t *turn) think(members []rawjson.Member) {
	if t.said.spoke || len(t.said.calls) > 0 {
		t.next()
	}
	t.any, t.more = true, true
	t.said.thought = append(t.said.thought, members...)
}

// theirs takes a call of a tool of the client's.
func (t *turn) theirs(call json.RawMessage) {
	t.any = true
	t.calls = append(t.calls, call)
	t.said.calls = append(t.said.calls, call)
}

// ours takes a call of ours, and the message that answers it.
func (t *turn) ours(call, result json.RawMessage) {
	t.any, t.more = true, true
	t.said.calls = append(t.said.calls, call)
	t.said.results = append(t.said.results, result)
}

// next ends the message that is being read.
func (t *turn) next() {
	s := t.said
	t.said = s.again()
	if !s.spoke && len(s.calls) == 0 {
		return
	}
	o := rawjson.Object{Members: []rawjson.Member{text("role", "assistant"), raw("content", nil)}}
	if s.text != nil {
		o.Set("content", s.text)
	}
	if len(s.calls) > 0 {
		o.Set("tool_calls", array(s.calls...))
	} else if s.text == nil {
		return
	}
	o.Members = append(o.Members, s.thought...)
	t.closed = append(append(t.closed, o.Bytes()), s.results...)
}

// endTurn ends the assistant's turn: one message that is what its client knows of it.
func (h *history) endTurn() {
	t := &h.turn
	if !t.any {
		return
	}
	var content json.RawMessage
	if len(t.texts) > 0 || len(t.calls) == 0 {
		content = rawjson.JoinStrings("\n\n", t.texts)
	}
	said := model.ChatAnswer(content, t.calls)
	if t.more || len(t.texts) == 0 && len(t.calls) == 0 {
		t.next()
		enter(&h.whole, len(h.messages), append([]json.RawMessage{}, t.closed...))
	}
	h.messages = append(h.messages, said)
	h.turn = t.again()
}
