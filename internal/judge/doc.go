// Package judge is the room for what may be done: rules, limits, approvals, the audit
// log, and which definitions of tools are trusted. Package gate asks all of them for each
// call, in an order that one function shows. It imports text, wire, state and identity,
// and never who is judged: no server, no upstream.
package judge
