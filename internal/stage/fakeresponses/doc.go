// Package fakeresponses is a stand-in for a model's API that speaks Responses.
//
// It says what it is told to say, as JSON or as a stream with every event that the real API
// sends for such an item, and it reads strictly: a member that it does not know, an item
// that lacks one, a call without its output, an output without its call and a response
// that is not kept are errors in the API's own form. So a test in front of it shows not
// only what was asked but that the API would have taken it.
//
// Sources: Open Responses 2026-04-24 for members, events and their order, and the types of
// OpenAI's own clients for what that does not have, such as hosted tools.
package fakeresponses
