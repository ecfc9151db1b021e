package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// A conversation is compacted by a summary of the model's own, which a compaction item
// holds, sealed for its caller. What stands before such an item counts no more, but for what
// people and developers wrote: so it is in the response that compacts, in those that go on
// from it, and where the client sends the items itself.

// defaultThreshold is from how many tokens on a history is compacted where the request wants
// it compacted and does not say when.
const defaultThreshold = 100_000

// readCompaction reads context_management.
func (r *Request) readCompaction() error {
	given := r.object.Get("context_management")
	if rawjson.IsNull(given) || r.native { // the model's API does it
		return nil
	}
	entries, err := rawjson.Elements(given)
	if err != nil {
		return model.Invalid("context_management", "\"context_management\" must be an array.")
	}
	for i, entry := range entries {
		param := fmt.Sprintf("context_management[%d]", i)
		o, err := rawjson.ParseObject(entry)
		if err != nil {
			return model.Invalid(param, "Each entry must be an object.")
		}
		if kind := stringOf(o, "type"); kind != "compaction" {
			return model.Invalid(param+".type", fmt.Sprintf("Contexts are managed by compaction alone, and not by %.40q.", kind))
		}
		r.threshold = defaultThreshold
		if most := o.Get("compact_threshold"); !rawjson.IsNull(most) {
			n, ok := rawjson.Int(most)
			if !ok || n < 1 {
				return model.Invalid(param+".compact_threshold", "\"compact_threshold\" must be a whole number above zero.")
			}
			r.threshold = n
		}
	}
	return nil
}

// compaction seals a summary.
func (s seals) compaction(summary string) string {
	return reasoningPrefix + encoding.EncodeToString(s.ring.Close(seal.Compaction, seal.Bind([]byte(s.owner)), []byte(summary), time.Time{}))
}

// openCompaction returns what [seals.compaction] sealed.
func (s seals) openCompaction(sealed string) (summary string, ok bool) {
	encoded, ok := strings.CutPrefix(sealed, reasoningPrefix)
	if !ok {
		return "", false
	}
	closed, err := encoding.DecodeString(encoded)
	if err != nil {
		return "", false
	}
	plain, err := s.ring.Open(seal.Compaction, seal.Bind([]byte(s.owner)), closed)
	return string(plain), err == nil
}

// summaryHead stands before a summary.
const summaryHead = "(A summary of the conversation so far, in place of all but what people wrote in it:)\n"

// summarised is the message with a summary. It is no system's: the model wrote it, of what
// may be from outside.
func summarised(summary string) json.RawMessage {
	return model.ChatMessage("user", rawjson.Quote(summaryHead+summary))
}

// written returns those of messages that people and developers wrote. An earlier summary is
// in the one that comes.
func written(messages []json.RawMessage) (kept []json.RawMessage) {
	for _, message := range messages {
		if o, err := rawjson.ParseObject(message); err == nil {
			if role := stringOf(o, "role"); role == "system" || role == "user" && !strings.HasPrefix(stringOf(o, "content"), summaryHead) {
				kept = append(kept, message)
			}
		}
	}
	return kept
}

// keepWritten leaves of the messages what people and developers wrote. What an earlier
// compaction left is not looked at again.
func (h *history) keepWritten() {
	if h.noted > h.left {
		h.noted = h.left + len(written(h.messages[h.left:h.noted]))
	}
	h.messages = append(h.messages[:h.left], written(h.messages[h.left:])...)
	h.left = len(h.messages)
}

// compaction takes an item in place of what stands before it. One that another provider
// sealed is of no use here.
func (h *history) compaction(o *rawjson.Object) {
	summary, ok := h.seals.openCompaction(stringOf(o, "encrypted_content"))
	if !ok {
		h.leftOut()
		return
	}
	h.endTurn()
	h.keepWritten()
	h.messages = append(h.messages, summarised(summary))
	clear(h.whole)
	clear(h.open)
	clear(h.results)
	clear(h.more)
	h.settled, h.answered = len(h.messages), nil
}

// everything returns the messages of a history with what the client brings beside them, and
// what the model is told.
func (h *history) everything() (all []json.RawMessage) {
	notes := h.notes()
	for i, message := range h.messages {
		if note := notes[i]; note != nil {
			all = append(all, note)
		}
		if whole, ok := h.whole[i]; ok {
			all = append(all, whole...)
			continue
		}
		all = append(all, message)
	}
	return all
}

// compacts reports whether the history is to be compacted before the model is asked.
func (c *Conversation) compacts() bool {
	if c.thread.Resume != nil || len(c.history.answered) > 0 {
		return false
	}
	if c.history.trigger {
		return true
	}
	if c.request.threshold == 0 {
		return false
	}
	all, can := 0, 0
	for _, message := range c.dialogue.History() {
		n := result.EstimateTokens(string(message))
		if all += n; len(written([]json.RawMessage{message})) == 0 {
			can += n
		}
	}
	return all > c.request.threshold && can > all/4 // else there is nothing to be won
}

// compact puts a summary in the place of the history, and its item into the output.
func (c *Conversation) compact(ctx context.Context) error {
	c.begin(nil)
	id := c.answer.name("cmp_")
	at := c.answer.add(compactionItem(id, ""))
	c.answer.event("response.compaction.compacting", text("item_id", id), number("output_index", at))
	if err := c.out.Flush(); c.request.Stream && err != nil {
		return err
	}
	history := c.dialogue.History()
	s, err := c.options.Model.Summarise(ctx, c.request.upstream, history)
	if err != nil {
		return err
	}
	c.usage = c.options.Sum(c.usage, s.Usage)
	c.dialogue.Tokens, c.dialogue.Estimated = c.dialogue.Tokens+s.Tokens, c.dialogue.Estimated || s.Estimated
	c.dialogue.Restart(append(written(history), summarised(s.Text))...)
	c.answer.done(at, compactionItem(id, c.seals.compaction(s.Text)))
	return nil
}

func compactionItem(id, sealed string) json.RawMessage {
	return object(text("id", id), text("type", "compaction"), text("encrypted_content", sealed))
}

// Compact answers a request to POST /v1/responses/compact: with what people and developers
// wrote, and a compaction item in place of everything else.
func Compact(ctx context.Context, request *Request, options Options) (document json.RawMessage, err error) {
	if options.Model == nil {
		return nil, model.ErrNoClient
	}
	s := options.sealsFor(request)
	h, err := readHistory(request, &clientTools{names: map[string]bool{}, byName: map[string]clientTool{}}, s)
	if err != nil {
		return nil, err
	}
	messages := h.everything()
	if len(messages) == 0 {
		return nil, model.Invalid("input", "There is nothing to compact: the request needs input.")
	}
	summary, err := options.Model.Summarise(ctx, request.upstream, messages)
	if err != nil {
		return nil, err
	}
	var output []json.RawMessage
	for _, item := range withIDs(request.items, newID) {
		o, err := rawjson.ParseObject(item)
		if err == nil && kindOf(o) == "message" && slices.Contains([]string{"user", "system", "developer"}, stringOf(o, "role")) {
			output = append(output, Shown(item))
		}
	}
	output = append(output, compactionItem(newID("cmp_"), s.compaction(summary.Text)))
	usage := summary.Usage
	if usage == nil {
		usage = json.RawMessage("{}")
	}
	return object(
		text("id", newID(IDPrefix)), text("object", "response.compaction"), number("created_at", int(time.Now().Unix())),
		raw("output", array(output...)), raw("usage", responseUsage(usage)),
	), nil
}
