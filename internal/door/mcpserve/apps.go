package mcpserve

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// MCP Apps pass through us and are never rendered here: what belongs to them is in
// _meta.ui of tools, results and resources, which nobody touches, and in resources,
// which keep their URI. What is left to do is to tell each side that the other knows
// of them.

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
