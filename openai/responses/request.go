package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
	"github.com/dragoman-mcp/dragoman/result"
)

// A Request is a request to POST /v1/responses, taken apart. Parse it with [Parse].
type Request struct {
	// Model is the model's name in the request.
	Model string
	// Stream reports whether the client asked for an event stream.
	Stream bool
	// Servers are the tools of the type mcp: the MCP servers, and tools of theirs, that
	// the request chooses. Empty means that it does not choose.
	Servers []model.ServerChoice
	// Previous is the id of the response that this one goes on from; empty for none.
	Previous string
	// Conversation is the id of the kept conversation that it goes on from and adds to;
	// empty for none.
	Conversation string
	// Background says that the client does not wait for the answer.
	Background bool

	object   *rawjson.Object
	upstream string            // the name by which the upstream knows the model
	own      []json.RawMessage // the items of its input
	items    []json.RawMessage // those of all that it goes on from, and its own
	known    map[string]*memory.Turn
	joined   int               // how many items its conversation had been given
	fork     string            // the thread of Codex's that its own was forked from
	begun    []string          // the names under which what it goes on from was begun
	tools    []json.RawMessage // entries of its tools that are the client's own
	choice   choice
	changed  changed
	store    bool
	oneCall  bool
	sealed   bool // include asks for reasoning.encrypted_content
	summary  bool // reasoning asks for a summary
	sources  bool // and for web_search_call.action.sources
	logprobs bool // and for message.output_text.logprobs, or top_logprobs does
	shorten  bool // truncation is auto
	maxCalls int  // max_tool_calls; 0 for none

	declaring []int // the places of items that have tools; nil until they were looked for

	native    bool            // the model's API speaks Responses
	elsewhere map[string]bool // labels of the servers that it asks itself
	before    string          // the response at the API that the request goes on from; empty for none
	continues string          // the one at the API that the last response of ours ended with; empty for none
	resolved  bool            // items were put in the place of those that name them

	turn   string // what client_metadata says that the request is part of; empty for nothing
	window string // the window that Codex says its history is of: it begins another with each summary
	beside bool   // see [Request.Beside]
	codex  bool   // client_metadata is that of Codex

	threshold int // from how many tokens on the history is compacted; 0 for never
}

// Parse reads a request body strictly: one JSON object, valid UTF-8, no duplicate
// names. The error is an [*model.Error] with status 400.
func Parse(body []byte) (*Request, error) { return parse(body, false) }

func parse(body []byte, native bool) (*Request, error) {
	o, items, err := model.ReadBody(body, "input")
	if err != nil {
		return nil, err
	}
	r := &Request{object: o, own: items, native: native, elsewhere: map[string]bool{}}
	for _, read := range []func() error{r.readBasics, r.readClient, r.readBounds, r.readConversation, r.readCompaction, r.readInput, r.readTools, r.readChoice} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	r.items = r.own
	return r, nil
}

func (r *Request) readBasics() (err error) {
	name, ok := rawjson.String(r.object.Get("model"))
	if !ok || name == "" {
		return model.Invalid("model", "The request must name a model: \"model\" is missing or not a string.")
	}
	if twin := r.object.Twin("model"); twin != "" {
		return model.Invalid(twin, fmt.Sprintf("%q is no member of a request, but some APIs take it for \"model\": leave it out.", twin))
	}
	r.Model, r.upstream, r.store = name, name, true
	if err := recall.CheckNames(r.object); err != nil {
		return err
	}
	if !rawjson.IsNull(r.object.Get("prompt")) && !r.native {
		return model.Invalid("prompt", "Prompts that are kept at OpenAI are not known here: send instructions and input.")
	}
	if err = r.readBackground(); err != nil {
		return err
	}
	if r.Stream, err = model.Boolean(r.object, "stream"); err != nil {
		return err
	}
	if raw := r.object.Get("store"); !rawjson.IsNull(raw) {
		if r.store, err = model.Boolean(r.object, "store"); err != nil {
			return err
		}
	}
	if r.Background && !r.store {
		return model.Invalid("store", "A response that is made in the background has to be stored: leave \"store\" out.")
	}
	if raw := r.object.Get("previous_response_id"); !rawjson.IsNull(raw) {
		if r.Previous, ok = rawjson.String(raw); !ok {
			return model.Invalid("previous_response_id", "\"previous_response_id\" must be a string.")
		}
	}
	if raw := r.object.Get("max_tool_calls"); !rawjson.IsNull(raw) {
		if r.maxCalls, ok = rawjson.Int(raw); !ok || r.maxCalls < 1 {
			return model.Invalid("max_tool_calls", "\"max_tool_calls\" must be a whole number above zero.")
		}
	}
	r.summary = r.wantsSummary()
	return r.readInclude()
}

