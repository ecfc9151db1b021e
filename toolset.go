package dragoman

import "context"

// A Toolset lists tools and runs calls. MCP servers are a toolset; rules are
// toolsets around a toolset. Implementations are safe for concurrent use.
type Toolset interface {
	// Tools returns the tools that can be called now, in a stable order,
	// quarantined ones included. The slice and what it holds must not be
	// changed by the caller, nor by the toolset after it was returned. An error
	// means that there is no list at all; a server that is down is not an error
	// but has no tools.
	Tools(context.Context) ([]Tool, error)

	// Call runs one call and returns when its result is there. A tool that
	// fails, a denial, a server that can not be reached are results. An error
	// is trouble of our own, or the end of the context: Call returns promptly
	// when the context ends, after it has told the server.
	Call(context.Context, Call) (Result, error)
}

// A Conversation is one request of a client, in the dialect that the client
// speaks, from the moment it was read to its last byte. [Loop.Run] drives it
// from one goroutine.
type Conversation interface {
	// Offer sets the tools that the model may use from now on, once, before
	// Next. Quarantined tools are among them, to be left out.
	Offer([]Tool) error

	// Next asks the model for its next message and forwards to the client what
	// the client may see. It returns the calls that the model wants run, in the
	// model's order; none means that the conversation is answered, or that it is
	// the client's turn. With last true the model is to be kept from calling
	// tools, so that the user gets an answer, and Next returns no calls.
	Next(ctx context.Context, last bool) ([]Call, error)

	// Answer hands the model the results of the calls that Next returned, in the
	// same order. It is called even when ctx has ended, so that a conversation
	// can remember what was done, and does not wait for anything.
	Answer(context.Context, []Result) error

	// Close ends the conversation, once. With a nil error it completes the
	// answer to the client; otherwise it tells the client about the error in the
	// client's own form. It returns the error of writing that, if any.
	Close(error) error
}
