package dragoman

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
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

	// Declared is what the operator says about the tool's behaviour. The zero
	// value says nothing, so the tool may change something. What decides is
	// [Tool.Effect].
	Declared Effect

	// ClosedWorld is the operator's word that the tool's results hold nothing that
	// strangers may have written. See [Tool.Closed].
	ClosedWorld bool
	// Pin is the digest that [Pin] gives for Server, Original and Definition,
	// computed once per list. Approvals, caches and plans are keyed by it. The
	// public name is no part of it: what another server lists may change it.
	Pin [32]byte

	// Quarantined says why the tool is shown to people but never offered to a
	// model and never called; nil for a tool in order.
	Quarantined *Problem
}

// Pin returns the digest of a tool: SHA-256 over its server's label, its name
// there and its definition, each behind its length in eight bytes, big-endian.
func Pin(server, original string, definition []byte) [32]byte {
	h := sha256.New()
	var size [8]byte
	for _, part := range [][]byte{[]byte(server), []byte(original), definition} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
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

// Effect is what a call can do to the world.
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

// Input returns the schema of the tool's arguments: InputSchema, or one that takes any
// object where the server gave none (MCP requires one).
func (t *Tool) Input() json.RawMessage {
	if len(t.InputSchema) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.InputSchema
}

// Effect is what decides about retries, caching and rules: the operator's word,
// lowered to [MayChange] where the server itself says that the tool is not read
// only, or not idempotent. A hint never makes a tool safer than the operator
// said.
func (t *Tool) Effect() Effect {
	switch {
	case t.Declared == ReadOnly && said(t.Hints.ReadOnly, false),
		t.Declared == Idempotent && said(t.Hints.Idempotent, false):
		return MayChange
	}
	return t.Declared
}

// Closed reports whether nothing that strangers may have written comes back from a
// call of t: the operator says so, and the server does not say otherwise
// (openWorldHint: true). A server's own word alone is never enough.
func (t *Tool) Closed() bool { return t.ClosedWorld && !said(t.Hints.OpenWorld, true) }

// Writes reports whether a call of t is to be treated as one that changes
// something where nothing but words and order depend on it: calls of such tools
// keep their order in a round, and one without an answer has an unknown outcome.
// Only here a server's own read-only hint is believed: a server that lies about
// it loses the order of its own calls and gains nothing.
func (t *Tool) Writes() bool {
	return t.Effect() != ReadOnly && !said(t.Hints.ReadOnly, true)
}

func said(hint *bool, value bool) bool { return hint != nil && *hint == value }
