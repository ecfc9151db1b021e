package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Request is a request to POST /v1/messages. Parse it with [Parse].
type Request struct {
	// Model is the model's name in the request.
	Model string
	// Stream reports whether the client asked for an event stream.
	Stream bool
	// Servers are the MCP servers, and tools of theirs, that the request chooses. Empty
	// means that it does not choose.
	Servers []model.ServerChoice
	// Search is what the request says of searches of the web; nil where it declares none.
	Search *hosted.Wanted
	// List reports whether the client wants to be told the tools of the servers that it
	// chose, in blocks of the type mcp_tool_listing: see [Request.Flags].
	List bool

	object   *rawjson.Object
	upstream string // the upstream's name of the model
	system   []block
	turns    []turn

	tools     []json.RawMessage     // the client's own, as functions
	names     map[string]bool       // of those
	families  map[string]familyTool // and of those, members of a family
	choice    model.Choice
	oneCall   bool
	off       map[serverTool]bool // tools of servers that the request turns off
	listed    map[string]bool     // servers whose tools the client knows
	changes   []change            // of the tools, in the order of the conversation
	brought   map[string]bool     // names of those that the conversation has added
	deferred  []deferred          // those of tools that are to be loaded later
	withholds bool                // some of those are not there yet
	searches  bool                // a search of Anthropic's may load those

	stops   []string
	format  json.RawMessage // response_format; nil for none
	effort  string
	thinks  bool // thoughts are wanted
	omitted bool // without their text
	user    string
}

// A serverTool is a tool by the label of its server and its name there.
type serverTool struct{ server, name string }

// A turn is one message of a request, or several of the same role behind each other.
type turn struct {
	role    string
	message int // the place of its first message
	blocks  []block
}

// place says where in the request the turn stands.
func (t *turn) place() string { return fmt.Sprintf("messages.%d", t.message) }

// A block is one block of a turn's content.
type block struct {
	kind    string
	message int // the place of its message
	at      int // its place in that; -1 where the content is a text
	*rawjson.Object
}

// place says where in the request the block of a turn stands.
func (b block) place() string {
	if b.at < 0 {
		return fmt.Sprintf("messages.%d.content", b.message)
	}
	return fmt.Sprintf("messages.%d.content.%d", b.message, b.at)
}

// wrong is the error of what stands at a place, which begins with a dot where it is one
// within something that the caller knows: see [within].
func wrong(place, text string) *model.Error { return model.Invalid(place, place+": "+text) }

// within says where that stands in which an error names a place.
func within(place string, err error) error {
	if e, ok := errors.AsType[*model.Error](err); ok && (e.Param == "" || e.Param[0] == '.') {
		e.Param, e.Message = place+e.Param, place+e.Message
	}
	return err
}

func (b block) text(member string) string {
	s, _ := rawjson.String(b.Get(member))
	return s
}

// maxTurns is the number of messages that a request may have, as the API says.
const maxTurns = 100_000

// Parse reads a request body strictly: one JSON object, valid UTF-8, no duplicate names.
// Members that are unknown here are left out of what goes upstream. The error is an
// [*model.Error] with status 400.
func Parse(body []byte) (*Request, error) { return parse(body, true) }

// ParseCount reads the body of a request to POST /v1/messages/count_tokens, which is that
// of [Parse] without max_tokens.
func ParseCount(body []byte) (*Request, error) { return parse(body, false) }

