// Package text is the room for words and values that somebody wrote: patterns, names,
// secrets, command lines. What lives here judges, shortens or hides a text without
// knowing who wrote it. It imports nothing of ours outside this room.
package text
