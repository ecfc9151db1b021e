package messages

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/output"
)

// A writer writes one message to the client: event by event where that is a stream,
// else as a whole. Blocks come one after the other.
type writer struct {
	out       *output.Output
	stream    bool
	id, model string
	sign      func(field, text string, within bool) string // the signature of thoughts
	omitted   bool                                         // the client does not get their text
	size      func() int                                   // about how many tokens the request has

	started bool
	blocks  []json.RawMessage // those that are whole

	// The block that is being written.
	kind   string // text or thinking; empty for none
	field  string // where thoughts came from
	text   strings.Builder
	spoke  bool // the message of the model has text already
	within bool // which the thoughts stand behind
}

// Prefixes of ids of ours: of messages, of the client's calls and of ours.
const (
	messageID = "msg_dg"
	useID     = "toolu_dg"
	mcpUseID  = "mcptoolu_dg"

	searchUseID = "srvtoolu_dg"
)

// newID returns a random id of ours.
func newID(prefix string) string { return prefix + rand.Text()[:22] }

// tagSize is how long the part of a call's id is that all calls of one message of the
// model have in common, so that they are one message again when they come back.
const tagSize = 10

func callID(prefix, tag string) string { return prefix + tag + rand.Text()[:22-tagSize] }

// tagOf returns that part of an id; empty where it is none of ours.
func tagOf(id string) string {
	for _, prefix := range []string{useID, mcpUseID, searchUseID} {
		if rest, ok := strings.CutPrefix(id, prefix); ok && len(rest) == 22 {
			return rest[:tagSize]
		}
	}
	return ""
}

// event writes an event of a stream.
func (w *writer) event(name string, o *rawjson.Object) { w.out.Event(name, o.Bytes()) }

