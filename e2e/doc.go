// Package e2e runs the real binary between real clients and real servers.
//
// The tests build cmd/dragoman, start "dragoman serve" with a configuration of
// their own, and talk to it as users do: with the official openai package, the
// Vercel ai package and @openai/agents (scripts in clients/, run by Node), and
// with openai-go (a module of its own in openaigo/). Behind it stand MCP servers
// from npm, the official Go SDK's everything-server in both eras, and servers of
// package fakemcp. The model is rehearsal, in front of which a recorder shows
// what an upstream gets to see.
//
// Here the work is judged by others, too: grammar engines and validators that
// share no code with ours, and public data where variables name their folders
// (CONTRIBUTING.md; "make judge"). The engines are in engines/; dragoman prove
// uses the same ones.
//
// "npm ci" in this folder installs what the tests need; "make e2e" does that
// first. A test whose program is missing skips and says so, and fails when CI is
// set. DRAGOMAN_BINARY names a binary to test in place of one built from source.
package e2e
