package dragoman

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"
)

// A Tool is one tool of one MCP server, as the server described it and as it is
// offered to models.
//
// A Tool is immutable once it left the toolset that made it; copies share the
// bytes.
type Tool struct {
	// Definition is the tool's whole entry in tools/list, byte for byte: icons,
	// _meta, execution and fields that nobody knows yet included.
	Definition json.RawMessage

	// Name is the public name, unique in the list that holds the tool. It is
	// Original where nothing renamed it.
	Name string

	// Title is a name for people; empty when the server gave none.
	Title string

	// Description is the server's text about the tool, unchanged.
	Description string

	// InputSchema and OutputSchema are JSON Schemas, slices of Definition.
	// OutputSchema is nil when the server gave none.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage

	// Server is the label of the MCP server in our configuration, and Original
	// the name by which that server knows the tool.
	Server   string
	Original string

	// Hints are what the server says about the tool's behaviour. They are
	// untrusted: they may raise the risk of a tool, never lower it.
	Hints Hints

	// Effect is what the operator says about the tool's behaviour. The zero
	// value says nothing, so the tool may change something.
	Effect Effect

	// Digest is the SHA-256 of Definition, a zero byte and Name, computed once
	// per list. Pins and caches are keyed by it.
	Digest [32]byte

	// Quarantined says why the tool is shown to people but never offered to a
	// model and never called; nil for a tool in order.
	Quarantined *Problem
}

// Hints are the four behaviour hints of an MCP tool's annotations (MCP
// specification 2025-03-26 and later, "ToolAnnotations"). Each is nil when the
// server did not say.
type Hints struct {
	ReadOnly    *bool
	Destructive *bool
	Idempotent  *bool
	OpenWorld   *bool
}

// Effect is the operator's word on what a call can do to the world.
type Effect int

const (
	// MayChange is the zero Effect: the tool may change something, and calling
	// it twice may change it twice.
	MayChange Effect = iota
	// Idempotent tools may change something, but calling one again with the
	// same arguments changes nothing more.
	Idempotent
	// ReadOnly tools change nothing.
	ReadOnly
)

// String returns the name that the configuration uses for e.
func (e Effect) String() string {
	switch e {
	case Idempotent:
		return "idempotent"
	case ReadOnly:
		return "read_only"
	default:
		return "may_change"
	}
}

// EffectiveClass is the Effect that decides about retries: the operator's word,
// lowered to [MayChange] where the server itself says that the tool is not read
// only, or not idempotent. A hint never makes a tool safer than the operator
// said.
func (t *Tool) EffectiveClass() Effect {
	switch {
	case t.Effect == ReadOnly && said(t.Hints.ReadOnly, false),
		t.Effect == Idempotent && said(t.Hints.Idempotent, false):
		return MayChange
	}
	return t.Effect
}

// ordered reports whether calls of t keep their order in a round. Only here a
// server's own read-only hint is believed: a server that lies about it loses
// the order of its own calls and gains nothing.
func (t *Tool) ordered() bool {
	return t.EffectiveClass() != ReadOnly && !said(t.Hints.ReadOnly, true)
}

func said(hint *bool, value bool) bool { return hint != nil && *hint == value }

// A Call is one request to run a tool, or to get a prompt or a resource.
type Call struct {
	// ID is the caller's name for the call, such as a tool_call_id. It is unique
	// within a round and never travels to the MCP server.
	ID string

	// Method is the MCP method; empty means tools/call. prompts/get and
	// resources/read take the same way.
	Method string

	// Tool is the tool to run, resolved by the door from the name that the model
	// used. It is nil only when Problem says why.
	Tool *Tool

	// Name is the name that the model used, where that is all there is because
	// Tool is nil.
	Name string

	// Arguments is the JSON object of the tool's arguments, already mapped back
	// to the server's own schema. Nil means no arguments.
	Arguments json.RawMessage

	// Meta is the _meta object that the caller wants to pass to the server; nil
	// for none. Keys that belong to the wire (progressToken, protocol version)
	// are set by the wire and ignored here.
	Meta json.RawMessage

	// Problem says why the call can not run: unknown tool, invalid arguments.
	// [Loop] answers such a call with the problem and never runs it.
	Problem *Problem

	// Progress receives progress notifications while the call runs. It may be
	// nil, is called from one goroutine at a time, must not block, and is not
	// called after Call has returned.
	Progress func(Progress)

	// Ask puts a question to the person behind the call: an elicitation of the
	// server, or an approval. Nil when there is nobody to ask.
	Ask func(context.Context, Question) (Reply, error)
}

// Progress is one progress notification of a running call.
type Progress struct {
	// Progress grows with each notification; its unit is the server's.
	Progress float64
	// Total is the value of Progress at the end; zero when unknown.
	Total float64
	// Message describes the current step; may be empty.
	Message string
}

// A Question asks a person for something while a call waits.
type Question struct {
	// Server is the label of the MCP server on whose behalf we ask.
	Server string
	// Message says what is asked, in the server's own words.
	Message string
	// Schema is the JSON Schema of the answer, as in elicitation/create; nil
	// when yes or no is all that is asked.
	Schema json.RawMessage
	// URL is set when the person is asked to visit an address instead.
	URL string
}

// A Reply is a person's answer to a [Question].
type Reply struct {
	// Action is "accept", "decline" or "cancel".
	Action string
	// Content is the answer, an object that fits the question's Schema; nil
	// unless Action is "accept".
	Content json.RawMessage
}

// A Result is what came of a call.
type Result struct {
	// Content is the MCP result object, byte for byte as the server sent it; nil
	// when Problem says why there is none.
	Content json.RawMessage

	// Failed reports that the tool itself said that it failed (isError).
	Failed bool

	// Problem says why we have no result of the tool: denied, timeout,
	// unknown_outcome and so on.
	Problem *Problem

	// Meta is what we know about how the result came to be.
	Meta Meta
}

// Meta is what we know about how a [Result] came to be. It reaches the model in
// the envelope's meta member.
type Meta struct {
	// Duration is the time from the start of the call to its result.
	Duration time.Duration
	// Cached reports that the result was taken from a cache.
	Cached bool
	// Note is a short remark for the model; empty for none.
	Note string
}

// Digest returns the digest of a tool with that definition and public name.
func Digest(definition json.RawMessage, name string) [32]byte {
	h := sha256.New()
	h.Write(definition)
	h.Write([]byte{0})
	h.Write([]byte(name))
	return [32]byte(h.Sum(nil))
}
