package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A history is the items of a request as messages of the Chat API.
type history struct {
	// messages are what the client knows: texts and calls of its own tools.
	messages []json.RawMessage
	// whole are messages in place of some of those, by their place, with what the
	// client brings of our calls and of what the model thought.
	whole map[int][]json.RawMessage
	// listed are the servers of which the client has a list of tools.
	listed map[string]bool
	// asked are the requests for approval in it, by id, and answered the answers at its
	// end.
	asked    map[string]*rawjson.Object
	answered []approval

	tools    *clientTools
	seals    seals
	contents contents
	turn     turn
	open     map[string]string // open calls of the client's, by id, to their names
	results  map[string]int    // the places of results of such calls, by id, and more what came of them later
	more     map[string][]json.RawMessage
	settled  int  // calls of the messages before have their results
	left     int  // the messages before are what a compaction left
	trigger  bool // the last item asks for a compaction, and nothing else
	foreign  bool // something that another provider sealed was left out
	noted    int  // the place of the message before which the model is told so
	changed  changed

	request    *Request // for a model whose API speaks Responses; nil for others
	nativeTurn nativeTurn
}

// An approval is a client's answer to a request for one.
type approval struct {
	id      string
	approve bool
	reason  string
}

func newHistory(tools *clientTools, s seals) *history {
	return &history{tools: tools, seals: s}
}

// readHistory reads the items of a request.
func readHistory(r *Request, tools *clientTools, s seals) (*history, error) {
	h := newHistory(tools, s)
	if r.native {
		return h, h.readNative(r)
	}
	o := new(rawjson.Object) // that of each item in turn
	for i, item := range r.items {
		at := i - len(r.items) + len(r.own) // among those of this request
		if err := o.Parse(item); err != nil {
			return nil, model.Invalid(fmt.Sprintf("input[%d]", at), "The item is malformed.")
		}
		if err := h.item(o); err != nil {
			return nil, within("input", at, err)
		}
	}
	h.endTurn()
	h.placeholders()
	h.joinResults()
	h.contents, h.turn, h.open, h.results = contents{}, turn{}, nil, nil // which were for reading alone
	r.changed = h.changed
	return h, nil
}

// kindOf returns the type of an item; one without is a message.
func kindOf(o *rawjson.Object) string {
	kind := stringOf(o, "type")
	if kind == "" && o.Get("role") != nil {
		return "message"
	}
	return kind
}

// within says which element of an array it is in which an error names a place, such as
// ".type", where it does not name one of the request.
func within(array string, at int, err error) error {
	if e, ok := errors.AsType[*model.Error](err); ok && (e.Param == "" || e.Param[0] == '.') {
		e.Param = fmt.Sprintf("%s[%d]%s", array, at, e.Param)
	}
	return err
}

// item takes one item, which may be used again afterwards. Errors name a place in it.
func (h *history) item(o *rawjson.Object) error {
	h.trigger = false // one that is not the last has had its effect
	switch kind := kindOf(o); kind {
	case "message":
		return h.message(o)
	case "function_call", "custom_tool_call", "tool_search_call":
		h.answered = nil
		return h.call(o, kind)
	case "reasoning":
		h.answered = nil
		h.reasoning(o)
	case "mcp_call":
		h.answered = nil
		h.ourCall(o)
	case "mcp_list_tools":
		if rawjson.IsNull(o.Get("error")) {
			enter(&h.listed, stringOf(o, "server_label"), true)
		}
	case "mcp_approval_request":
		h.answered = nil
		h.turn.any = true
		enter(&h.asked, stringOf(o, "id"), o.Clone())
	case "mcp_approval_response":
		approve, err := model.Boolean(o, "approve")
		if err != nil {
			return err
		}
		h.endTurn()
		h.answered = append(h.answered, approval{stringOf(o, "approval_request_id"), approve, stringOf(o, "reason")})
	case "compaction", "compaction_summary", "context_compaction":
		h.compaction(o)
	case "compaction_trigger":
		h.trigger = true
	case "configuration_update":
		return h.configure(o)
	case "agent_message":
		return h.agentMessage(o)
	case "additional_tools":
	case "item_reference":
		return model.Invalid("", fmt.Sprintf("The item %.60q is not kept here: send the item itself.", stringOf(o, "id")))
	default:
		if _, run := runOf(kind); run != nil {
			h.answered = nil
			return h.call(o, kind)
		}
		if isOutput(kind) {
			return h.output(o, kind)
		}
		if strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output") {
			return nil // what a hosted tool of another provider did; the text that follows says it
		}
		return model.Invalid(".type", fmt.Sprintf("Items of the type %.40q are not known here.", kind))
	}
	return nil
}

// message takes a message.
func (h *history) message(o *rawjson.Object) error {
	role := stringOf(o, "role")
	content, err := h.contents.chat(o, "content", role)
	if err != nil {
		return err
	}
	switch role {
	case "assistant":
		h.answered = nil
		h.turn.say(content)
		return nil
	case "user", "system", "developer":
	default:
		return model.Invalid(".role", "A message is of the role user, assistant, system or developer.")
	}
	if role == "developer" {
		role = "system" // the name that all upstreams know
	}
	h.add(model.ChatMessage(role, content))
	return nil
}

// add puts a message behind the history that is no part of the assistant's turn.
func (h *history) add(message json.RawMessage) {
	h.endTurn()
	h.placeholders()
	h.messages = append(h.messages, message)
}

