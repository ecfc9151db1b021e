// Package conformance holds the server, written with package toolkit, that the
// official MCP conformance suite talks to, and the test that runs the suite on
// it in both eras. There is nothing here to import.
package conformance
