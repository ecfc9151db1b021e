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
	all := make([]entry, 0, len(tools))
	named, labelled := map[string]int{}, map[string]int{} // the first of each name, and of each label
	enter := func(e entry) {
		if _, had := named[e.name]; !had && e.name != "" {
			named[e.name] = len(all)
		}
		if _, had := labelled[e.label]; !had && e.label != "" {
			labelled[e.label] = len(all)
		}
		all = append(all, e)
	}
	for i, raw := range tools {
		enter(newEntry(fmt.Sprintf("tools.%d", i), raw))
	}
	for i := range r.changes {
		c := &r.changes[i]
		switch c.kind {
		case "tool_definition":
			e := newEntry(c.place+".definition", c.tool.Get("definition"))
			r.bring(e.name)
			at, had := named[e.name]
			if !had {
				at, had = labelled[e.label]
			}
			if had {
				all[at] = e // a new one of the same name
			} else {
				enter(e)
			}
		case "tool_reference":
			name, _ := rawjson.String(c.tool.Get("name"))
			at, had := named[name]
			if !had {
				return nil, nil, wrong(c.place+".name", fmt.Sprintf("there is no tool named %q in tools, and none was defined before.", name))
			}
			if all[at].gone = !c.added; c.added {
				r.bring(name)
			}
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
	servers := make(map[string]*changedServer, len(r.Servers))
	for i := range r.Servers {
		if s := &r.Servers[i]; servers[s.Label] == nil {
			servers[s.Label] = newChangedServer(s)
		}
	}
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
		s := servers[label]
		if s == nil {
			return wrong(c.place+".server_name", fmt.Sprintf("the request chooses no server %q.", label))
		}
		name, _ := rawjson.String(c.tool.Get("name"))
		switch {
		case c.kind != "mcp_tool_reference" && c.added:
			s.none, s.more, s.away = false, map[string]int{}, map[string]bool{}
		case c.kind != "mcp_tool_reference":
			s.none, s.more = true, map[string]int{}
		case c.added:
			s.add(name, r.off[serverTool{label, name}])
		default:
			s.remove(name)
		}
	}
	for label, s := range servers {
		s.apply(label, r.off)
	}
	return nil
}

// A changedServer is what the conversation has changed of a server's tools. It keeps apart
// what each change takes back, so that none of them looks at all that were before.
type changedServer struct {
	choice *model.ServerChoice
	none   bool            // those that the request allows are gone
	more   map[string]int  // tools that came beside them, by when
	on     map[string]bool // tools that the request turns off, and that came
	away   map[string]bool // tools that went
}

func newChangedServer(choice *model.ServerChoice) *changedServer {
	return &changedServer{choice: choice, more: map[string]int{}, on: map[string]bool{}, away: map[string]bool{}}
}

// add adds a tool, which the request may turn off.
func (s *changedServer) add(name string, off bool) {
	delete(s.away, name)
	if off {
		s.on[name] = true
	}
	if _, had := s.more[name]; !had {
		s.more[name] = len(s.more)
	}
}

func (s *changedServer) remove(name string) {
	delete(s.on, name)
	s.away[name] = true
}

// apply changes what the request chooses of the server, and which tools are off.
func (s *changedServer) apply(label string, off map[serverTool]bool) {
	if s.none {
		s.choice.AllowedTools = []string{} // it stays one of those that are chosen: no choice would mean all
	}
	if s.choice.AllowedTools != nil && len(s.more) > 0 {
		for _, name := range s.choice.AllowedTools {
			delete(s.more, name)
		}
		more := slices.SortedFunc(maps.Keys(s.more), func(a, b string) int { return s.more[a] - s.more[b] })
		s.choice.AllowedTools = slices.Concat(s.choice.AllowedTools, more)
	}
	for name := range s.on {
		off[serverTool{label, name}] = false
	}
	for name := range s.away {
		off[serverTool{label, name}] = true
	}
}
