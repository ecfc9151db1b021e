package mcpserve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// MCP Apps pass through us and are never rendered here: what belongs to them is in
// _meta.ui of tools, results and resources, which nobody touches, and in resources,
// which keep their URI. What is left to do is to tell each side that the other knows
// of them, and to know the tools that views call by the names of their own server.

// appsExtension is the extension's name, and appsType the type of a view that both
// sides know.
const (
	appsExtension = "io.modelcontextprotocol/ui"
	appsType      = `"text/html;profile=mcp-app"`
)

// AppsDeclared is what servers are told of clients that may show views: the object
// of a client's extensions.
var AppsDeclared = json.RawMessage(`{"` + appsExtension + `":{"mimeTypes":[` + appsType + `]}}`)

// appsCapability is what clients are told about views: the types that any of the
// servers has. Nil where none says that it has views.
func (v *view) appsCapability() json.RawMessage {
	var types []json.RawMessage
	said := false
	for _, s := range v.servers {
		o, err := rawjson.ParseObject(extension(s, appsExtension))
		if err != nil {
			continue
		}
		said = true
		theirs, _ := rawjson.Elements(o.Get("mimeTypes"))
		for _, t := range theirs {
			if !slices.ContainsFunc(types, func(have json.RawMessage) bool { return string(have) == string(t) }) {
				types = append(types, t)
			}
		}
	}
	switch {
	case !said:
		return nil
	case types == nil:
		return json.RawMessage(`{}`)
	}
	return append(rawjson.AppendArray([]byte(`{"mimeTypes":`), types), '}')
}

// ofView returns the tool that a view calls by a name that we gave to nobody: the one
// of that name at its server, as long as no other server has views and such a tool.
// Nothing in the request says whose view it is, so where several have one it is an
// error. Nil means that there is none.
func (v *view) ofView(name string) (*dragoman.Tool, error) {
	var found []*dragoman.Tool
	for i := range v.tools.All() {
		t := &v.tools.All()[i]
		if t.Original != name || t.Quarantined != nil || !v.hasViews(t.Server) {
			continue
		}
		if _, views := catalog.Visibility(t); views {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, t := range found {
		names[i] = t.Name
	}
	return nil, &mcp.RPCError{Code: invalidParams, Message: fmt.Sprintf("%d servers have a tool that their views call %q, and nothing says which is meant: call %s", len(found), name, strings.Join(names, " or "))}
}

// hasViews reports whether a server has views: it says so, or a tool or a resource of it
// is one of a view.
func (v *view) hasViews(label string) bool {
	const scheme = "ui://"
	said := func(s dragoman.Server) bool { return s.Label == label && extension(s, appsExtension) != nil }
	listed := func(e dragoman.Entry) bool { return e.Server == label && strings.HasPrefix(e.Original, scheme) }
	linked := func(t dragoman.Tool) bool {
		return t.Server == label && bytes.Contains(t.Definition, []byte(`"`+scheme))
	}
	return v.has(said) || slices.ContainsFunc(v.entries, listed) || slices.ContainsFunc(v.tools.All(), linked)
}
