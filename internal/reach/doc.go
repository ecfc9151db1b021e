// Package reach is the room for those we talk to: MCP servers, under names, in
// sandboxes, with tokens, and the APIs of models. It imports all rooms below; a door
// gets at it through a session alone.
package reach
