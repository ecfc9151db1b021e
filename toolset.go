package dragoman

import "context"

// A Toolset lists tools and runs calls. MCP servers are a toolset; rules are
// toolsets around a toolset. Implementations are safe for concurrent use;
// package toolsettest checks that one keeps the contract.
type Toolset interface {
	// List returns what can be called now, without waiting for the network. While
	// nothing changes it returns the same list, and while the tools stay equal the
	// same Tools. An error means that there is no list at all; a server that is
	// down is not an error but has a state.
	List(context.Context) (*List, error)

	// Call runs one call and returns when its result is there. A tool that
	// fails, a denial, a server that cannot be reached are results, and so is a
	// question: nothing inside a toolset waits for a person or a client. An error
	// is trouble of our own, or the end of the context: Call returns promptly when
	// the context ends, after it has told the server. Beside an error, the result
	// still says in Ran what is known.
	Call(context.Context, Call) (Result, error)
}

// A Conversation is one request of a client, in the dialect that the client
// speaks, from the moment it was read to its last byte. [Loop.Run] drives it
// from one goroutine.
type Conversation interface {
	// Offer sets what the model may use from now on, once, before Next.
	// Quarantined tools are among it, to be left out.
	Offer(*List) error

	// Next asks the model for its next message and forwards to the client what
	// the client may see. It returns the calls that the model wants run, in the
	// model's order; none means that the conversation is answered, or that it is
	// the client's turn. With last true the model is to be kept from calling
	// tools, so that the user gets an answer, and Next returns no calls.
	//
	// Where an earlier turn ended with questions, the first Next returns the
	// stored calls with their Answers, without asking the model.
	Next(ctx context.Context, last bool) ([]Call, error)

	// Answer hands the model the results of the calls that Next returned, in the
	// same order. Results that ask end the turn: the conversation keeps the calls
	// and tells the client what is asked, as its dialect can. It is called even
	// when ctx has ended, so that a conversation can remember what was done, and
	// does not wait for anything.
	Answer(context.Context, []Result) error

	// Close ends the conversation, once. With a nil error it completes the
	// answer to the client; otherwise it tells the client about the error in the
	// client's own form. It returns the error of writing that, if any.
	Close(error) error
}
