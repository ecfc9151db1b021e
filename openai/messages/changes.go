package messages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A change is a block of the type tool_addition or tool_removal: a tool is there from this
// place of the conversation on, or no longer
// (https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
// Since a Chat API is given the tools once for a whole request, what counts is how they are at
// the end.
type change struct {
	place string // of its member tool
	kind  string // of that
	added bool
	tool  *rawjson.Object
}

// server is the label of the server whose tools are meant; empty for tools of the client's.
func (c *change) server() string {
	name, _ := rawjson.String(c.tool.Get("server_name"))
	return name
}

// isChange reports whether blocks of a kind change the tools.
func isChange(kind string) bool { return kind == "tool_addition" || kind == "tool_removal" }

// readChanges reads what a block changes: itself, or what a summary says of the part of
// the conversation that it stands for. Errors name a place in it.
func (r *Request) readChanges(b *block, role string) error {
	switch {
	case role == "system" && isChange(b.kind):
		return r.readChange(b, b.place())
	case role == "assistant" && b.kind == "compaction" && !rawjson.IsNull(b.Get("tool_changes")):
		place := b.place() + ".tool_changes"
		all, err := blocks(b.Get("tool_changes"))
		if err != nil {
			return within(place, err)
		}
		for i := range all {
			if err := r.readChange(&all[i], fmt.Sprintf("%s.%d", place, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Request) readChange(b *block, place string) error {
	tool, err := rawjson.ParseObject(b.Get("tool"))
	if err != nil || !isChange(b.kind) {
		return wrong(place, "must be a tool_addition or a tool_removal, with a tool.")
	}
	c := change{place: place + ".tool", added: b.kind == "tool_addition", tool: tool}
	c.kind, _ = rawjson.String(tool.Get("type"))
	switch {
	case c.kind == "tool_reference", c.kind == "mcp_tool_reference", c.kind == "mcp_toolset_reference":
	case c.kind == "tool_definition" && c.added:
	default:
		return wrong(c.place+".type", "must be tool_reference, mcp_tool_reference or mcp_toolset_reference, or the tool_definition of an addition.")
	}
	r.changes = append(r.changes, c)
	return nil
}

// An entry is one of tools, where the conversation changes them.
type entry struct {
	place string
	raw   json.RawMessage
	name  string // of a tool of the client's, or of a family
	label string // of a toolset's server
	gone  bool
}

func newEntry(place string, raw json.RawMessage) (e entry) {
	e.place, e.raw = place, raw
	if o, err := rawjson.ParseObject(raw); err == nil { // else it is refused where it is read
		kind, _ := rawjson.String(o.Get("type"))
		if run := familyOf(kind); run != nil {
			e.name = run.name
		} else if e.label, _ = rawjson.String(o.Get("mcp_server_name")); e.label == "" {
			e.name, _ = rawjson.String(o.Get("name"))
		}
	}
	return e
}

// changed returns the entries of tools as the conversation has changed them, and the place
// of each.
func (r *Request) changed(tools []json.RawMessage) (_ []json.RawMessage, places []string, _ error) {
	all := make([]entry, len(tools))
	for i, raw := range tools {
		all[i] = newEntry(fmt.Sprintf("tools.%d", i), raw)
	}
	for i := range r.changes {
		c := &r.changes[i]
		switch c.kind {
		case "tool_definition":
			e := newEntry(c.place+".definition", c.tool.Get("definition"))
			at := slices.IndexFunc(all, func(have entry) bool {
				return e.name+e.label != "" && have.name == e.name && have.label == e.label
			})
			if at < 0 {
				all = append(all, e)
			} else {
				all[at] = e // a new one of the same name
			}
		case "tool_reference":
			name, _ := rawjson.String(c.tool.Get("name"))
			at := slices.IndexFunc(all, func(have entry) bool { return name != "" && have.name == name })
			if at < 0 {
				return nil, nil, wrong(c.place+".name", fmt.Sprintf("there is no tool named %q in tools, and none was defined before.", name))
			}
			all[at].gone = !c.added
		}
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return e.gone })
	kept := make([]json.RawMessage, len(all))
	places = make([]string, len(all))
	for i, e := range all {
		kept[i], places[i] = e.raw, e.place
	}
	return kept, places, nil
}

// changeServers changes which tools of servers the request chooses. It comes behind
// [Request.readTools].
func (r *Request) changeServers() error {
	if len(r.changes) == 0 {
		return nil
	}
	declared, off := slices.Clone(r.Servers), maps.Clone(r.off)
	for i := range r.changes {
		c := &r.changes[i]
		label := c.server()
		switch c.kind {
		case "tool_definition":
			definition, _ := rawjson.ParseObject(c.tool.Get("definition"))
			if label, _ = rawjson.String(definition.Get("mcp_server_name")); label == "" {
				continue
			}
		case "tool_reference":
			continue
		}
		at := slices.IndexFunc(r.Servers, func(s model.ServerChoice) bool { return s.Label == label })
		if at < 0 {
			return wrong(c.place+".server_name", fmt.Sprintf("the request chooses no server %q.", label))
		}
		s := &r.Servers[at]
		switch {
		case c.kind != "mcp_tool_reference" && c.added:
			*s = declared[at]
			maps.DeleteFunc(r.off, func(t serverTool, _ bool) bool { return t.server == label && !off[t] })
		case c.kind != "mcp_tool_reference":
			s.AllowedTools = []string{} // it stays one of those that are chosen: no choice would mean all
		default:
			name, _ := rawjson.String(c.tool.Get("name"))
			if r.off[serverTool{label, name}] = !c.added; c.added && s.AllowedTools != nil && !slices.Contains(s.AllowedTools, name) {
				s.AllowedTools = append(slices.Clone(s.AllowedTools), name)
			}
		}
	}
	return nil
}
