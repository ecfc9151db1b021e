package mcpserve

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A server refers to its resources by its own URIs: in links, in what it embeds, and where
// it says what was read. Where our lists have one under another URI, since another server
// has the same, that is the one that clients are told: by the server's own they would read
// the other server's resource.

// relisted returns the resources and templates that are listed under another URI than their
// server's, by server.
func (v *view) relisted() map[string][]*dragoman.Entry {
	found := map[string][]*dragoman.Entry{}
	for i := range v.entries {
		e := &v.entries[i]
		if (e.Kind == dragoman.Resource || e.Kind == dragoman.Template) && e.URI != e.Original {
			found[e.Server] = append(found[e.Server], e)
		}
	}
	return found
}

// public returns the URI by which clients know what a server calls uri.
func (v *view) public(server, uri string) string {
	if e := v.resource(uri); e != nil && e.Server == server {
		return uri
	}
	for _, e := range v.others()[server] {
		if e.Original == uri || e.Kind == dragoman.Template && v.pattern(e.Original).MatchString(uri) {
			return catalog.PublicURI(server, uri)
		}
	}
	return uri
}

// linked returns a result of a server with the URIs that clients know: of a tool, of a
// prompt, or of a resource that was read.
func (v *view) linked(server string, content json.RawMessage) json.RawMessage {
	if len(v.others()[server]) == 0 {
		return content
	}
	switch rawjson.Kind(content) {
	case '[':
		elements, err := rawjson.Elements(content)
		if err != nil {
			return content
		}
		for i := range elements {
			elements[i] = v.linked(server, elements[i])
		}
		return rawjson.AppendArray(nil, elements)
	case '{':
		o, err := rawjson.ParseObject(content)
		if err != nil {
			return content
		}
		o = o.Clone()
		for name, value := range o.All() {
			switch name {
			case "content", "contents", "messages", "resource":
				o.Set(name, v.linked(server, value))
			case "uri":
				if uri, ok := rawjson.String(value); ok {
					o.Set(name, rawjson.Quote(v.public(server, uri)))
				}
			}
		}
		return o.Bytes()
	}
	return content
}
