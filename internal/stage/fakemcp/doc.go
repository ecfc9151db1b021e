// Package fakemcp has MCP servers that behave, and MCP servers that misbehave,
// for tests and benchmarks.
//
// It is written on net/http and lines of JSON, with neither our own mcp package
// nor the official SDK, so that what is tested against it is tested against
// somebody else's reading of the protocol. It speaks both eras: legacy
// (initialize, sessions) and modern (2026-07-28, nothing but requests). What
// distinguishes one server from another stands in a [Config], which is data: a
// server can be told to misbehave in one way, or in several, from a certain
// request on, or a certain number of times.
//
// A [Server] can be reached in three ways, the same configuration behind each:
//
//	srv := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})
//
//	in, out := srv.Pipe(ctx)      // newline-delimited JSON, in this process
//	httptest.NewServer(srv)       // Streamable HTTP, both eras on every path
//
//	// A child process that speaks over its stdin and stdout. It is this very
//	// program started again, so its TestMain must say first:
//	if fakemcp.IsChild() {
//		fakemcp.Main()
//	}
//	path, args, env := fakemcp.Command(cfg)
//
// What a server received, ran and was told to cancel is kept in its [Log]; a
// child writes it to the file Config.LogFile, which [ReadLog] reads. So a test
// can say "the tool ran exactly once" and "the cancellation arrived", and can
// wait for either without sleeping.
package fakemcp
