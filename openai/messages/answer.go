package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// showCalls shows the client the calls of ours that a message makes, before they are
// made: searches that it declared itself, and all of them where it sees those of servers.
func (c *Conversation) showCalls(ctx context.Context, round *model.Round, tag string) {
	c.shownAs = map[string]string{}
	raw := map[string]json.RawMessage{}
	for _, run := range round.Run {
		switch {
		case hosted.Is(run.Tool):
			c.shownAs[run.ID] = callID(searchUseID, tag)
		case c.request.shown():
			c.shownAs[run.ID] = callID(mcpUseID, tag)
		}
	}
	for i := range round.Message.Calls {
		call := &round.Message.Calls[i]
		if id := call.Client; !call.Ours() {
			raw[id] = call.Raw
		} else if id := c.shownAs[call.ID]; id != "" {
			raw[id] = call.Raw
		}
	}
	if c.request.shown() {
		c.showRest(round.Reply, raw)
		c.keepRest(ctx, round, tag, raw)
	}
	for i := range round.Run {
		run := &round.Run[i]
		id := c.shownAs[run.ID]
		if id == "" {
			continue
		}
		if hosted.Is(run.Tool) {
			c.write.put(searchUse(id, run))
			continue
		}
		server, name := own, run.Name
		if t := run.Tool; t != nil {
			name = t.Original
			if t.Server != "" {
				server = t.Server
			}
		}
		input := run.Arguments
		if rawjson.Kind(input) != '{' {
			input = json.RawMessage("{}")
		}
		c.write.put(members("type", "mcp_tool_use", "id", id, "name", name, "server_name", server, "input", input))
	}
	if c.request.Stream && len(c.shownAs) > 0 {
		_ = c.out.Flush() // a client that is gone shows elsewhere
	}
}

// showRest gives the client what the upstream wants back of a message, closed.
func (c *Conversation) showRest(r *model.Reply, calls map[string]json.RawMessage) {
	if !c.request.thinks || r == nil || r.Message == nil {
		return
	}
	if data := c.thoughts.sealRest(restOf(c.dialogue.Remember(r), calls)); data != "" {
		c.write.put(members("type", "redacted_thinking", "data", data))
	}
}

// showResults shows the client what came of calls of ours. One that waits for somebody's
// answer was not made: the client is told so in its place, and the model when the client
// goes on.
func (c *Conversation) showResults(run []dragoman.Call, results []dragoman.Result) {
	for i := range run {
		at := slices.IndexFunc(c.pending.Message.Calls, func(call memory.Call) bool { return call.Ours() && call.ID == run[i].ID })
		if at < 0 || c.shownAs[run[i].ID] == "" {
			continue
		}
		call := &c.pending.Message.Calls[at]
		if hosted.Is(run[i].Tool) {
			c.searched++
			c.write.put(c.searchResult(c.shownAs[call.ID], &run[i], &results[i]))
			continue
		}
		text, failed := resultText(call.Result), results[i].Failed || results[i].Problem != nil
		if call.Waiting != nil {
			text, failed = failure("It was not run yet: "+waits(call.Waiting)+" Call it again then."), true
		}
		isError := json.RawMessage("false")
		if failed {
			isError = json.RawMessage("true")
		}
		content := rawjson.AppendArray(nil, []json.RawMessage{members("type", "text", "text", text).Bytes()})
		c.write.put(members("type", "mcp_tool_result", "tool_use_id", c.shownAs[call.ID], "is_error", isError, "content", json.RawMessage(content)))
	}
}

