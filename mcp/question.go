package mcp

import "encoding/json"

// A Question asks a person for something while a call waits.
type Question struct {
	// Server is the label of the MCP server on whose behalf we ask.
	Server string
	// Message says what is asked, in the server's own words.
	Message string
	// Schema is the JSON Schema of the answer, as in elicitation/create; nil
	// when yes or no is all that is asked.
	Schema json.RawMessage
	// URL is set when the person is asked to visit an address instead.
	URL string
}

// A Reply is a person's answer to a [Question].
type Reply struct {
	// Action is "accept", "decline" or "cancel".
	Action string
	// Content is the answer, an object that fits the question's Schema; nil
	// unless Action is "accept".
	Content json.RawMessage
}
