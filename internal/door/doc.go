// Package door is the room for the ways in: each turns requests of one kind into calls,
// on what a session gives it, and renders results and errors in its own form. Doors do
// not import each other.
package door
