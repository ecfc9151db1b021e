package messages

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// changeFlags are what the flags of the API begin with for which the conversation changes the
// tools.
var changeFlags = []string{"mid-conversation-tool-changes-", "inline-tools-"}

// isDeferred reports whether an entry of tools is to be loaded later.
func isDeferred(o *rawjson.Object) bool { return string(o.Get("defer_loading")) == "true" }

// bring notes that the conversation has added a tool of a name.
func (r *Request) bring(name string) {
	if r.brought == nil {
		r.brought = map[string]bool{}
	}
	r.brought[name] = true
}

// A deferred tool is one of the client's that is to be loaded later: with an addition, or once
// a result refers to it.
type deferred struct {
	at       int    // in tools
	function string // its name there
	name     string // by which the conversation refers to it
}

// later notes that the tool that was added last is to be loaded later, unless the conversation
// has done so.
func (r *Request) later(function, name string) {
	if !r.brought[name] {
		r.deferred = append(r.deferred, deferred{len(r.tools) - 1, function, name})
	}
}

// withholdDeferred takes out of the tools those that nothing has loaded yet. It is for clients
// whose conversation does: to others, whose tools Anthropic's search would load, all of them are
// offered. Claude Code sends one in place of all, and tells the model the names of those that it
// means, so that a call of a tool that nobody knows here may be of one of them.
func (r *Request) withholdDeferred() {
	if r.searches || len(r.deferred) == 0 {
		return
	}
	referred := r.referred()
	withheld := map[int]bool{}
	for _, d := range r.deferred {
		if !referred[d.name] {
			withheld[d.at] = true
			delete(r.names, d.function)
			r.withholds = true
		}
	}
	kept := make([]json.RawMessage, 0, len(r.tools))
	for i, tool := range r.tools {
		if !withheld[i] {
			kept = append(kept, tool)
		}
	}
	r.tools, r.deferred = kept, nil
}

// referred returns the names of tools to which results refer, as those of a search of the
// client's do.
func (r *Request) referred() map[string]bool {
	all := map[string]bool{}
	for _, t := range r.turns {
		for _, b := range t.blocks {
			if b.kind != "tool_result" {
				continue
			}
			parts, _ := rawjson.Elements(b.Get("content")) // none where it is a text
			for _, part := range parts {
				if kind, _ := rawjson.String(rawjson.Find(part, "type")); kind == "tool_reference" {
					name, _ := rawjson.String(rawjson.Find(part, "tool_name"))
					all[name] = true
				}
			}
		}
	}
	return all
}