// readBackground reads whether the response is made without its client. It is made at once, for
// what that costs, so that nobody is promised hours for less.
func (r *Request) readBackground() (err error) {
	if r.Background, err = model.Boolean(r.object, "background"); err != nil || !r.Background {
		return err
	}
	window := rawjson.Find(r.object.Get("background_options"), "completion_window")
	if soon, _ := rawjson.String(window); !rawjson.IsNull(window) && soon != "soonest" {
		return model.Invalid("background_options.completion_window", "A response in the background is made at once here, at the usual price: \"completion_window\" can be soonest, or left out.")
	}
	return nil
}

// readBounds reads what bounds the answer, which is a native API's own business.
func (r *Request) readBounds() error {
	if r.native {
		return nil
	}
	if instructions := r.object.Get("instructions"); !rawjson.IsNull(instructions) && rawjson.Kind(instructions) != '"' {
		return model.Invalid("instructions", "\"instructions\" must be a string.")
	}
	r.oneCall = string(r.object.Get("parallel_tool_calls")) == "false"
	if raw := r.object.Get("top_logprobs"); !rawjson.IsNull(raw) {
		most, ok := rawjson.Int(raw)
		if !ok || most < 0 || most > 20 {
			return model.Invalid("top_logprobs", "\"top_logprobs\" must be a whole number from 0 to 20.")
		}
		r.logprobs = r.logprobs || most > 0
	}
	switch truncation, ok := rawjson.String(r.object.Get("truncation")); {
	case rawjson.IsNull(r.object.Get("truncation")), truncation == "disabled":
	case ok && truncation == "auto":
		r.shorten = true
	default:
		return model.Invalid("truncation", "\"truncation\" must be auto or disabled.")
	}
	if _, err := ReadMetadata(r.object.Get("metadata")); err != nil {
		return err
	}
	return r.readFormat()
}

// readFormat judges the format that the text has to have. One that is not known would be
// left out on the way to another API.
func (r *Request) readFormat() error {
	raw := r.object.Get("text")
	if rawjson.IsNull(raw) {
		return nil
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return model.Invalid("text", "\"text\" must be an object.")
	}
	if raw = o.Get("format"); rawjson.IsNull(raw) {
		return nil
	}
	format, err := rawjson.ParseObject(raw)
	if err != nil || !slices.Contains([]string{"text", "json_object", "json_schema"}, stringOf(format, "type")) {
		return model.Invalid("text.format", "\"text.format\" must be an object with the type text, json_object or json_schema.")
	}
	return nil
}