// members returns an object with the names and values of pairs. Nobody changes the values.
func members(pairs ...any) *rawjson.Object {
	o := &rawjson.Object{Members: make([]rawjson.Member, 0, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		var value json.RawMessage
		switch v := pairs[i+1].(type) {
		case string:
			value = rawjson.Literal(v)
		case int:
			value = strconv.AppendInt(nil, int64(v), 10)
		case json.RawMessage:
			value = v
		case []byte:
			value = v
		case *rawjson.Object:
			value = v.Bytes()
		}
		o.Members = append(o.Members, rawjson.Member{Name: pairs[i].(string), Value: value})
	}
	return o
}

var null = json.RawMessage("null")

// message is the message without what is only known in its end.
func (w *writer) message(used usage) *rawjson.Object {
	return members("id", w.id, "type", "message", "role", "assistant", "model", w.model, "content", json.RawMessage("[]"),
		"stop_reason", null, "stop_sequence", null, "usage", used.object(w.model))
}

// start begins the message, once. What went in is an estimate there: the upstream says it in
// the end, but clients such as LangChain and Strands read it here alone.
func (w *writer) start() {
	if w.started {
		return
	}
	if w.started = true; w.stream {
		w.event("message_start", members("type", "message_start", "message", w.message(usage{input: w.size()})))
	}
}

// delta writes a piece of the block that is being written: the member of the delta that
// grows, and its text. An answer is made of these, so that no more than it takes is built.
func (w *writer) delta(kind, member, text string) {
	if !w.stream {
		return
	}
	w.out.Build("content_block_delta", func(e []byte) []byte {
		e = strconv.AppendInt(append(e, `{"type":"content_block_delta","index":`...), int64(len(w.blocks)), 10)
		e = append(rawjson.AppendQuote(append(e, `,"delta":{"type":`...), kind), ',')
		return append(rawjson.AppendQuote(append(rawjson.AppendQuote(e, member), ':'), text), "}}"...)
	})
}

// begin begins a block, of which a stream says first what it is.
func (w *writer) begin(block *rawjson.Object) {
	if w.start(); w.stream {
		w.event("content_block_start", members("type", "content_block_start", "index", len(w.blocks), "content_block", block))
	}
}

// say writes a piece of text.
func (w *writer) say(piece string) {
	if piece == "" {
		return
	}
	if w.kind != "text" {
		w.end()
		w.kind = "text"
		w.begin(members("type", "text", "text", ""))
	}
	w.spoke = true
	w.text.WriteString(piece)
	w.delta("text_delta", "text", piece)
}

// think writes a piece of thoughts, which came in a member of the upstream's.
func (w *writer) think(field, piece string) {
	if piece == "" {
		return
	}
	if w.kind != "thinking" || w.field != field {
		w.end()
		w.kind, w.field, w.within = "thinking", field, w.spoke
		w.begin(members("type", "thinking", "thinking", "", "signature", ""))
	}
	if w.text.WriteString(piece); !w.omitted {
		w.delta("thinking_delta", "thinking", piece)
	}
}

// end ends the block that is being written.
func (w *writer) end() {
	text := w.text.String()
	w.text.Reset()
	switch w.kind {
	case "":
		return
	case "text":
		w.stop(members("type", "text", "text", text))
	case "thinking":
		signature := w.sign(w.field, text, w.within)
		w.delta("signature_delta", "signature", signature)
		if w.omitted {
			text = ""
		}
		w.stop(members("type", "thinking", "thinking", text, "signature", signature))
	}
	w.kind = ""
}

// whole ends a message of the model, of which an answer may have several.
func (w *writer) whole() {
	w.within = false // no text of its stands behind thoughts that end it
	w.end()
	w.spoke = false
}

func (w *writer) stop(block *rawjson.Object) {
	if w.stream {
		w.event("content_block_stop", members("type", "content_block_stop", "index", len(w.blocks)))
	}
	w.blocks = append(w.blocks, block.Bytes())
}

// put writes a whole block. What a call is given comes as a delta of its own.
func (w *writer) put(block *rawjson.Object) {
	w.end()
	input := block.Get("input")
	if input == nil {
		w.begin(block)
	} else {
		bare := block.Clone()
		bare.Set("input", json.RawMessage("{}"))
		w.begin(bare)
		w.delta("input_json_delta", "partial_json", string(input))
	}
	w.stop(block)
}

// again writes the blocks of an answer that its client did not get.
func (w *writer) again(blocks []json.RawMessage) {
	w.start()
	for _, raw := range blocks {
		block, err := rawjson.ParseObject(raw)
		if err != nil {
			continue // we made it
		}
		text, _ := rawjson.String(block.Get("text"))
		thought, _ := rawjson.String(block.Get("thinking"))
		signature, _ := rawjson.String(block.Get("signature"))
		switch kind, _ := rawjson.String(block.Get("type")); kind {
		case "text":
			w.say(text)
			w.end()
		case "thinking":
			w.begin(members("type", "thinking", "thinking", "", "signature", ""))
			if thought != "" {
				w.delta("thinking_delta", "thinking", thought)
			}
			w.delta("signature_delta", "signature", signature)
			w.stop(block)
		default:
			w.put(block)
		}
	}
}

// finish ends the message.
func (w *writer) finish(reason, sequence string, used usage) error {
	w.start()
	w.end()
	stopped := null
	if sequence != "" {
		stopped = rawjson.Quote(sequence)
	}
	if !w.stream {
		m := w.message(used)
		m.Set("content", rawjson.AppendArray(nil, w.blocks))
		m.Set("stop_reason", rawjson.Quote(reason))
		m.Set("stop_sequence", stopped)
		return w.out.Body(append(bytes.Clone(m.Bytes()), '\n'))
	}
	cost := used.object(w.model)
	if used.input == 0 { // the upstream does not say: the estimate stays
		cost.Set("input_tokens", null)
	}
	w.event("message_delta", members("type", "message_delta", "delta", members("stop_reason", reason, "stop_sequence", stopped), "usage", cost))
	w.event("message_stop", members("type", "message_stop"))
	return w.out.Flush()
}

// usage is what a message cost, in tokens. How many of them came from a cache is null
// where the upstream does not say: many have a cache and do not tell.
type usage struct {
	input, cached, output int
	told                  bool // of cached
	searches              int
	rounds                []usage // what each cost of which it is known, where there are several
}

// object returns usage as the client gets it. Iterations are Anthropic's way to say what
// each round of a loop on a server cost: the sum says nothing about how long the
// conversation is, and Claude Code goes by the last of them to know when to summarise
// (BetaIterationsUsage in Anthropic's SDK).
func (u usage) object(name string) *rawjson.Object {
	created, cached := null, null
	if u.told {
		created, cached = json.RawMessage("0"), strconv.AppendInt(nil, int64(u.cached), 10)
	}
	o := members("input_tokens", u.input, "cache_creation_input_tokens", created, "cache_read_input_tokens", cached, "output_tokens", u.output)
	if u.searches > 0 {
		o.Set("server_tool_use", members("web_search_requests", u.searches, "web_fetch_requests", 0).Bytes())
	}
	if len(u.rounds) > 0 {
		rounds := make([]json.RawMessage, len(u.rounds))
		for i, r := range u.rounds {
			rounds[i] = members("type", "message", "model", name, "input_tokens", r.input, "output_tokens", r.output,
				"cache_creation_input_tokens", 0, "cache_read_input_tokens", r.cached, "cache_creation", null).Bytes()
		}
		o.Set("iterations", rawjson.AppendArray(nil, rounds))
	}
	return o
}

// readUsage reads usages of a Chat API, one of each round, and adds each to the sum.
func readUsage(rounds []json.RawMessage, add func(sum, round json.RawMessage) json.RawMessage) usage {
	var sum json.RawMessage
	for _, raw := range rounds {
		sum = add(sum, raw)
	}
	u := readRound(sum)
	if len(rounds) > 1 {
		for _, raw := range rounds {
			if r := readRound(raw); r.input+r.cached > 0 { // one of nothing would make the conversation empty
				u.rounds = append(u.rounds, r)
			}
		}
	}
	return u
}

// readRound reads a usage of a Chat API.
func readRound(raw json.RawMessage) (u usage) {
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return u
	}
	u.input, _ = rawjson.Int(o.Get("prompt_tokens"))
	u.output, _ = rawjson.Int(o.Get("completion_tokens"))
	if details, err := rawjson.ParseObject(o.Get("prompt_tokens_details")); err == nil {
		u.cached, u.told = rawjson.Int(details.Get("cached_tokens"))
	}
	u.cached = min(max(u.cached, 0), u.input)
	u.input -= u.cached
	return u
}
