package dragoman

import (
	"encoding/json"
	"time"
)

// A Call is one request to an MCP server: to run a tool, or, with another
// Method, anything else that MCP has requests for. All take the same way.
type Call struct {
	// ID names the call among all calls, and Parent the conversation or request
	// that it belongs to; both are for logs, audit and approvals, and never
	// travel to the MCP server. Calls that a model made have its tool_call_id
	// here, which is unique within a round only.
	ID, Parent string

	// Method is the MCP method; empty means tools/call.
	Method string

	// Tool is the tool to run, and Entry the prompt, resource, template or skill
	// that is wanted: the target, resolved by the door from the name that was
	// used, so that rules need not read Arguments. Tool is nil for another Method,
	// or when Problem says why.
	Tool  *Tool
	Entry *Entry

	// Name is the name that was used, where that is all there is because the
	// target is unknown. Server is the label of the server for a call that has no
	// target at all, such as completion or a subscription.
	Name, Server string

	// Arguments is the JSON object of the tool's arguments, already mapped back
	// to the server's own schema; for another Method, its params. Nil means none.
	Arguments json.RawMessage

	// Meta is the _meta object that the caller wants to pass to the server; nil
	// for none. Keys that belong to the wire (progressToken, protocol version)
	// are set by the wire and ignored here.
	Meta json.RawMessage

	// Problem says why the call cannot run: unknown tool, invalid arguments.
	// [Loop] answers such a call with the problem and never runs it.
	Problem *Problem

	// Can says what whoever is behind the call can be asked; zero: nothing. What
	// a server asks beyond it is declined in the server's own way.
	Can Kind

	// Answers continues a call whose earlier result asked; nil for a new call.
	Answers *Answers

	// Task says that the caller wants a task in place of the result, and asks for
	// the result later: it is the task member of the request (MCP 2025-11-25,
	// "Tasks"). Nil: the caller wants the result. Only a server of the same era
	// gives a task to the caller; a tool that runs as nothing else is run as one
	// below everything, in mcp, for callers that want the result.
	Task json.RawMessage

	// TakesTask says that the caller takes a task in place of the result where the
	// server makes one of the call (MCP 2026-07-28, extension
	// io.modelcontextprotocol/tasks). What holds for Task holds here.
	TakesTask bool

	// Progress receives progress notifications while the call runs. It may be
	// nil, is called from one goroutine at a time, and not after Call has
	// returned. One that is slow misses what a later one says again: it holds up
	// nobody but itself.
	Progress func(Progress)

	// Notify receives the notifications that belong to the call: log messages,
	// and what a call listens for. It may be nil, and is called from one goroutine
	// at a time in the order in which they came. Of notifications that come faster
	// than it returns, some are lost.
	Notify func(Notification)
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

// A Notification is something that a server says while a call runs, byte for
// byte.
type Notification struct {
	Method string
	Params json.RawMessage
}

// Kind is a set of things that a person, or the client behind a call, can be
// asked.
type Kind uint8

// The kinds of questions.
const (
	// AskApproval: may this call run?
	AskApproval Kind = 1 << iota
	// AskForm: elicitation/create in form mode.
	AskForm
	// AskURL: elicitation/create in URL mode.
	AskURL
	// AskSampling: sampling/createMessage.
	AskSampling
	// AskRoots: roots/list.
	AskRoots
	// AskTools: a sampling/createMessage may offer tools. It goes with AskSampling and
	// is the kind of no question.
	AskTools
)

// String names the kinds in k, joined by "+"; "nothing" for none.
func (k Kind) String() string {
	name := ""
	for i, s := range []string{"approval", "form", "url", "sampling", "roots", "tools"} {
		if k&(1<<i) != 0 {
			if name != "" {
				name += "+"
			}
			name += s
		}
	}
	if name == "" {
		return "nothing"
	}
	return name
}

// A Question is one thing that has to be answered before a call can go on.
type Question struct {
	// Key names the question among those of its [Asks].
	Key string
	// Kind is one of the kinds.
	Kind Kind
	// Operator marks a question that only somebody with that right may answer,
	// in the inbox: never the caller or the caller's client.
	Operator bool
	// Server is the label of the MCP server on whose behalf is asked.
	Server string
	// Params are the raw params of the request that asks: of elicitation/create,
	// sampling/createMessage or roots/list as the server sent them (MCP
	// 2025-11-25, "Client Features"), or of our own approval.
	Params json.RawMessage
}

// Asks is a result that is not one yet: somebody has to be asked first. Whoever
// has the answers makes the same call again with [Answers] that hold State.
type Asks struct {
	// Questions have to be answered, all of them. Without any, the call only
	// wants to be made again: after After if there is a State; where there is
	// none it was not made, because a call before it asks.
	Questions []Question
	// State is what the continuation must bring back, at most 64 KiB. It is
	// opaque: each layer that asks wraps the state of the layer below in its own, and
	// unwraps what comes back, as the example does.
	State []byte
	// After is how long to wait before the call is made again.
	After time.Duration
	// Held says that something waits at the server for the answers: they, or
	// [Answers.Gone], should come soon.
	Held bool
	// Expires is when the questions are void; zero for never.
	Expires time.Time
	// Withdrawn is closed when nobody waits for the answers any more, since the
	// server has taken all of its questions back or has answered the call: then the
	// call goes on without them; or since they have been brought, by whomever. Nil where
	// nothing tells.
	Withdrawn <-chan struct{} `json:"-"`
}

// Deferred reports that the call asks nothing and was not made: a call before
// it, whose order it has to keep, asks.
func (a *Asks) Deferred() bool { return len(a.Questions) == 0 && a.State == nil }

// Answers continue a call that asked.
type Answers struct {
	// State is that of the [Asks].
	State []byte
	// Replies are the answers by the questions' keys: the raw result of the
	// request that asks, such as {"action":"accept","content":{…}}, which approvals
	// have too. A question without a reply is cancelled.
	Replies map[string]json.RawMessage
	// Ran is what the earlier legs of the call did. The continuation is never
	// taken for safer than them.
	Ran Ran
	// Gone says that nobody will answer. The call ends, its server is told, and
	// its result is of no use to anybody.
	Gone bool
}