func parse(body []byte, answered bool) (*Request, error) {
	o, messages, err := model.ReadBody(body, "messages")
	if err != nil {
		return nil, err
	}
	r := &Request{object: o, names: map[string]bool{}, off: map[serverTool]bool{}, listed: map[string]bool{}}
	err = r.readBasics()
	if err == nil && answered {
		err = r.readBounds()
	}
	if err == nil {
		err = r.readSystem()
	}
	if err == nil {
		err = r.readTurns(messages)
	}
	for _, read := range []func(*Request) error{(*Request).readServers, (*Request).readTools, (*Request).changeServers, (*Request).readChoice, (*Request).readOutput, (*Request).readThinking} {
		if err == nil {
			err = read(r)
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Request) readBasics() (err error) {
	name, ok := rawjson.String(r.object.Get("model"))
	if !ok || name == "" {
		return model.Invalid("model", "model: the request must name a model, as a string.")
	}
	if twin := r.object.Twin("model"); twin != "" {
		return model.Invalid(twin, fmt.Sprintf("%q is no member of a request, but some APIs take it for \"model\": leave it out.", twin))
	}
	if !rawjson.IsNull(r.object.Get("thread")) {
		// Without what was said before, which only such a server has, the answer would be wrong.
		return &model.Error{
			Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: codeNoThreads, Param: "thread",
			Message: "thread: nothing is held here between requests. Send the whole conversation, without thread.",
		}
	}
	if !rawjson.IsNull(r.object.Get("compaction")) {
		// It asks for a summary in place of a turn: tools of ours must not run for it.
		return wrong("compaction", "conversations are not summarised here. Leave it out, or ask for a summary in a message.")
	}
	r.Model, r.upstream = name, name
	if r.Stream, err = model.Boolean(r.object, "stream"); err != nil {
		return err
	}
	if metadata, err := rawjson.ParseObject(r.object.Get("metadata")); err == nil {
		r.user, _ = rawjson.String(metadata.Get("user_id"))
	}
	return recall.CheckName("metadata.user_id", r.user)
}

// readBounds reads what bounds the answer.
func (r *Request) readBounds() error {
	if most, ok := rawjson.Int(r.object.Get("max_tokens")); !ok || most < 1 {
		return model.Invalid("max_tokens", "max_tokens: the request must say how many tokens the answer may have, as an integer of at least 1.")
	}
	for name, most := range map[string]float64{"temperature": 1, "top_p": 1} {
		raw := r.object.Get(name)
		if rawjson.IsNull(raw) {
			continue
		}
		var n float64
		if json.Unmarshal(raw, &n) != nil || n < 0 || n > most {
			return model.Invalid(name, fmt.Sprintf("%s: must be a number from 0 to %g.", name, most))
		}
	}
	raw := r.object.Get("stop_sequences")
	if rawjson.IsNull(raw) {
		return nil
	}
	all, err := rawjson.Elements(raw)
	for _, each := range all {
		stop, ok := rawjson.String(each)
		if !ok || stop == "" {
			return model.Invalid("stop_sequences", "stop_sequences: each must be a string that is not empty.")
		}
		r.stops = append(r.stops, stop)
	}
	if err != nil {
		return model.Invalid("stop_sequences", "stop_sequences: must be an array of strings.")
	}
	return nil
}

func (r *Request) readSystem() (err error) {
	if raw := r.object.Get("system"); !rawjson.IsNull(raw) {
		r.system, err = blocks(raw)
	}
	for i, b := range r.system {
		if b.kind != "text" {
			return wrong(fmt.Sprintf("system.%d", i), "the system prompt has blocks of the type text alone.")
		}
	}
	return within("system", err)
}

func (r *Request) readTurns(messages []json.RawMessage) error {
	if len(messages) == 0 {
		return model.Invalid("messages", "messages: at least one message is required.")
	}
	if len(messages) > maxTurns {
		return model.Invalid("messages", fmt.Sprintf("messages: there may be %d at most.", maxTurns))
	}
	r.turns = make([]turn, 0, len(messages))
	in := &blockReader{atOnce: min(len(messages), 64)}
	for i, raw := range messages {
		if err := r.readTurn(in, i, raw); err != nil {
			return within(fmt.Sprintf("messages.%d", i), err)
		}
	}
	return nil
}

// A blockReader is what content is taken apart in, that of one message after the other.
type blockReader struct {
	message  rawjson.Object
	elements []json.RawMessage // of the content

	// Room for blocks to come, which is made for so many at once, or for more.
	atOnce  int
	blocks  []block
	objects []rawjson.Object
	members []rawjson.Member
}

// usualMembers are so many that a block has.
const usualMembers = 4

// room returns so many blocks, with objects that have room for what is usual.
func (in *blockReader) room(n int) []block {
	if len(in.blocks) < n {
		size := max(n, in.atOnce)
		in.blocks, in.objects, in.members = make([]block, size), make([]rawjson.Object, size), make([]rawjson.Member, usualMembers*size)
	}
	all := in.blocks[:n:n]
	for i := range all {
		in.objects[i].Members = in.members[usualMembers*i : usualMembers*i : usualMembers*(i+1)]
		all[i].Object = &in.objects[i]
	}
	in.blocks, in.objects, in.members = in.blocks[n:], in.objects[n:], in.members[usualMembers*n:]
	return all
}

// readTurn reads a message.
func (r *Request) readTurn(in *blockReader, i int, raw json.RawMessage) error {
	o := &in.message
	if o.Parse(raw) != nil {
		return wrong("", "each message must be an object.")
	}
	t := turn{message: i}
	switch t.role, _ = rawjson.String(o.Get("role")); t.role {
	case "user", "assistant", "system":
	default:
		return wrong(".role", "must be user, assistant or system.")
	}
	var err error
	if t.blocks, err = in.read(o.Get("content")); err != nil {
		return within(".content", err)
	}
	for j := range t.blocks {
		b := &t.blocks[j]
		if b.message = i; b.kind == "mcp_tool_listing" {
			r.listed[b.text("mcp_server_name")] = true
		}
		if err := r.readChanges(b, t.role); err != nil {
			return err
		}
	}
	if last := len(r.turns) - 1; last >= 0 && r.turns[last].role == t.role { // they are one, as the API says
		r.turns[last].blocks = append(r.turns[last].blocks, t.blocks...)
		return nil
	}
	r.turns = append(r.turns, t)
	return nil
}

// blocks reads content: see [blockReader.read].
func blocks(raw json.RawMessage) ([]block, error) { return new(blockReader).read(raw) }

// read reads content: a text, or an array of blocks. Errors name a place in it.
func (in *blockReader) read(raw json.RawMessage) (_ []block, err error) {
	if rawjson.Kind(raw) == '"' {
		all := in.room(1)
		all[0].kind, all[0].at = "text", -1
		all[0].Set("text", raw)
		return all, nil
	}
	if in.elements, err = rawjson.AppendElements(in.elements[:0], raw); err != nil {
		return nil, wrong("", "must be a string or an array of blocks.")
	}
	all := in.room(len(in.elements))
	for i, raw := range in.elements {
		b := &all[i]
		if b.at = i; b.Parse(raw) != nil {
			return nil, within(fmt.Sprintf(".%d", i), wrong("", "each block must be an object."))
		}
		if b.kind, _ = rawjson.String(b.Get("type")); b.kind == "" {
			return nil, within(fmt.Sprintf(".%d", i), wrong(".type", "each block has a type."))
		}
		if b.kind == "text" && rawjson.Kind(b.Get("text")) != '"' {
			return nil, within(fmt.Sprintf(".%d", i), wrong(".text", "must be a string."))
		}
	}
	return all, nil
}

// canBeStrict reports whether a schema can be strict as the Chat and the Responses API have
// it: every property required. This API takes strict schemas that have optional ones, which
// those refuse as a whole, and the client has no way to say that they are not to be strict.
func canBeStrict(schema json.RawMessage) bool { return len(dialect.StrictFaults(schema)) == 0 }

// readOutput reads how the answer is to look.
func (r *Request) readOutput() error {
	format := r.object.Get("output_format") // as it was called before it moved
	if raw := r.object.Get("output_config"); !rawjson.IsNull(raw) {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return model.Invalid("output_config", "output_config: must be an object.")
		}
		if own := o.Get("format"); !rawjson.IsNull(own) {
			format = own
		}
		r.effort, _ = rawjson.String(o.Get("effort"))
	}
	if rawjson.IsNull(format) {
		return nil
	}
	o, err := rawjson.ParseObject(format)
	if err != nil {
		return model.Invalid("output_config.format", "output_config.format: must be an object.")
	}
	kind, _ := rawjson.String(o.Get("type"))
	if kind != "json_schema" || rawjson.Kind(o.Get("schema")) != '{' {
		return model.Invalid("output_config.format", "output_config.format: must be of the type json_schema, with a schema.")
	}
	schema := o.Get("schema")
	r.format = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"answer","strict":` + strconv.FormatBool(canBeStrict(schema)) + `,"schema":` + string(schema) + `}}`)
	return nil
}

func (r *Request) readThinking() error {
	raw := r.object.Get("thinking")
	if rawjson.IsNull(raw) {
		return nil
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return model.Invalid("thinking", "thinking: must be an object.")
	}
	switch kind, _ := rawjson.String(o.Get("type")); kind {
	case "enabled", "adaptive", "between_tools":
		r.thinks = true
	case "disabled":
	default:
		return model.Invalid("thinking.type", "thinking.type: must be enabled, adaptive, between_tools or disabled.")
	}
	display, _ := rawjson.String(o.Get("display"))
	r.omitted = display == "omitted"
	return nil
}

// listFlag is the flag of the API since which clients know blocks that list tools.
const listFlag = "mcp-client-2026-09-15"

// Flags takes the values of the header anthropic-beta. Flags that are unknown here mean
// nothing.
func (r *Request) Flags(values []string) {
	for _, value := range values {
		for flag := range strings.SplitSeq(value, ",") {
			flag = strings.TrimSpace(flag)
			r.List = r.List || flag == listFlag
			if slices.ContainsFunc(changeFlags, func(begin string) bool { return strings.HasPrefix(flag, begin) }) {
				r.withholdDeferred()
			}
		}
	}
}

// Beside reports whether a request has nothing of what agents send with each turn of a
// conversation: tools, what the model is to think, and how its context is managed. Claude
// Code asks so for a title, or whether a call is safe.
func (r *Request) Beside() bool {
	tools, _ := rawjson.Elements(r.object.Get("tools"))
	return len(tools) == 0 && !r.thinks && rawjson.IsNull(r.object.Get("context_management"))
}

// Plans reports whether a request says that nothing is to be changed yet: Claude Code tells
// the mode that it is in to those who judge calls for it.
func (r *Request) Plans() bool {
	all, _ := rawjson.Elements(r.object.Get("safeguards"))
	return slices.ContainsFunc(all, func(raw json.RawMessage) bool {
		mode, _ := rawjson.String(rawjson.Get(rawjson.Get(raw, "classifier_context"), "permission_mode"))
		return mode == "plan"
	})
}

// Rename gives the request the name by which the upstream knows its model. Model keeps
// the client's.
func (r *Request) Rename(name string) { r.upstream = name }

// Withhold says why the model is to be offered no tools of ours; empty where it is.
func (r *Request) Withhold() string {
	if r.choice.Mode == "none" {
		return "tool_choice is none"
	}
	return ""
}

// Session names the conversation that the request says it belongs to, among those of its
// caller; empty where it does not say.
func (r *Request) Session() string { return r.user }

// shown reports whether the client sees the calls of our tools, and sends them back.
func (r *Request) shown() bool { return len(r.Servers) > 0 }
