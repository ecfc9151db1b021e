package mcpserve

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A server refers to its resources by its own URIs: in links, in what it embeds, and where
// it says what was read. Where such a URI is another server's resource here, clients are
// told one that says whose it is: by the server's own they would read the other's.

// public returns the URI by which clients know what a server calls uri. One that nobody can
// mean stays, as does what a server without resources refers to, which is for others.
func (v *view) public(server, uri string) string {
	if e := v.resource(uri); e == nil || e.Server == server || !v.hasResources(server) {
		return uri
	}
	return catalog.PublicURI(server, uri)
}

// hasResources reports whether a server can be asked for resources.
func (v *view) hasResources(label string) bool {
	return v.has(func(s dragoman.Server) bool { return s.Label == label && capability(s, "resources") != nil })
}

// linked returns a result of a server with the URIs that clients know: of a tool, of a
// prompt, or of a resource that was read. A raw result stays as it came.
func (h *host) linked(v *view, server string, content json.RawMessage) json.RawMessage {
	if h.door.now.Load().Raw {
		return content
	}
	return v.linked(server, content)
}

// linked is [host.linked] of a part of a result.
func (v *view) linked(server string, content json.RawMessage) json.RawMessage {
	if len(v.servers) < 2 || !bytes.Contains(content, []byte(`"uri"`)) {
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
