// Package mcp speaks the Model Context Protocol, in both eras of the protocol, on
// raw JSON: to servers, as a client, and to clients, as a server.
//
// # A client
//
// [Connect] opens a [Transport] and returns a [Client], which is a
// [dragoman.Toolset]: it has listed the server's tools and calls them. The
// transports are [Command] (a child process, stdio), [HTTP] (Streamable HTTP, and
// HTTP+SSE where the server knows no better) and [Pipe] (anything with two ends: a
// server in the same process, a socket).
//
// A client is one connection. It looks after the things that belong to the
// protocol: it finds out the era, renews a session that an HTTP server has
// forgotten, resumes a stream that broke, subscribes to changes of lists and keeps
// the lists fresh. It does not start a process again or connect anew;
// [Client.Done] and [Client.Err] tell whoever does that.
//
// What a server asks while it works (a form, a visit to an address, a sample of a
// model, roots) is a [dragoman.Asks] in the result of the call, and the same call
// with [dragoman.Answers] goes on: see [Client.Call].
//
// # A server
//
// A [Server] is an [net/http.Handler] for clients of both eras at one address, and
// serves lines and HTTP+SSE, too. It knows nothing of tools: it puts each request
// to a [Host] as a [dragoman.Call], and each question of the result to the client,
// in the way of the client's era.
//
// # Two eras
//
// Servers of the legacy era (2024-11-05 to 2025-11-25) are greeted with
// initialize and keep a session; servers of the modern era (2026-07-28) are told
// everything with each request. A server is asked once, with server/discover;
// what is neither an answer nor an error that only a modern server sends means
// legacy, and so does silence ([ClientOptions].ProbeTimeout). HTTP statuses that
// say nothing about the era (401, 403, 429, 5xx) end Connect with an error.
// [Client.Era] can be remembered, in [ClientOptions].Era, to save the question.
//
// The differences stay inside: requests of a legacy server and the
// "input_required" results of a modern one become the same questions; a call that
// nobody waits for is cancelled by notifications/cancelled, or by closing its
// stream; changes of lists come over the listening stream, or over a
// subscription.
//
// # Bytes
//
// A tool's definition, the arguments of a call and its result are never decoded
// and encoded again. The order of members, integers above 2^53, the spelling of
// numbers and strings, content types and fields that nobody knows yet: all
// arrive as they left. The one exception is that newlines between the tokens of
// arguments become spaces on stdio, where a newline ends the message.
//
// # When servers misbehave
//
// Every read is bounded, see [Limits]. What is not a message is logged and
// skipped; an answer that is not valid fails the call that it is for; an entry of
// tools/list that cannot be used is quarantined with the reason. Requests that
// the client did not say it answers are refused. What a call may have changed is
// never guessed: [dragoman.Result].Ran is [dragoman.RanNot] only for a call that
// provably did not run.
//
// # Rules
//
// The rules are those of the specification, cited by revision and page where they
// are followed: https://modelcontextprotocol.io/specification/2026-07-28 and
// …/2025-11-25. The official conformance suite runs against client and server in
// mcp/conformance.
//
// # Files
//
// client_* is what speaks to servers, server_* what speaks to clients, wire_* what
// both need.
package mcp