// resultText returns the text of a tool message.
func resultText(message json.RawMessage) string {
	o, err := rawjson.ParseObject(message)
	if err != nil {
		return ""
	}
	if text, ok := rawjson.String(o.Get("content")); ok {
		return text
	}
	parts, _ := rawjson.Elements(o.Get("content"))
	var texts []string
	for _, raw := range parts {
		if part, err := rawjson.ParseObject(raw); err == nil {
			if text, ok := rawjson.String(part.Get("text")); ok {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}

// waits says what a call waits for.
func waits(w *memory.Waiting) string {
	if slices.ContainsFunc(w.Questions, func(q memory.Question) bool { return q.Operator }) {
		return fmt.Sprintf("somebody has to approve the call of %q of %q, in the inbox at /approvals or with \"dragoman approve\".", w.Original, w.Server)
	}
	return fmt.Sprintf("the tool %q of %q needs an answer before it can go on.", w.Original, w.Server)
}

// sayAsks tells the client in words that an answer is needed.
func (c *Conversation) sayAsks(m *memory.Message) {
	var lines []string
	for i := range m.Calls {
		if w := m.Calls[i].Waiting; w != nil {
			lines = append(lines, "Before this goes on, "+waits(w))
		}
	}
	text := strings.Join(lines, "\n")
	c.write.end()
	c.write.say(text)
	c.visible = append(c.visible, text)
}

// finish ends the answer: with the client's calls where the model made some, and with
// the model's last words where it did not.
func (c *Conversation) finish(ctx context.Context) error {
	r, round := c.last, c.pending
	if r == nil {
		r = round.Reply
	}
	if c.last = r; c.told != r {
		c.see(r)
	}
	c.begin()
	reason, sequence := c.stopped(r)
	if round != nil {
		if waiting := round.Message.Waits(); waiting && !round.Mixed() {
			reason = "pause_turn"
			if !c.request.shown() && c.request.format == nil {
				c.sayAsks(round.Message)
			}
		}
		c.thread.Unseen = c.unseen(round)
		c.thread.KeepOpen(ctx, round, c.seen())
		if round.Mixed() {
			reason = "tool_use"
			if err := c.handOver(round); err != nil {
				return err
			}
		}
	}
	used := readUsage(c.usage, c.options.Sum)
	used.searches = c.searched
	return c.write.finish(reason, sequence, used)
}

// unseen reports whether an upstream wants something back of a message that the client does not
// get, since it asked for no thoughts.
func (c *Conversation) unseen(round *model.Round) bool {
	if c.request.thinks || c.options.Model.API != model.ChatAPI {
		return false
	}
	for name, value := range c.dialogue.Remember(round.Reply).All() {
		if text, isText := rawjson.String(value); wantedBack(name, value) && !(isText && text == "") {
			return true
		}
	}
	return slices.ContainsFunc(round.Message.Calls, func(call memory.Call) bool { return more(call.Raw) })
}

// handOver gives the client its calls.
func (c *Conversation) handOver(round *model.Round) error {
	var uses []*rawjson.Object
	raw := map[string]json.RawMessage{}
	for i := range round.Message.Calls {
		call := &round.Message.Calls[i]
		if call.Ours() {
			continue
		}
		use, err := c.request.toolUse(call)
		if err != nil {
			return err
		}
		uses, raw[call.Client] = append(uses, use), call.Raw
	}
	if !c.request.shown() {
		c.showRest(round.Reply, raw)
	}
	for _, use := range uses {
		c.write.put(use)
	}
	return nil
}

// toolUse returns the block of a call of the client's. Arguments that are no object are
// no call: nobody knows what they were to be.
func (r *Request) toolUse(call *memory.Call) (*rawjson.Object, error) {
	o, err := rawjson.ParseObject(recall.Visible(call))
	if err != nil {
		return nil, err // we made it
	}
	f, err := rawjson.ParseObject(o.Get("function"))
	if err != nil {
		return nil, err // we made it
	}
	name, _ := rawjson.String(f.Get("name"))
	text, _ := rawjson.String(f.Get("arguments"))
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	input, err := rawjson.ParseObject([]byte(text))
	if err != nil || rawjson.Check([]byte(text)) != nil {
		return nil, &model.Error{
			Status: http.StatusBadGateway, Type: model.TypeServer, Code: model.CodeUpstreamInvalid, Err: err,
			Message: fmt.Sprintf("The model called the tool %q with arguments that are no JSON object.", name),
		}
	}
	if t, ok := r.families[name]; ok {
		return members("type", "tool_use", "id", call.Client, "name", t.member, "toolset_name", t.family, "input", input), nil
	}
	return members("type", "tool_use", "id", call.Client, "name", name, "input", input), nil
}

// stopped returns why a reply ended, and the text that ended it where the upstream says
// so, as vLLM does.
func (c *Conversation) stopped(r *model.Reply) (reason, sequence string) {
	switch r.Finish {
	case "length", "model_length":
		return "max_tokens", ""
	case "content_filter":
		return "refusal", ""
	}
	if r.Message != nil {
		if refused, _ := rawjson.String(r.Message.Get("refusal")); refused != "" {
			return "refusal", ""
		}
	}
	if r.Choice != nil {
		if stop, _ := rawjson.String(r.Choice.Get("stop_reason")); stop != "" && slices.Contains(c.request.stops, stop) {
			return "stop_sequence", stop
		}
	}
	return "end_turn", ""
}

// An undelivered answer is what a client was to see of a turn beside its calls, as it is
// kept for the request when it is sent again.
type undelivered struct {
	ID      string            `json:"id"`
	Blocks  []json.RawMessage `json:"blocks,omitempty"`
	Visible []string          `json:"visible,omitempty"`
	Rounds  []json.RawMessage `json:"rounds,omitempty"` // what each cost
	Message json.RawMessage   `json:"message,omitempty"`
	Finish  string            `json:"finish,omitempty"`
}

func (c *Conversation) undelivered() json.RawMessage {
	r := c.pending.Reply
	kept := slices.DeleteFunc(slices.Clone(c.write.blocks), func(raw json.RawMessage) bool {
		block, err := rawjson.ParseObject(raw)
		if err != nil {
			return true // we made it
		}
		kind, _ := rawjson.String(block.Get("type"))
		return kind == "tool_use" // they are given again
	})
	document, err := json.Marshal(undelivered{c.write.id, kept, c.visible, c.usage, r.Message.Bytes(), r.Finish})
	if err != nil {
		c.options.Log.Error("an answer was not kept", "error", err)
		return nil
	}
	return document
}

// repeat takes up a request again whose answer the client does not have.
func (c *Conversation) repeat(lost *recall.Lost) {
	var a undelivered
	if json.Unmarshal(lost.Answer, &a) != nil {
		return // we made it
	}
	message, err := rawjson.ParseObject(a.Message)
	if err != nil {
		return // we made it
	}
	r := &model.Reply{Envelope: &rawjson.Object{}, Choice: &rawjson.Object{}, Message: message, Finish: a.Finish}
	c.pending = &model.Round{Reply: r, Message: lost.Open}
	c.told, c.visible, c.usage, c.write.id = r, a.Visible, a.Rounds, a.ID
	c.out.Begin(nil)
	c.write.again(a.Blocks)
}
