package responses

import (
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/hosted"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A choice is the tool_choice of a request.
type choice struct {
	mode      string // auto, none, required or named; empty for none
	kind      string // of a named tool: function, custom or mcp
	name      string
	namespace string
	server    string
	only      []allowed // allowed_tools: a rule, and no hint; nil for all

	native     json.RawMessage   // as a native API gets it; nil where it names a tool of ours, or is not there
	nativeOnly []json.RawMessage // allowed tools that are not ours; nil for all
}

// An allowed tool is an entry of allowed_tools.
type allowed struct{ kind, name, namespace, server string }

func (r *Request) readChoice() error {
	raw := r.object.Get("tool_choice")
	if rawjson.IsNull(raw) {
		return nil
	}
	if r.native {
		return r.choice.readNative(raw, r.elsewhere)
	}
	wrong := model.Invalid("tool_choice", "\"tool_choice\" must be auto, none, required, or an object that names a tool or allowed_tools.")
	if mode, ok := rawjson.String(raw); ok {
		if r.choice.mode = mode; !slices.Contains([]string{"auto", "none", "required"}, mode) {
			return wrong
		}
		return nil
	}
	o, err := rawjson.ParseObject(raw)
	if err != nil {
		return wrong
	}
	switch kind := stringOf(o, "type"); {
	case kind == "allowed_tools":
		return r.choice.readAllowed(o)
	case kind == "mcp" && stringOf(o, "name") == "":
		r.choice = choice{mode: "required", only: []allowed{{kind: "mcp", server: stringOf(o, "server_label")}}}
	case kind == "function", kind == "custom", kind == "mcp":
		r.choice = choice{mode: "named", kind: kind, name: stringOf(o, "name"), namespace: stringOf(o, "namespace"), server: stringOf(o, "server_label")}
		if r.choice.name == "" {
			return model.Invalid("tool_choice.name", "\"tool_choice\" names no tool.")
		}
	case isSearch(kind):
		r.choice = choice{mode: "named", kind: kind, name: hosted.WebSearch}
	case clientRuns[kind] != nil:
		r.choice = choice{mode: "named", kind: kind, name: kind}
	default:
		return wrong
	}
	return nil
}

func (c *choice) readAllowed(o *rawjson.Object) error {
	tools, err := rawjson.Elements(o.Get("tools"))
	if c.mode = stringOf(o, "mode"); err != nil || c.mode != "auto" && c.mode != "required" {
		return model.Invalid("tool_choice", "\"allowed_tools\" needs a mode, auto or required, and tools.")
	}
	c.only = []allowed{}
	for _, tool := range tools {
		o, err := rawjson.ParseObject(tool)
		if err != nil {
			return model.Invalid("tool_choice.tools", "Each of the allowed tools must be an object.")
		}
		c.only = append(c.only, allowed{stringOf(o, "type"), stringOf(o, "name"), stringOf(o, "namespace"), stringOf(o, "server_label")})
	}
	return nil
}

// client reports whether a tool of the client's may be called.
func (c choice) client(t clientTool) bool {
	return c.only == nil || slices.ContainsFunc(c.only, func(a allowed) bool {
		return a.kind == t.kind && (a.name == t.name || t.kind == "tool_search" || clientRuns[t.kind] != nil) && (a.namespace == "" || a.namespace == t.namespace) ||
			a.kind == "namespace" && a.name == t.namespace
	})
}

// ours returns those tools of a list that may be called. A function among the allowed tools is
// the client's own where that has one of the name, of theirs, else the tool that is offered by it.
func (c choice) ours(list *dragoman.List, theirs map[string]bool) *dragoman.List {
	if c.only == nil {
		return list
	}
	var kept []dragoman.Tool
	for _, t := range list.Tools.All() {
		if slices.ContainsFunc(c.only, func(a allowed) bool {
			return a.kind == "mcp" && a.server == t.Server && (a.name == "" || a.name == t.Original) ||
				a.kind == "function" && a.namespace == "" && a.name == t.Name && !theirs[t.Name] || isSearch(a.kind) && hosted.Is(&t)
		}) {
			kept = append(kept, t)
		}
	}
	only := *list
	only.Tools = dragoman.NewTools(kept)
	return &only
}

// chat returns the choice in the form of the Chat API.
func (c choice) chat(tools *clientTools) model.Choice {
	switch c.mode {
	case "":
		return model.Choice{}
	case "named":
		name := c.name
		if tools.byName != nil && c.kind != "mcp" && !isSearch(c.kind) {
			name = tools.find(c.namespace, c.name, clientRuns[c.kind] != nil)
		}
		return model.Choice{
			Mode: "named", Name: name, Server: c.server,
			Raw: object(text("type", "function"), raw("function", object(text("name", name)))),
		}
	}
	return model.Choice{Mode: c.mode, Raw: json.RawMessage(rawjson.Quote(c.mode))}
}
