// Package state is the room for what is kept: in memory, within bounds, or in the store.
// What lives here says how long and how much, and whose it is; what it means is the
// business of whoever keeps it. It imports text, wire and the nouns of the root.
package state