// wantsSummary reports whether the client asks for a summary of what the model thinks.
func (r *Request) wantsSummary() bool {
	reasoning, err := rawjson.ParseObject(r.object.Get("reasoning"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc([]string{"summary", "generate_summary"}, func(name string) bool {
		return slices.Contains([]string{"auto", "concise", "detailed"}, stringOf(reasoning, name))
	})
}

// readInclude reads what is to be shown beside what always is. The values for tools that
// are not here ask for nothing.
func (r *Request) readInclude() error {
	raw := r.object.Get("include")
	if rawjson.IsNull(raw) {
		return nil
	}
	all, err := rawjson.Elements(raw)
	if err != nil && !r.native {
		return model.Invalid("include", "\"include\" must be an array.")
	}
	for i, each := range all {
		value, ok := rawjson.String(each)
		if !r.native && (!ok || !slices.Contains(includes, value)) {
			return notIncludable(fmt.Sprintf("include[%d]", i), value)
		}
		switch value {
		case "reasoning.encrypted_content":
			r.sealed = true
		case "message.output_text.logprobs":
			r.logprobs = true
		case "web_search_call.action.sources":
			r.sources = true
		}
	}
	return nil
}

func notIncludable(param, value string) error {
	return model.Invalid(param, fmt.Sprintf("%.60q is nothing that can be included. It can be one of %s.", value, strings.Join(includes, ", ")))
}

// includes are the values of include, as OpenAI's clients know them.
var includes = []string{
	"reasoning.encrypted_content", "message.output_text.logprobs", "web_search_call.action.sources", "web_search_call.results",
	"file_search_call.results", "message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
}

func (r *Request) readInput() error {
	raw := r.object.Get("input")
	if s, ok := rawjson.String(raw); ok {
		r.own = []json.RawMessage{object(text("type", "message"), text("role", "user"),
			raw1("content", object(text("type", "input_text"), text("text", s))))}
		return nil
	}
	goesOn := r.Previous != "" || r.Conversation != ""
	if rawjson.IsNull(raw) && (goesOn || r.native) {
		return nil
	}
	if rawjson.Kind(raw) != '[' || len(r.own) == 0 && !goesOn && !r.native && rawjson.IsNull(r.object.Get("instructions")) {
		return model.Invalid("input", "The request needs input: \"input\" is missing, empty, or neither a string nor an array.")
	}
	for i, item := range r.own {
		if rawjson.Kind(item) != '{' {
			return model.Invalid(fmt.Sprintf("input[%d]", i), "Each item must be an object.")
		}
	}
	return nil
}

// raw1 is a member that is an array of one.
func raw1(name string, element json.RawMessage) rawjson.Member { return raw(name, array(element)) }

// deferred reports whether the model is to search for the tools of all servers.
func (r *Request) deferred() bool {
	for _, s := range r.Servers {
		if !s.DeferLoading {
			return false
		}
	}
	return len(r.Servers) > 0
}

// Rename gives the request the name by which the upstream knows its model. Model keeps
// the client's.
func (r *Request) Rename(model string) { r.upstream = model }

// Withhold says why tools that nobody asked for would break the request; empty when they
// would not.
func (r *Request) Withhold() string {
	switch {
	case r.choice.mode == "none":
		return "tool_choice is none"
	case !rawjson.IsNull(r.object.Get("prompt")):
		return "the prompt has its own"
	}
	return ""
}

// Stores reports whether the response is to be kept, to be gone on from.
func (r *Request) Stores() bool { return r.store }

// Session names the conversation that the request says it belongs to, among those of
// its caller; empty where it does not say.
func (r *Request) Session() string {
	if !recall.Identified(r.object, "") {
		return ""
	}
	name, _ := recall.Owner(r.object, "", "")
	return name
}

// Begun returns the names, as [Request.Session] has them, under which that was begun which
// a request that was resolved, and has joined its conversation, goes on from here. What it
// goes on from is the same conversation, whatever the request calls it.
func (r *Request) Begun() []string { return r.begun }

// goesOnFrom notes the name under which something was begun that the request goes on from.
func (r *Request) goesOnFrom(name string) {
	if !slices.Contains(r.begun, name) {
		r.begun = append(r.begun, name)
	}
}

// beganAs is the name under which the conversation of the request was begun.
func (r *Request) beganAs() string {
	if len(r.begun) > 0 {
		return r.begun[0]
	}
	return r.Session()
}

// NamesTurn reports whether the request says which turn it belongs to, as those of Codex
// do (client_metadata.turn_id). Since a turn's history grows with each request, two that
// are the same are one that was sent again: Codex repeats what fails five times, and has
// no header that says so.
func (r *Request) NamesTurn() bool { return r.turn != "" }

// Beside reports whether Codex asks the request beside its conversation: for a summary, for
// which it has no tools itself, or in a thread that it begins by itself and keeps its own MCP
// servers from: for a title, a recap of the conversation ("system"), to review whether a call may
// be made, to tidy its memories; or in one that answers once and makes no calls (thread/sample).
// Codex says with each request what it is and for what the thread is (client_metadata).
func (r *Request) Beside() bool { return r.beside }

// Plans reports whether Codex is in its plan mode, in which nothing is to be changed yet. It
// tells its model the mode that it is in by a developer's message, and what it says last holds.
func (r *Request) Plans() bool {
	if !r.codex {
		return false
	}
	for _, item := range slices.Backward(r.items) {
		if role, _ := rawjson.String(rawjson.Get(item, "role")); role != "developer" {
			continue
		}
		parts, _ := rawjson.Elements(rawjson.Get(item, "content"))
		for _, part := range slices.Backward(parts) {
			said, _ := rawjson.String(rawjson.Get(part, "text"))
			if mode, ok := strings.CutPrefix(said, "<collaboration_mode>"); ok {
				return strings.HasPrefix(strings.TrimSpace(mode), "# Plan Mode")
			}
		}
	}
	return false
}

// readClient reads what Codex says of a request. Others say what they want there.
func (r *Request) readClient() error {
	said, err := rawjson.ParseObject(r.object.Get("client_metadata"))
	if err != nil {
		return nil
	}
	r.turn = stringOf(said, "turn_id")
	thread, err := rawjson.ParseObject(json.RawMessage(stringOf(said, "x-codex-turn-metadata")))
	if err != nil {
		return nil
	}
	r.codex = true
	r.window = stringOf(thread, "context_window_id")
	switch stringOf(thread, "thread_source") {
	case "thread_title", "guardian_review", "memory_consolidation", "thread_sample", "system":
		r.beside = true
	}
	if stringOf(thread, "request_kind") == "compaction" {
		r.beside = true
	}
	if r.fork = stringOf(thread, "forked_from_thread_id"); r.fork != "" {
		if err := recall.CheckName("forked_from_thread_id", r.fork); err != nil {
			return err
		}
		r.goesOnFrom(r.branchedFrom(""))
	}
	return nil
}

// branchedFrom returns the name under which a caller's thread is remembered that this one of
// Codex's was forked from, whose history it begins with; empty for none. Codex names each thread
// by its id in prompt_cache_key.
func (r *Request) branchedFrom(caller string) string {
	if r.fork == "" || stringOf(r.object, "prompt_cache_key") == "" {
		return ""
	}
	o := r.object.Clone()
	o.Set("prompt_cache_key", rawjson.Quote(r.fork))
	name, _ := recall.Owner(o, caller, "")
	return name
}

// digest is the digest by which the request is known when it is sent again, of the messages that
// its history is: Codex may go on from a response, and send all of it again. What else
// Codex says of itself differs from try to try. Two that go on from a conversation one after
// another may say the same and are two.
func (r *Request) digest(messages []json.RawMessage) string {
	o := r.object
	if r.Conversation != "" {
		o = o.Clone()
		o.Set("conversation", rawjson.Quote(fmt.Sprintf("%s %d", r.Conversation, r.joined)))
	}
	if id := r.turn; id != "" {
		o = o.Clone()
		o.Set("client_metadata", rawjson.Quote(id))
		o.Delete("previous_response_id") // that of one WebSocket is not there over the next
		if r.native {
			messages = r.items
		}
		o.Set("input", array(messages...))
	}
	return recall.Digest(o)
}

// Input returns the items of the request's own input.
func (r *Request) Input() []json.RawMessage { return r.own }

// Plain returns the request's body for an upstream that speaks the Responses API itself.
func (r *Request) Plain() json.RawMessage {
	if r.upstream == r.Model {
		return r.object.Bytes()
	}
	o := r.object.Clone()
	o.Set("model", rawjson.Quote(r.upstream))
	return o.Bytes()
}

// Tokens returns about how many tokens the input of the request has, tools included.
func (r *Request) Tokens() int {
	n := 0
	for _, part := range append(append([]json.RawMessage{r.object.Get("instructions")}, r.items...), r.tools...) {
		n += result.EstimateTokens(string(part))
	}
	return n
}
