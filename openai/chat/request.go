package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/internal/recall"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A Request is a request to POST /v1/chat/completions, taken apart by one
// level. Parse it with [Parse].
type Request struct {
	// Model is the model's name in the request.
	Model string
	// Stream reports whether the client asked for an event stream.
	Stream bool
	// Servers are the tools entries of type "mcp": the MCP servers, and tools of
	// theirs, that the request chooses. Empty means that it does not choose.
	Servers []ServerChoice

	object       *rawjson.Object // without what is ours alone
	plain        *rawjson.Object // object before functions became tools; nil where it is the same
	messages     []json.RawMessage
	tools        []json.RawMessage // the client's own, without the mcp entries
	names        map[string]bool   // of the client's own tools
	choice       model.Choice
	legacy       bool // functions and function_call instead of tools
	oneCall      bool // parallel_tool_calls is false
	includeUsage bool
	jsonFormat   bool            // response_format asks for JSON
	wantMessages bool            // "dragoman":{"messages":true}
	wantProgress bool            // "dragoman":{"progress":true}
	answers      *recall.Answers // "dragoman":{"answers":{…}}
	conversation string          // "dragoman":{"conversation":"…"}
}

// Members returns the names and the JSON values of the request's members, in their
// order and without what is Dragoman's alone. The values must not be changed.
func (r *Request) Members() iter.Seq2[string, json.RawMessage] { return r.object.All() }

// A ServerChoice chooses tools of one MCP server for a request.
type ServerChoice = model.ServerChoice

// Parse reads a request body strictly: one JSON object, valid UTF-8, no
// duplicate names. The error is an [*model.Error] with status 400.
func Parse(body []byte) (*Request, error) {
	o, messages, err := model.ReadBody(body, "messages")
	if err != nil {
		return nil, err
	}
	r := &Request{object: o, messages: messages}
	if err := errors.Join(r.readBasics(), r.checkMessages(), recall.CheckNames(o)); err != nil {
		return nil, firstError(err)
	}
	if err := errors.Join(r.readFunctions(), r.readTools(), r.readChoice()); err != nil {
		return nil, firstError(err)
	}
	return r, nil
}

// firstError returns the first of joined errors: one message is enough.
func firstError(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()[0]
	}
	return err
}

func (r *Request) readBasics() error {
	name, ok := rawjson.String(r.object.Get("model"))
	if !ok || name == "" {
		return model.Invalid("model", "The request must name a model: \"model\" is missing or not a string.")
	}
	if twin := r.object.Twin("model"); twin != "" {
		return model.Invalid(twin, fmt.Sprintf("%q is no member of a request, but some APIs take it for \"model\": leave it out.", twin))
	}
	r.Model = name
	var err error
	if r.Stream, err = model.Boolean(r.object, "stream"); err != nil {
		return err
	}
	parallel := r.object.Get("parallel_tool_calls")
	r.oneCall = string(parallel) == "false"
	if options := r.object.Get("stream_options"); !rawjson.IsNull(options) {
		o, err := rawjson.ParseObject(options)
		if err != nil {
			return model.Invalid("stream_options", "\"stream_options\" must be an object.")
		}
		if r.includeUsage, err = model.Boolean(o, "include_usage"); err != nil {
			return err
		}
	}
	if format := r.object.Get("response_format"); !rawjson.IsNull(format) {
		o, err := rawjson.ParseObject(format)
		if err != nil {
			return model.Invalid("response_format", "\"response_format\" must be an object.")
		}
		kind, _ := rawjson.String(o.Get("type"))
		r.jsonFormat = kind == "json_schema" || kind == "json_object"
	}
	return r.readOwn()
}

// readOwn reads our own member, which never reaches the upstream.
func (r *Request) readOwn() error {
	ours := r.object.Get("dragoman")
	if ours == nil {
		return nil
	}
	r.object.Delete("dragoman")
	o, err := rawjson.ParseObject(ours)
	if err != nil {
		return model.Invalid("dragoman", "\"dragoman\" must be an object.")
	}
	if r.wantMessages, err = model.Boolean(o, "messages"); err != nil {
		return err
	}
	if r.wantProgress, err = model.Boolean(o, "progress"); err != nil {
		return err
	}
	if r.answers, err = readAnswers(o.Get("answers")); err != nil {
		return err
	}
	if raw := o.Get("conversation"); !rawjson.IsNull(raw) {
		name, ok := rawjson.String(raw)
		if !ok || name == "" || len(name) > maxConversation {
			return model.Invalid("dragoman.conversation", fmt.Sprintf("\"conversation\" must be a string of at most %d bytes.", maxConversation))
		}
		r.conversation = name
	}
	return nil
}

// maxConversation is the length of a client's own name for a conversation.
const maxConversation = 256

func (r *Request) checkMessages() error {
	if len(r.messages) == 0 {
		return model.Invalid("messages", "The request needs at least one message: \"messages\" is missing, empty or not an array.")
	}
	for i, m := range r.messages {
		if rawjson.Kind(m) != '{' {
			return model.Invalid(fmt.Sprintf("messages.%d", i), "Each message must be an object.")
		}
	}
	return nil
}

