package messages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
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

	tools   []json.RawMessage // the client's own, as functions
	names   map[string]bool   // of those
	choice  model.Choice
	oneCall bool
	off     map[serverTool]bool // tools of servers that the request turns off
	listed  map[string]bool     // servers whose tools the client knows

	stops   []string
	format  json.RawMessage // response_format; nil for none
	effort  string
	thinks  bool // thoughts are wanted
	omitted bool // without their text
	user    string
}

// A serverTool is a tool by the label of its server and its name there.
type serverTool struct{ server, name string }

// A turn is one message of a request.
type turn struct {
	role   string
	param  string
	blocks []block
}

// A block is one block of a turn's content.
type block struct {
	kind  string
	param string // where it stands in the request
	*rawjson.Object
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
	steps := []func() error{r.readBasics, r.readSystem, func() error { return r.readTurns(messages) }, r.readServers, r.readTools, r.readChoice, r.readOutput, r.readThinking}
	if answered {
		steps = slices.Insert(steps, 1, r.readBounds)
	}
	for _, read := range steps {
		if err := read(); err != nil {
			return nil, err
		}
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
	r.Model, r.upstream = name, name
	if r.Stream, err = model.Boolean(r.object, "stream"); err != nil {
		return err
	}
	if metadata, err := rawjson.ParseObject(r.object.Get("metadata")); err == nil {
		r.user, _ = rawjson.String(metadata.Get("user_id"))
	}
	return nil
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
		r.system, err = blocks(raw, "system")
	}
	for _, b := range r.system {
		if b.kind != "text" {
			return model.Invalid(b.param, b.param+": the system prompt has blocks of the type text alone.")
		}
	}
	return err
}

func (r *Request) readTurns(messages []json.RawMessage) error {
	if len(messages) == 0 {
		return model.Invalid("messages", "messages: at least one message is required.")
	}
	if len(messages) > maxTurns {
		return model.Invalid("messages", fmt.Sprintf("messages: there may be %d at most.", maxTurns))
	}
	for i, raw := range messages {
		param := fmt.Sprintf("messages.%d", i)
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return model.Invalid(param, param+": each message must be an object.")
		}
		t := turn{param: param}
		switch t.role, _ = rawjson.String(o.Get("role")); t.role {
		case "user", "assistant", "system":
		default:
			return model.Invalid(param+".role", param+".role: must be user, assistant or system.")
		}
		if t.blocks, err = blocks(o.Get("content"), param+".content"); err != nil {
			return err
		}
		for _, b := range t.blocks {
			if b.kind == "mcp_tool_listing" {
				r.listed[b.text("mcp_server_name")] = true
			}
		}
		if last := len(r.turns) - 1; last >= 0 && r.turns[last].role == t.role { // they are one, as the API says
			r.turns[last].blocks = append(r.turns[last].blocks, t.blocks...)
			continue
		}
		r.turns = append(r.turns, t)
	}
	return nil
}

// blocks reads content: a text, or an array of blocks.
func blocks(raw json.RawMessage, param string) ([]block, error) {
	if text, ok := rawjson.String(raw); ok {
		return []block{textBlock(text, param)}, nil
	}
	elements, err := rawjson.Elements(raw)
	if err != nil {
		return nil, model.Invalid(param, param+": must be a string or an array of blocks.")
	}
	all := make([]block, 0, len(elements))
	for i, raw := range elements {
		at := fmt.Sprintf("%s.%d", param, i)
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, model.Invalid(at, at+": each block must be an object.")
		}
		b := block{param: at, Object: o}
		if b.kind, _ = rawjson.String(o.Get("type")); b.kind == "" {
			return nil, model.Invalid(at+".type", at+".type: each block has a type.")
		}
		if _, ok := rawjson.String(o.Get("text")); b.kind == "text" && !ok {
			return nil, model.Invalid(at+".text", at+".text: must be a string.")
		}
		all = append(all, b)
	}
	return all, nil
}

func textBlock(text, param string) block {
	o := &rawjson.Object{}
	o.Set("text", rawjson.Quote(text))
	return block{"text", param, o}
}

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
	r.format = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + string(o.Get("schema")) + `}}`)
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
	case "enabled", "adaptive":
		r.thinks = true
	case "disabled":
	default:
		return model.Invalid("thinking.type", "thinking.type: must be enabled, adaptive or disabled.")
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
			r.List = r.List || strings.TrimSpace(flag) == listFlag
		}
	}
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

// maxSession is the longest name of a person or a session that is taken, in bytes.
const maxSession = 1024

// Session names the conversation that the request says it belongs to, among those of its
// caller; empty where it does not say.
func (r *Request) Session() string {
	if len(r.user) > maxSession {
		return ""
	}
	return r.user
}

// shown reports whether the client sees the calls of our tools, and sends them back.
func (r *Request) shown() bool { return len(r.Servers) > 0 }
