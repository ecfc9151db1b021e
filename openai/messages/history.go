package messages

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A translator writes the history of a request in the form of the Chat API.
type translator struct {
	reader
	// system says that a system message may stand anywhere.
	system bool
	// name returns the name under which the model knows a tool of a server.
	name func(serverTool) string
	// search is the name under which the model knows the tool that searches the web, and
	// shown says that the client sees all calls of ours, so that its history has them.
	search string
	shown  bool
	// thoughts opens what we sealed, and untaken takes out of a message what this upstream does
	// not take back of it.
	thoughts thoughts
	untaken  func(*rawjson.Object) bool

	messages []json.RawMessage
	whole    map[int][]json.RawMessage // in place of those, by their place: with what the client brings of searches, and system messages by themselves
	rounds   map[string]int            // the last result of each round that the client sees, by the tag of its calls
	spoken   map[string]int            // and the message of the model that made them
	more     bool                      // there is more to be read of a result of ours
	said     said                      // by a person, behind the messages, with system messages as reminders
	pieces   map[int]recall.Pieces     // what messages of a person were put together of, by their place
	calls    map[string]int            // the client's calls in the last message of the model that have no result yet: their places in it, by id

	// Room for what is read of each message in turn.
	came    []toolResult
	message spoken
}

// takesSystem are the dialects whose APIs take a system message in the middle of a
// conversation. The templates of many models refuse one.
var takesSystem = []string{"openai", "openai-strict", "azure"}

// translate returns the history of a request, the system prompt first.
func (t *translator) translate(r *Request) ([]json.RawMessage, error) {
	var prompt said
	for _, b := range r.system {
		prompt.literal(b.Get("text"))
	}
	if !prompt.empty() {
		t.add("system", prompt.content())
	}
	for i := range r.turns {
		turn := &r.turns[i]
		var err error
		switch turn.role {
		case "assistant":
			err = t.turn(turn)
		case "system":
			err = t.between(turn)
		default:
			err = t.user(turn)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(t.calls) > 0 {
		return nil, unanswered(&r.turns[len(r.turns)-1])
	}
	if t.endSaid(); len(t.messages) == 0 {
		return nil, model.Invalid("messages", "messages: all of them are empty.")
	}
	return t.messages, nil
}

// put puts messages behind the history.
func (t *translator) put(messages ...json.RawMessage) {
	t.endSaid()
	t.messages = append(t.messages, messages...)
}

func (t *translator) add(role string, content json.RawMessage) {
	t.put(model.ChatMessage(role, content))
}

// person adds what a person says. What stands in several messages behind each other
// becomes one, as the API wants it: templates of many models refuse two.
func (t *translator) person(s said) {
	switch {
	case s.empty():
	case t.said.empty():
		t.said = s
	default:
		t.said.parts = append(t.said.parts, s.parts...)
		t.said.other = t.said.other || s.other
	}
}

// endSaid ends the message of a person that is being put together.
func (t *translator) endSaid() {
	s := t.said
	if s.empty() {
		return
	}
	t.said = said{}
	at := len(t.messages)
	if len(s.system) > 0 {
		t.whole[at] = s.messages(0, len(s.parts))
	}
	if t.pieces != nil {
		t.pieces[at] = recall.Pieces{Parts: s.parts, Messages: s.messages}
	}
	t.messages = append(t.messages, model.ChatMessage("user", s.content()))
}

// between adds a system message in the middle of a conversation. In the history it is a reminder
// whatever the upstream takes, since what is remembered is found by it, and its client may go on
// with another model.
func (t *translator) between(turn *turn) error {
	var s said
	for _, b := range turn.blocks {
		if isChange(b.kind) {
			continue // the tools themselves tell the model
		}
		if err := t.read(&s, b); err != nil {
			return within(b.place(), err)
		}
	}
	switch {
	case s.other:
		return wrong(turn.place(), "a system message is text.")
	case !s.empty():
		var reminder said
		text, _ := rawjson.String(s.joined())
		reminder.text(recall.Reminder + "\n" + text + "\n" + recall.ReminderEnd)
		t.person(reminder)
		if t.system {
			t.said.stands(model.ChatMessage("system", s.content()))
		}
	}
	return nil
}

// user adds a person's message: the results of the client's calls first, in the order of
// the calls, then everything else.
func (t *translator) user(turn *turn) error {
	var s said
	results := t.came[:0]
	for _, b := range turn.blocks {
		if b.kind != "tool_result" {
			if err := t.read(&s, b); err != nil {
				return within(b.place(), err)
			}
			continue
		}
		result, err := t.toolResult(b)
		if err != nil {
			return within(b.place(), err)
		}
		var open bool
		if result.call, open = t.calls[result.id]; !open {
			return within(b.place(), wrong(".tool_use_id", "there is no call of this id in the message before that has no result yet."))
		}
		delete(t.calls, result.id)
		results = append(results, result)
	}
	if len(t.calls) > 0 {
		return unanswered(turn)
	}
	t.results(results)
	t.came = results
	t.person(s)
	return nil
}

func unanswered(turn *turn) error {
	return wrong(turn.place(), "each tool_use of a message needs its tool_result in the next one.")
}

// results adds the results of the client's calls.
func (t *translator) results(results []toolResult) {
	slices.SortStableFunc(results, func(a, b toolResult) int { return a.call - b.call })
	for i := range results {
		r := &results[i]
		content := r.text()
		if own := r.pictures(); len(own) > 0 {
			shown := said{other: true}
			shown.literal(content)
			shown.parts = append(shown.parts, own...)
			content = shown.content()
		}
		t.put(model.ChatResult(r.id, content))
	}
}

// publicName is a name for a tool that is not offered any more.
func publicName(tool serverTool) string {
	return strings.Trim(qualified.Name(tool.server, tool.name), "_")
}

// place returns a digest of how far the conversation has come: of what people and the model
// said, and of which calls. Agents say reminders, thoughts and the contents of results
// otherwise to another model.
func (r *Request) place() string {
	h := sha256.New()
	role := ""
	for i := range r.turns {
		turn := &r.turns[i]
		if turn.role == "system" {
			continue
		}
		if turn.role != role {
			role = turn.role
			fmt.Fprintf(h, "%s\n", role)
		}
		for _, b := range turn.blocks {
			switch b.kind {
			case "text":
				if text := recall.Said([]byte(b.text("text"))); len(text) > 0 {
					fmt.Fprintf(h, "%d %s\n", len(text), text)
				}
			case "tool_use", "mcp_tool_use", "server_tool_use":
				fmt.Fprintf(h, "calls %q\n", b.text("id"))
			case "tool_result":
				fmt.Fprintf(h, "result %q\n", b.text("tool_use_id"))
			}
		}
	}
	return string(h.Sum(nil))
}
