package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A nativeTurn is what items say of the assistant, until somebody else speaks, for a model
// whose API speaks Responses: the items themselves, and what a message of the Chat API has
// of them, by which turns are found again.
type nativeTurn struct {
	any   bool
	items []json.RawMessage
	texts []string
	calls []json.RawMessage // of the client's
}

// readNative reads the items of a request for an API that gets them as they are, but for
// what only we can read.
func (h *history) readNative(r *Request) error {
	h.request = r
	border := len(r.items) - len(r.own)
	for i, item := range r.items {
		if i == border {
			h.endNative()
			h.continueFrom(r.continues)
		}
		o, err := rawjson.ParseObject(item)
		if err != nil {
			return model.Invalid(fmt.Sprintf("input[%d]", i-border), "The item is malformed.")
		}
		if i < border || madeHere(stringOf(o, "id")) {
			item = withoutOurs(o, item)
		}
		if err := h.nativeItem(o, item); err != nil {
			return err
		}
	}
	h.endNative()
	if border == len(r.items) {
		h.continueFrom(r.continues)
	}
	return nil
}

// withoutOurs returns an item without the id that it got here: no API knows it.
func withoutOurs(o *rawjson.Object, item json.RawMessage) json.RawMessage {
	switch kindOf(o) {
	case "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "shell_call", "apply_patch_call":
	default: // some need an id
		if !strings.HasSuffix(kindOf(o), "_output") {
			return item
		}
	}
	if !madeHere(stringOf(o, "id")) {
		return item
	}
	bare := o.Clone()
	bare.Delete("id")
	return bare.Bytes()
}

// continueFrom says that the history up to here is that of a response at the API.
func (h *history) continueFrom(id string) {
	last := len(h.messages) - 1
	if id == "" || last < 0 {
		return
	}
	o, err := rawjson.ParseObject(h.messages[last])
	if err != nil || stringOf(o, "role") != "assistant" {
		return
	}
	if kept, ok := model.ItemsOf(h.messages[last]); ok {
		kept.Response, kept.Stored = id, true
		kept.Put(o)
		h.messages[last] = o.Bytes()
	}
}

// nativeItem takes one item, o, that the API is to get as item.
func (h *history) nativeItem(o *rawjson.Object, item json.RawMessage) error {
	kind, id := kindOf(o), stringOf(o, "call_id")
	_, consented := h.seals.consent(stringOf(o, "approval_request_id"))
	switch {
	case consented, h.request.isOurs(o):
		return h.ourItem(o, kind)
	case kind == "message" && stringOf(o, "role") != "assistant":
		h.put(model.ChatMessage(stringOf(o, "role"), rawjson.Quote(plainContent(o.Get("content")))), item)
	case kind == "message":
		t := h.say(item)
		t.texts = append(t.texts, plainContent(o.Get("content")))
	case kind == "reasoning":
		if _, ours := h.seals.openThought(stringOf(o, "encrypted_content")); ours || madeHere(stringOf(o, "id")) {
			return nil // another API's, which this one cannot read
		}
		h.say(item)
	case kind == "compaction" && h.summary(o):
	case kind == "web_search_call" && madeHere(stringOf(o, "id")):
	case model.IsCall(o):
		t := h.say(item)
		t.calls = append(t.calls, chatCall(o, kind, id, item))
		enter(&h.open, id, kind)
	case strings.HasSuffix(kind, "_output") && id != "" && (h.open[id] != "" || strings.HasSuffix(kind, "_call_output")):
		delete(h.open, id)
		h.put(model.ChatResult(id, rawjson.Quote(plainContent(o.Get("output")))), item)
	case h.nativeTurn.any && !ofClient(kind, id):
		h.say(item)
	default: // of nobody: where it stands is what matters
		h.put(model.ChatMessage("system", noWords), item)
	}
	return nil
}

// ofClient reports whether an item is one that only clients say, which has a place in the
// history and is no part of what the assistant said before it.
func ofClient(kind, callID string) bool {
	switch kind {
	case "additional_tools", "compaction_trigger", "configuration_update", "agent_message":
		return true
	}
	return kind == "function_call_output" && callID == "" // of what was not called
}

// summary takes a compaction that was made here in place of what stands before it, as
// [history.compaction] does, and reports whether it is one.
func (h *history) summary(o *rawjson.Object) bool {
	summary, ok := h.seals.openCompaction(stringOf(o, "encrypted_content"))
	if !ok {
		return false
	}
	h.endNative()
	h.keepWritten()
	h.answered = nil
	clear(h.open)
	h.put(summarised(summary), object(text("type", "message"), text("role", "user"), text("content", summaryHead+summary)))
	return true
}

