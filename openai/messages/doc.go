// Package messages lets any model of a Chat API answer clients of Anthropic's Messages
// API, with tools of MCP servers that are run here.
//
// [Parse] reads a request, [New] makes a [dragoman.Conversation] of it, and a
// [dragoman.Loop] drives that. However many rounds it takes, the client gets one message:
// one message_start, blocks with rising indexes, one message_stop. What was said before
// comes with each request, so nothing has to be kept here for it; what the client does
// not see of a conversation is put back as it is for clients of the Chat API.
//
// A request that names MCP servers, by mcp_servers or an mcp_toolset, sees their calls as
// blocks mcp_tool_use and mcp_tool_result, and sends them back. For one that names none
// they stay unseen, as in the Chat API: its client may never have heard of them.
//
// The names, members and rules of the API are those of @anthropic-ai/sdk 1.12.
package messages
