// Package servers joins several MCP servers into one [dragoman.Toolset], for
// programs that run a loop of their own: what the gateway does, without the
// gateway.
//
//	set, err := servers.Start(map[string]servers.Server{
//		"files": {Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "."}},
//		"web":   {URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer " + token}},
//	}, nil)
//	if err != nil {
//		log.Fatal(err) // a label or a server that cannot be, not one that is down
//	}
//	defer set.Close()
//	if err := set.Wait(ctx); err != nil { … } // until each has listed its tools, or failed; an error if all have
//	list, err := set.List(ctx)
//
// For one server, package mcp is enough: its Client is a toolset, too.
//
// # Supervision
//
// Each server has a supervisor. It connects, lists the tools, lists them again when
// the server says that they have changed, and connects anew, with growing pauses,
// when the connection is lost; meanwhile the server keeps the tools that it listed
// last. Servers never wait for one another: what is wrong with one stands in its
// entry of [dragoman.List].Servers, and harms no other. A call that provably did not
// run is made once more, over a new connection if need be; one that may have run
// only where it changes nothing.
//
// A local server is a child process. It leads a process group, inherits PATH, HOME
// and a few more variables and nothing else, and is watched by a guard, which ends
// it with everything that it started when this process is gone, by whatever death.
// The guard is this program, started anew with the argument __guard: importing this
// package is all that it needs. On Windows there is none, and local servers end
// with their input.
//
// # Names
//
// The tools of the server "files" are called files__read_file and so on: in letters,
// digits, _ and -, at most 64 of them, which every provider takes, and the same
// tomorrow. [dragoman.Tools.Find] understands a tool's own name where only one tool
// can be meant.
package servers