// readTools parts the client's own tools from the mcp entries, which choose
// among ours.
func (r *Request) readTools() error {
	raw := r.object.Get("tools")
	if rawjson.IsNull(raw) {
		return nil
	}
	tools, err := rawjson.Elements(raw)
	if err != nil {
		return model.Invalid("tools", "\"tools\" must be an array.")
	}
	o := new(rawjson.Object) // that of each tool in turn
	for i, raw := range tools {
		if err := o.Parse(raw); err != nil {
			return model.Invalid(fmt.Sprintf("tools.%d", i), "Each tool must be an object.")
		}
		kind, _ := rawjson.String(o.Get("type"))
		if kind == "mcp" {
			choice, err := model.ReadServerChoice(o, fmt.Sprintf("tools.%d", i))
			if err != nil {
				return err
			}
			r.Servers = append(r.Servers, choice)
			continue
		}
		r.tools = append(r.tools, raw)
		if name := toolName(o, kind); name != "" {
			if r.names == nil {
				r.names = map[string]bool{}
			}
			r.names[name] = true
		}
	}
	return nil
}

// toolName returns the name of a client's own tool, such as a function or a
// custom tool; "" for tools that have none.
func toolName(o *rawjson.Object, kind string) string {
	if kind == "" {
		kind = "function"
	}
	name, _ := rawjson.String(rawjson.Find(o.Get(kind), "name"))
	return name
}

func (r *Request) readChoice() error {
	raw := r.object.Get("tool_choice")
	if rawjson.IsNull(raw) {
		return nil
	}
	r.choice.Raw = raw
	if mode, ok := rawjson.String(raw); ok {
		r.choice.Mode = mode
		return nil
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return model.Invalid("tool_choice", "\"tool_choice\" must be a string or an object.")
	}
	kind, _ := rawjson.String(o.Get("type"))
	switch kind {
	case "function", "custom":
		r.choice.Mode, r.choice.Name = "named", toolName(o, kind)
	case "mcp":
		r.choice.Mode = "named"
		r.choice.Server, _ = rawjson.String(o.Get("server_label"))
		r.choice.Name, _ = rawjson.String(o.Get("name"))
		if r.choice.Name == "" {
			r.choice.Mode, r.choice.Raw = "required", json.RawMessage(`"required"`)
		}
	case "allowed_tools":
		r.choice.Mode = "allowed"
		tools, err := rawjson.Elements(rawjson.Get(o.Get(kind), "tools"))
		if err != nil {
			return nil // the API says what is wrong with it
		}
		r.choice.Only = map[string]bool{}
		for _, tool := range tools {
			if t, err := rawjson.ParseObject(tool); err == nil {
				kind, _ := rawjson.String(t.Get("type"))
				r.choice.Only[toolName(t, kind)] = true
			}
		}
	default:
		r.choice.Mode = kind
	}
	return nil
}

// Rename gives the request the name by which the upstream knows its model.
// Model keeps the client's.
func (r *Request) Rename(model string) {
	if model == r.Model {
		return
	}
	r.object.Set("model", rawjson.Quote(model))
	if r.plain != nil {
		r.plain.Set("model", rawjson.Quote(model))
	}
}

// Withhold says why tools that nobody asked for would break the request; "" when
// they would not. Such requests go through without our tools.
func (r *Request) Withhold() string {
	if n := r.object.Get("n"); !rawjson.IsNull(n) {
		// 1.0 is 1 for some upstreams, and "2" is 2.
		if one, err := strconv.ParseFloat(string(n), 64); err != nil || one > 1 {
			return "n is greater than 1"
		}
	}
	if r.choice.Mode == "none" {
		return "tool_choice is none"
	}
	for _, name := range []string{"prediction", "web_search_options", "audio"} {
		if !rawjson.IsNull(r.object.Get(name)) {
			return name + " is set"
		}
	}
	if modalities, err := rawjson.Elements(r.object.Get("modalities")); err == nil {
		for _, m := range modalities {
			if s, _ := rawjson.String(m); s != "text" {
				return "modalities has " + s
			}
		}
	}
	return ""
}

// Plain returns the request's body without what is meant for us alone: the
// dragoman member and tools entries of type mcp. It is what goes upstream when
// none of our tools is offered.
func (r *Request) Plain() json.RawMessage {
	switch {
	case len(r.Servers) > 0:
		o := r.object.Clone()
		model.SetTools(o, r.tools)
		return o.Bytes()
	case r.plain != nil:
		return r.plain.Bytes()
	}
	return r.object.Bytes()
}

// Remembered reports whether something that the client did not see may belong into the history
// of the request. It does not where the client has no tools: some APIs refuse calls in the
// history of a request without tools.
func (r *Request) Remembered(ctx context.Context, store memory.Store, caller string) bool {
	goesOn := slices.ContainsFunc(r.messages, func(m json.RawMessage) bool {
		role, _ := rawjson.String(rawjson.Find(m, "role"))
		return role == "assistant"
	})
	if !goesOn || len(r.tools) == 0 {
		return false
	}
	owner, _ := r.owner(caller)
	return store.Any(ctx, owner)
}

// upstream returns the request as the upstream half takes it.
func (r *Request) upstream() model.Request {
	return model.Request{
		Object: r.object, Tools: r.tools, Names: r.names, Choice: r.choice, OneCall: r.oneCall, Asked: len(r.Servers) > 0,
		Deferred: len(r.Servers) > 0 && !slices.ContainsFunc(r.Servers, func(c ServerChoice) bool { return !c.DeferLoading }),
	}
}

// Session names the conversation that the request says it belongs to, among those
// of its caller; empty where it does not say.
func (r *Request) Session() string {
	if !recall.Identified(r.object, r.conversation) {
		return ""
	}
	name, _ := r.owner("")
	return name
}

// owner returns the name under which a caller's conversations are remembered, and
// whether the request says whose this one is.
func (r *Request) owner(caller string) (owner string, identified bool) {
	return recall.Owner(r.object, caller, r.conversation)
}
