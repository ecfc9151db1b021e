// Package servers runs MCP servers and is the innermost toolset: all of them as
// one.
//
// Each server has a supervisor of its own. It connects, lists the tools, lists
// them again when the server says that they changed, and connects anew, with
// growing pauses, when the connection is lost. Servers never wait for one
// another: one that is slow, dead or talks nonsense shows its [State] and has no
// tools, and that is all.
//
// A local server is a child process. It leads a process group, inherits no
// environment beyond a short list, and is watched by a guard (package guard), a
// small process of our own program that ends the whole group should we be killed.
// On Linux the guard also ends what left the group, such as a browser, with the
// server that started it. What a server with a [Sandbox] may use, the guard sees to,
// too.
package servers
