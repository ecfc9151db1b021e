// Package responses is the client half of the Responses API: one request to POST
// /v1/responses as a [dragoman.Conversation], for upstreams that speak Chat.
//
//	request, err := responses.Parse(body)
//	err = request.Resolve(ctx, store, caller)
//	conversation, err := responses.New(request, w, responses.Options{…})
//	err = loop.Run(ctx, conversation)
//
// The items of a request become messages of the Chat API, byte for byte where that is
// possible, and what the model says becomes items and events. Calls of ours show as
// mcp_call items. Any number of rounds is one response: one id, one created, one
// completed, and places in its output that only rise.
//
// Sources: Open Responses 2026-04-24 for the response, its items and its events; the
// types of OpenAI's own clients for what that does not have, such as mcp tools.
package responses
