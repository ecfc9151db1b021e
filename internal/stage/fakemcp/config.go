package fakemcp

import (
	"encoding/json"
	"time"
)

// Protocol versions that a server speaks. A legacy server takes any of
// legacyVersions that the client names and offers Legacy to a client that names
// another.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", Legacy}

// An Era restricts which eras of the protocol a server speaks.
type Era string

// The eras. The zero Era is both.
const (
	BothEras   Era = ""
	LegacyOnly Era = "legacy"
	ModernOnly Era = "modern"
)

func (e Era) legacy() bool { return e != ModernOnly }
func (e Era) modern() bool { return e != LegacyOnly }

// A Config says what a server is like. The zero Config is a server that behaves
// and has no tools. It is plain data, so that a child process can be given it.
type Config struct {
	// Name is serverInfo.name; empty means "fake".
	Name string `json:",omitempty"`
	// Instructions are sent to clients at the start; empty for none.
	Instructions string `json:",omitempty"`
	// Era is which eras the server speaks.
	Era Era `json:",omitempty"`
	// Version, when set, is answered to initialize whatever the client asked.
	Version string `json:",omitempty"`

	// Tools are the server's tools, in this order.
	Tools []Tool `json:",omitempty"`
	// Count adds that many Echo tools after Tools, named tool_00000, tool_00001
	// and so on.
	Count int `json:",omitempty"`
	// PageSize is how many tools a page of tools/list holds; zero means all.
	PageSize int `json:",omitempty"`

	// Prompts and Skills (SEP-2640) are entries of prompts/list and skills/list, sent
	// as they are; without any the server does not offer them.
	Prompts []json.RawMessage `json:",omitempty"`
	Skills  []json.RawMessage `json:",omitempty"`
	// Given, when set, is the skill that skills/get answers in place of the one in
	// Skills.
	Given json.RawMessage `json:",omitempty"`

	// Faults are the ways in which the server misbehaves; none: it behaves.
	Faults []Fault `json:",omitempty"`

	// SSE answers HTTP requests with an event stream even where a JSON body
	// would do.
	SSE bool `json:",omitempty"`
	// Token, when set, is the bearer token without which HTTP requests get 401.
	Token string `json:",omitempty"`

	// Keep is how many entries of the log are kept in memory, the oldest going
	// first; zero means 10,000, a negative number keeps none, for benchmarks.
	// Counts are exact in any case.
	Keep int `json:",omitempty"`
	// LogFile, when set, is where the log is appended to as lines of JSON.
	LogFile string `json:",omitempty"`

	// Stderr is what a child process writes to its standard error at the start.
	Stderr string `json:",omitempty"`
	// Lifetime ends a child process whatever else keeps it alive, so that a test
	// that fails leaves nothing behind for long; zero means five minutes.
	Lifetime time.Duration `json:",omitempty"`
}

// A Tool is one tool of a server.
type Tool struct {
	// Name is the tool's name, unless Definition has another.
	Name string
	// Description and InputSchema go into the definition; empty ones get a
	// default.
	Description string          `json:",omitempty"`
	InputSchema json.RawMessage `json:",omitempty"`
	// Definition, when set, is the tool's whole entry in tools/list, sent as it
	// is. Calls still find the tool by Name.
	Definition json.RawMessage `json:",omitempty"`

	// Do is what a call does; zero means Echo.
	Do Behaviour `json:",omitempty"`
	// Delay is how long a call takes before it answers.
	Delay time.Duration `json:",omitempty"`
	// Size is how many bytes the text of a Big result has.
	Size int `json:",omitempty"`
	// Steps is how many progress notifications a Progress tool sends, Delay
	// apart; zero means 3.
	Steps int `json:",omitempty"`
	// Result is the result object of a Fixed tool, without resultType.
	Result json.RawMessage `json:",omitempty"`
	// Question is the params of the elicitation/create of an Ask tool.
	Question json.RawMessage `json:",omitempty"`
}

// A Behaviour is what a tool does when it is called.
type Behaviour string

// The behaviours.
const (
	// Echo answers one text block that holds the arguments, byte for byte.
	Echo Behaviour = ""
	// Structured answers the arguments as structuredContent, byte for byte, and
	// once more as text.
	Structured Behaviour = "structured"
	// Counter answers how often this tool ran so far, as text and as
	// structuredContent {"executions":n}.
	Counter Behaviour = "counter"
	// Big answers a text of Size bytes.
	Big Behaviour = "big"
	// Image answers a text block and a PNG of one pixel.
	Image Behaviour = "image"
	// UnknownContent answers a content block of a type that no version of the
	// protocol defines, between two text blocks.
	UnknownContent Behaviour = "unknown_content"
	// Fail answers a result with isError.
	Fail Behaviour = "fail"
	// RPCError answers a JSON-RPC error with code -32603.
	RPCError Behaviour = "rpc_error"
	// Progress sends Steps progress notifications, where the request asked for
	// them, and then answers.
	Progress Behaviour = "progress"
	// Empty answers a result with an empty content array.
	Empty Behaviour = "empty"
	// Fixed answers Result.
	Fixed Behaviour = "fixed"
	// Ask asks whoever is behind the client, with Question, and answers the reply as
	// text, byte for byte.
	Ask Behaviour = "ask"
)

// pixel is a PNG of one transparent pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
