// Package hosted lets a tool of an MCP server do what the provider of an API does on its
// own servers for models of its own: search the web.
//
// Clients declare such a tool by a type, with no schema: web_search in the Responses API,
// web_search_20250305 and later in Messages. A model of another provider is offered a
// function of the same name in its place, [Search.Tool]; what runs is the tool that the
// configuration maps, by [Search.Arguments], and [Search.Shape] brings its result into one
// form, which [Results] reads again. Both halves of those APIs show it by blocks and items
// of their own.
package hosted
