// Package identity is the room for who asks: keys, access tokens, rights, callers. A
// caller is recognised once, at the front, and is a parameter from there on. It imports
// text, wire and state.
package identity
