// Package find finds tools by words, and runs find_tools: for models and clients of MCP that
// are not offered all tools, and for people who look through them.
package find
