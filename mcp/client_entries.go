package mcp

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
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
		case dragoman.Skill:
			e.Name, e.URI = readSkill(o)
		default:
			e.Name, _ = rawjson.String(o.Get("name"))
		}
		if e.Original = e.URI; kind == dragoman.Prompt {
			e.Original = e.Name
		}
		if e.Original == "" {
			c.log.Warn("MCP server listed something without a name", "kind", string(kind))
			continue
		}
		entries = append(entries, e)
	}
	return entries
}

// readSkill returns the name and the address of a skill: that of its SKILL.md, which
// is what it is known by. Both are empty for an entry that must not be loaded
// (SEP-2640, "Skill Entries").
func readSkill(o *rawjson.Object) (name, uri string) {
	front := object(o.Get("frontmatter"))
	name, _ = rawjson.String(front.Get("name"))
	uri, _ = rawjson.String(o.Get("uri"))
	about, _ := rawjson.String(front.Get("description"))
	files := o.Get("resources")
	dynamic, _ := rawjson.String(files)
	if name == "" || about == "" || !strings.HasSuffix(uri, "/"+name+"/SKILL.md") && uri != "skill://"+name+"/SKILL.md" ||
		rawjson.Kind(files) != '[' && dynamic != "dynamic" {
		return "", ""
	}
	return name, uri
}
