package responses

import (
	"encoding/json"
	"fmt"
	"slices"

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

	object   *rawjson.Object
	upstream string            // the name by which the upstream knows the model
	own      []json.RawMessage // the items of its input
	items    []json.RawMessage // those of all that it goes on from, and its own
	known    map[string]*memory.Turn
	tools    []json.RawMessage // entries of its tools that are the client's own
	choice   choice
	store    bool
	oneCall  bool
	sealed   bool // include asks for reasoning.encrypted_content
	maxCalls int  // max_tool_calls; 0 for none
}

// Parse reads a request body strictly: one JSON object, valid UTF-8, no duplicate
// names. The error is an [*model.Error] with status 400.
func Parse(body []byte) (*Request, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, model.InvalidBody(err)
	}
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return nil, model.Invalid("", "The request body must be a JSON object.")
	}
	r := &Request{object: o}
	for _, read := range []func() error{r.readBasics, r.readInput, r.readTools, r.readChoice} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	r.items = r.own
	return r, nil
}

// notHere are members of requests that need what is not here, with the words for it.
var notHere = map[string]string{
	"conversation": "Conversations are not kept here: send previous_response_id, or the items themselves.",
	"prompt":       "Prompts that are kept at OpenAI are not known here: send instructions and input.",
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
	for _, member := range []string{"conversation", "prompt"} {
		if !rawjson.IsNull(r.object.Get(member)) {
			return model.Invalid(member, notHere[member])
		}
	}
	background, err := model.Boolean(r.object, "background")
	if err != nil {
		return err
	}
	if background {
		return model.Invalid("background", "Responses are not made in the background here: leave \"background\" out.")
	}
	if r.Stream, err = model.Boolean(r.object, "stream"); err != nil {
		return err
	}
	if raw := r.object.Get("store"); !rawjson.IsNull(raw) {
		if r.store, err = model.Boolean(r.object, "store"); err != nil {
			return err
		}
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
	if instructions := r.object.Get("instructions"); !rawjson.IsNull(instructions) && rawjson.Kind(instructions) != '"' {
		return model.Invalid("instructions", "\"instructions\" must be a string.")
	}
	r.oneCall = string(r.object.Get("parallel_tool_calls")) == "false"
	include, _ := rawjson.Elements(r.object.Get("include"))
	r.sealed = slices.ContainsFunc(include, func(raw json.RawMessage) bool {
		s, _ := rawjson.String(raw)
		return s == "reasoning.encrypted_content"
	})
	return nil
}

func (r *Request) readInput() error {
	raw := r.object.Get("input")
	if s, ok := rawjson.String(raw); ok {
		r.own = []json.RawMessage{object(text("type", "message"), text("role", "user"),
			raw1("content", object(text("type", "input_text"), text("text", s))))}
		return nil
	}
	if rawjson.IsNull(raw) && r.Previous != "" {
		return nil
	}
	items, err := rawjson.Elements(raw)
	if err != nil || len(items) == 0 && r.Previous == "" && rawjson.IsNull(r.object.Get("instructions")) {
		return model.Invalid("input", "The request needs input: \"input\" is missing, empty, or neither a string nor an array.")
	}
	for i, item := range items {
		if rawjson.Kind(item) != '{' {
			return model.Invalid(fmt.Sprintf("input[%d]", i), "Each item must be an object.")
		}
	}
	r.own = items
	return nil
}

// raw1 is a member that is an array of one.
func raw1(name string, element json.RawMessage) rawjson.Member { return raw(name, array(element)) }

// Rename gives the request the name by which the upstream knows its model. Model keeps
// the client's.
func (r *Request) Rename(model string) { r.upstream = model }

// Withhold says why tools that nobody asked for would break the request; empty when they
// would not.
func (r *Request) Withhold() string {
	if r.choice.mode == "none" {
		return "tool_choice is none"
	}
	return ""
}

// Stores reports whether the response is to be kept, to be gone on from.
func (r *Request) Stores() bool { return r.store }

// Session names the conversation that the request says it belongs to, among those of
// its caller; empty where it does not say.
func (r *Request) Session() string {
	if name, identified := recall.Owner(r.object, "", ""); identified {
		return name
	}
	return ""
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
