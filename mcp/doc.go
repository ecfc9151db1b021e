// Package mcp speaks the Model Context Protocol to servers, in both eras, on
// raw JSON.
package mcp
