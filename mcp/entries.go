package mcp

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// readEntries makes entries of one kind of the items of a list, each byte for
// byte. Items that no request can name are left out.
func (c *Client) readEntries(kind dragoman.EntryKind, items []json.RawMessage) []dragoman.Entry {
	entries := make([]dragoman.Entry, 0, len(items))
	for _, item := range items {
		e := dragoman.Entry{Kind: kind, Definition: item, Server: c.o.Label}
		o, err := rawjson.ParseObject(item)
		if err != nil || rawjson.Check(item) != nil {
			c.log.Warn("MCP server listed something that cannot be used", "kind", string(kind))
			continue
		}
		switch kind {
		case dragoman.Resource:
			e.URI, _ = rawjson.String(o.Get("uri"))
		case dragoman.Template:
			e.URI, _ = rawjson.String(o.Get("uriTemplate"))
		default:
			e.Name, _ = rawjson.String(o.Get("name"))
		}
		if e.Original = e.Name + e.URI; e.Original == "" {
			c.log.Warn("MCP server listed something without a name", "kind", string(kind))
			continue
		}
		entries = append(entries, e)
	}
	return entries
}