// call takes a call of a tool of the client's.
func (h *history) call(o *rawjson.Object, kind string) error {
	id, name := stringOf(o, "call_id"), stringOf(o, "name")
	arguments := literalOf(o, "arguments")
	called, run := runOf(kind)
	switch kind {
	case "custom_tool_call":
		arguments = rawjson.Quote(string(object(text("input", stringOf(o, "input")))))
	case "tool_search_call":
		if name = "tool_search"; rawjson.Kind(o.Get("arguments")) == '{' {
			arguments = rawjson.Quote(string(o.Get("arguments")))
		}
	}
	if run != nil {
		name, arguments = called, rawjson.Quote(string(run.arguments(o).Bytes()))
	}
	if id == "" {
		id = stringOf(o, "id")
	}
	if id == "" || name == "" {
		return model.Invalid("", "A call needs a call_id and a name.")
	}
	flat := h.tools.find(stringOf(o, "namespace"), name, run != nil)
	h.turn.theirs(model.ChatCall(id, flat, arguments))
	enter(&h.open, id, flat)
	return nil
}

// output takes the result of a call of a tool of the client's.
func (h *history) output(o *rawjson.Object, kind string) error {
	id := stringOf(o, "call_id")
	run := outputOf(kind)
	if id == "" && run != nil {
		id = stringOf(o, "id") // that of the call, for local_shell
	}
	if id == "" {
		name := h.tools.find(stringOf(o, "namespace"), stringOf(o, "name"), false)
		for open, of := range h.open {
			if of != name {
				continue
			}
			if id != "" {
				return model.Invalid(".call_id", "A result needs the call_id of its call: several calls of its tool have no result yet.")
			}
			id = open
		}
	}
	if id == "" && kind == "function_call_output" && stringOf(o, "name") != "" {
		return h.uncalled(o)
	}
	if id == "" {
		return model.Invalid(".call_id", "A result needs the call_id of its call.")
	}
	content := o.Get("output")
	switch {
	case run != nil:
		content = run.told(o)
	case kind == "tool_search_output":
		content = rawjson.Quote(`{"tools":` + string(o.Get("tools")) + `}`)
	}
	if rawjson.Kind(content) == '[' {
		var err error
		o.Set("output", content)
		if content, err = h.contents.chat(o, "output", "tool"); err != nil {
			return err
		}
	} else if rawjson.Kind(content) != '"' {
		content = rawjson.Quote(string(content))
	}
	h.endTurn()
	_, was := h.open[id]
	delete(h.open, id)
	if !was && h.further(id, content) {
		return nil
	}
	if !was && !recall.Names(id) {
		return model.Invalid("input", fmt.Sprintf("No tool call found for function call output with call_id %.64s.", id))
	}
	h.result(id, content)
	return nil
}

// further puts one more result of a call behind the one that it has, and reports whether
// it has one: tools of Codex's tell of what they are at by further results, and the Chat
// API takes one.
func (h *history) further(id string, content json.RawMessage) bool {
	if _, ok := h.results[id]; !ok {
		return false
	}
	enter(&h.more, id, append(h.more[id], content))
	return true
}

// joinResults puts further results into the messages of the first ones, once all are there.
func (h *history) joinResults() {
	for id, more := range h.more {
		at := h.results[id]
		if o, err := rawjson.ParseObject(h.messages[at]); err == nil {
			o.Set("content", joined(append([]json.RawMessage{o.Get("content")}, more...)))
			h.messages[at] = o.Bytes()
		}
	}
	h.more = nil
}

// result puts the result of a call of the client's behind the history.
func (h *history) result(id string, content json.RawMessage) {
	enter(&h.results, id, len(h.messages))
	h.messages = append(h.messages, model.ChatResult(id, content))
}

// placeholders answers calls that have no result yet, where something else follows: the
// Chat API wants one for each. Calls before h.settled have one, so that a message is looked
// at once, however long the history gets.
func (h *history) placeholders() {
	if len(h.open) > 0 {
		rest, noted := slices.Clone(h.messages[h.settled:]), h.noted-h.settled
		whole := map[int][]json.RawMessage{}
		for i := range rest {
			if w, ok := h.whole[h.settled+i]; ok {
				whole[i] = w
				delete(h.whole, h.settled+i)
			}
		}
		h.messages = h.messages[:h.settled]
		for i, message := range rest {
			if i == noted {
				h.noted = len(h.messages)
			}
			h.settle(message, whole[i])
		}
		if len(rest) == noted {
			h.noted = len(h.messages)
		}
	}
	h.settled = len(h.messages)
}

// settle puts a message behind the history again, and a result behind it for each of its
// calls that has none.
func (h *history) settle(message json.RawMessage, whole []json.RawMessage) {
	at := len(h.messages)
	if h.messages = append(h.messages, message); whole != nil {
		h.whole[at] = whole
	}
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return // it was made here
	}
	if id := stringOf(o, "tool_call_id"); id != "" {
		h.results[id] = at
	}
	calls, _ := rawjson.Elements(o.Get("tool_calls"))
	for _, call := range calls {
		c, err := rawjson.ParseObject(call)
		if err != nil {
			continue
		}
		if id := stringOf(c, "id"); h.open[id] != "" {
			delete(h.open, id)
			h.result(id, rawjson.Quote(`{"status":"pending"}`))
		}
	}
}

// leftOut notes once that something of another provider's cannot be read. The model is told so
// before what is being read; it is no message, since the client knows nothing of it, nor is it
// there for a model that can read what was sealed: turns are found by what the client has.
func (h *history) leftOut() {
	if !h.foreign {
		h.foreign, h.noted = true, len(h.messages)
	}
}

// notes are what the model is told beside the messages, by the place of the one behind it.
func (h *history) notes() map[int]json.RawMessage {
	if !h.foreign {
		return nil
	}
	return map[int]json.RawMessage{h.noted: model.ChatMessage("system", rawjson.Quote("(Earlier turns, or what was thought in them, were kept by another provider in a form that only it can read.)"))}
}
