// Package result puts what an MCP server answered into the form that a model
// reads best.
package result
