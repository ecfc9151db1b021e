// Package dragoman makes any OpenAI-compatible model use any MCP server as if
// the model had been born with its tools.
//
// A program starts servers (package servers), has a model (openai/chat and
// openai/model), and runs a [Loop]:
//
//	tools, err := servers.Start(map[string]servers.Server{"files": {Command: command}}, nil)
//	…
//	defer tools.Close()
//	err = tools.Wait(ctx) // until they are there: Start does not wait
//	…
//	talk := &chat.Talk{Client: &model.Client{BaseURL: address, Key: key}, Model: name}
//	loop := dragoman.Loop{Tools: tools}
//	err = loop.Run(ctx, talk.Say("What changed since yesterday?"))
//	fmt.Println(talk.Text())
//
// The example of the package is the whole of it.
//
// The whole design is one sentence: a door turns a request into calls, a
// [Toolset] runs calls, and everything between is a toolset around a toolset.
// This package holds the nouns of that sentence and the one algorithm that
// joins them:
//
//   - a [Tool] is one entry of an MCP server's tools/list, kept byte for byte;
//   - a [Call] is what a model, or a person, wants done with it;
//   - a [Result] is what came of it, and a [Problem] why it did not come;
//   - a [Toolset] lists tools and runs calls. MCP servers are one, and so is
//     each rule around them: names, policy, limits, cache;
//   - a [Conversation] is one client request in the dialect the client speaks;
//   - [Loop] runs a conversation to its end: the model decides, we execute,
//     the model summarises.
//
// Tools that fail, calls that are denied and calls that time out are results,
// because the model must see them to go on. An error returned by a Toolset or
// a Conversation is trouble of our own, or of the upstream, and ends the
// conversation.
//
// Raw bytes are the truth. Definitions, arguments and results travel as
// [encoding/json.RawMessage], since decoding into maps loses the order of
// members and integers above 2^53, and decoding into structs loses every field
// that the struct does not know.
//
// The parts that do the work live in packages of their own, each usable alone:
// schema and dialect convert tools and bring arguments back, result shapes what
// a server answered, openai speaks to models and their clients, mcp speaks to
// servers, rehearsal is a model for tests. The command in cmd/dragoman puts
// them together.
package dragoman
