// Package chat has the client halves of conversations: what somebody asks for,
// and what they get.
//
// A [Conversation] is one request to POST /v1/chat/completions as a
// [dragoman.Conversation]. [Parse] takes the request apart by one level, so
// that only tools, messages and tool_choice are ever edited and every field that
// nobody here knows reaches the upstream byte for byte; the same holds for what
// the upstream answers. Driven by a [dragoman.Loop] it offers our tools beside
// the client's own, forwards text as it arrives, holds the model's calls back,
// hands our results to the model, and shows the client one single completion:
// one id, one role, one finish_reason, usage summed over all rounds, and none of
// our calls.
//
// When a model calls our tools and the client's in one message, the client gets
// its own calls only. What happened meanwhile is kept in a
// [github.com/dragoman-mcp/dragoman/openai/memory.Store], and put back in its
// place when the client returns with its results.
//
// A [Talk] is a conversation of a program, or of a person at a terminal.
//
// Both ask a model through package
// [github.com/dragoman-mcp/dragoman/openai/model], the upstream half.
//
// The rules followed here, and why, stand with the code that follows them. They
// come from the OpenAI API reference and from what the official clients and
// other providers were seen to do.
package chat