// ourItem takes an item about one of our servers.
func (h *history) ourItem(o *rawjson.Object, kind string) error {
	switch kind {
	case "mcp_list_tools":
		return h.item(o)
	case "mcp_approval_request":
		h.nativeTurn.any, h.answered = true, nil
		enter(&h.asked, stringOf(o, "id"), o.Clone())
	case "mcp_approval_response":
		approve, err := model.Boolean(o, "approve")
		if err != nil {
			return err
		}
		h.endNative()
		h.answered = append(h.answered, approval{stringOf(o, "approval_request_id"), approve, stringOf(o, "reason")})
	case "mcp_call":
		call, said, ok := h.sealedCall(o)
		if !ok {
			// Within the turn, so that it is found again as one where it is remembered.
			h.nativeTurn.unthink()
			h.say(object(text("type", "message"), text("role", "user"), text("content", h.claim(o))))
			return nil
		}
		h.say(object(text("type", "function_call"), text("call_id", call.id), text("name", call.tool), text("arguments", call.arguments)))
		h.say(object(text("type", "function_call_output"), text("call_id", call.id), text("output", said)))
	}
	return nil
}

// say takes an item of the assistant's.
func (h *history) say(item json.RawMessage) *nativeTurn {
	t := &h.nativeTurn
	t.any, t.items, h.answered = true, append(t.items, item), nil
	return t
}

// unthink leaves out what was thought last: an API refuses thoughts without the item that
// they led to.
func (t *nativeTurn) unthink() {
	for last := len(t.items) - 1; last >= 0 && typeOf(t.items[last]) == "reasoning"; last-- {
		t.items = t.items[:last]
	}
}

// put puts a message that is an item behind the history.
func (h *history) put(message, item json.RawMessage) {
	h.endNative()
	h.messages = append(h.messages, withItems(message, item))
}

func withItems(message json.RawMessage, items ...json.RawMessage) json.RawMessage {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return message // we made it
	}
	model.Items{Items: items}.Put(o)
	return o.Bytes()
}

// endNative ends the assistant's turn: one message that is what its client knows of it.
func (h *history) endNative() {
	t := h.nativeTurn
	if h.nativeTurn = (nativeTurn{}); !t.any {
		return
	}
	content := strings.Join(nonEmpty(t.texts), "\n\n")
	o := rawjson.Object{Members: []rawjson.Member{text("role", "assistant"), raw("content", nil)}}
	if content != "" || len(t.calls) == 0 {
		o.Set("content", rawjson.Quote(content))
	}
	if len(t.calls) > 0 {
		o.Set("tool_calls", array(t.calls...))
	}
	h.messages = append(h.messages, withItems(o.Bytes(), t.items...))
}

// chatCall returns a call of the client's as the Chat API has it, or would if it had such
// calls.
func chatCall(o *rawjson.Object, kind, id string, item json.RawMessage) json.RawMessage {
	switch kind {
	case "function_call":
		return model.ChatCall(id, stringOf(o, "name"), literalOf(o, "arguments"))
	case "custom_tool_call":
		return object(text("id", id), text("type", "custom"), raw("custom", object(text("name", stringOf(o, "name")), text("input", stringOf(o, "input")))))
	}
	return model.ChatCall(id, strings.TrimSuffix(kind, "_call"), rawjson.Quote(string(item)))
}

// plainContent returns the text of content, by which a message is known again: that of its
// parts, or what is no text as it is.
func plainContent(content json.RawMessage) string {
	if s, ok := rawjson.String(content); ok || rawjson.IsNull(content) {
		return s
	}
	parts, err := rawjson.Elements(content)
	if err != nil {
		return string(content)
	}
	var all strings.Builder
	for _, part := range parts {
		o, err := rawjson.ParseObject(part)
		if err != nil {
			return string(content)
		}
		switch stringOf(o, "type") {
		case "output_text", "input_text", "text":
			all.WriteString(stringOf(o, "text"))
		case "refusal":
		default:
			return string(content)
		}
	}
	return all.String()
}

// heldBack are messages of the client's turn in which calls of ours wait for its approval,
// where nothing is remembered of them.
func (h *history) heldBack() []json.RawMessage {
	last := len(h.messages) - 1
	if h.request == nil || last < 0 {
		return h.whole[last]
	}
	return slices.Clone(h.messages[last:])
}

// nonEmpty returns the texts that are some.
func nonEmpty(texts []string) []string {
	var kept []string
	for _, s := range texts {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}
