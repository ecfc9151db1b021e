// Package model is the upstream half of a conversation: one model API, as every
// client half asks it.
//
// A [Client] asks a model for one message: it sends a body to the API's
// chat/completions, reads the answer, streamed or not, in all the forms in which
// providers were seen to send it, and returns it put together as a [Reply]. A
// [Listener] is told what the model says while it says it.
//
//	c := model.Client{BaseURL: "https://api.openai.com/v1", Key: key}
//	reply, err := c.Ask(ctx, [][]byte{body}, model.Listener{})
//
// A [Dialogue] is a conversation with tools on top of that: it keeps the history as
// the upstream knows it, offers our tools in the upstream's dialect, parts the
// model's calls into ours and the client's, and puts our results where they
// belong. The client halves in package openai are built on it.
//
// Where there are too many tools to offer them all, a model searches for them: [Search]
// says when, and a [Finder] has a toolset answer it.
//
// What an upstream can make us hold is bounded: [Client.MaxMessage] counts what is
// kept of an answer, not what it is said to be, and an upstream that goes silent is
// given up after [Client.Idle].
//
// # What is stable
//
// [Client], [Listener], [Reply], [Error] with its codes, [Offers], [Search] and [Finder]
// keep their form. [Dialogue], [Round] and what they take and return are for client halves,
// those in this module and others ([Object] is how both see a document): they keep their
// form from one minor release to the next, and CHANGELOG says what changed. The rest is what
// the halves of this module share.
package model
