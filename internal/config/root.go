package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The sections that other clients' files have, too.
const (
	serversKey = "mcpServers"
	inputsKey  = "inputs"
)

var (
	// serversNames are names of other clients for mcpServers.
	serversNames = []string{"servers", "context_servers"}
	// ignoredRoots are keys that stand beside other clients' servers. $schema is
	// for editors.
	ignoredRoots = []string{"globalShortcut", "isDxtAutoUpdatesEnabled", "isUsingBuiltInNodeForMcp", "preferences"}
	// ignoredInputs are keys of inputs that only editors can follow.
	ignoredInputs = []string{"args", "command", "placeholder", "title"}
)

// adaptRoot returns the root of a file of ours with the sections of other
// clients under our names.
func (d *decoder) adaptRoot(root *node) *node {
	if root.kind != mapKind {
		return root
	}
	out := &node{kind: mapKind, line: root.line, column: root.column}
	for _, e := range flattened(root.entries) {
		switch {
		case e.name == "$schema":
		case slices.Contains(ignoredRoots, e.name):
			d.ignored.add(e, "")
		case slices.Contains(serversNames, e.name):
			if other := otherServers(root, e); other != nil {
				d.fail(&node{line: e.line, column: e.column}, e.name,
					fmt.Sprintf("%s is another name of %s, which stands in line %d", e.name, other.name, other.line), "Put all servers into one of them.")
				continue
			}
			out.entries = append(out.entries, entry{serversKey, e.line, e.column, e.value})
		default:
			out.entries = append(out.entries, e)
		}
	}
	return out
}

// flattened lifts what an editor's settings hold under mcp.
func flattened(entries []entry) (out []entry) {
	for _, e := range entries {
		if e.name == "mcp" && (e.value.get("servers") != nil || e.value.get(serversKey) != nil) {
			out = append(out, e.value.entries...)
			continue
		}
		out = append(out, e)
	}
	return out
}

// otherServers returns the entry before e that holds servers, too; nil when
// there is none.
func otherServers(root *node, e entry) *entry {
	for _, other := range flattened(root.entries) {
		if other.name == e.name && other.line == e.line && other.column == e.column {
			break
		}
		if other.name == serversKey || slices.Contains(serversNames, other.name) {
			return &other
		}
	}
	return nil
}

// inputsFirst returns root with the inputs, in our form, before what refers to
// them.
func (d *decoder) inputsFirst(root *node) *node {
	e := root.entry(inputsKey)
	if e == nil || root.kind != mapKind {
		return root
	}
	out := *root
	out.entries = nil
	for _, other := range root.entries {
		if other.name == inputsKey {
			other.value = d.adaptInputs(other.value)
			if d.lenient {
				other.value = d.usableInputs(other.value)
			}
			out.entries = append([]entry{other}, out.entries...)
			continue
		}
		out.entries = append(out.entries, other)
	}
	return &out
}

// adaptInputs returns a list of inputs without what only editors can follow, and
// with options as plain text.
func (d *decoder) adaptInputs(list *node) *node {
	if list.kind != listKind {
		return list
	}
	out := *list
	out.items = nil
	for i, item := range list.items {
		adapted := *item
		adapted.entries = nil
		for _, e := range item.entries {
			if slices.Contains(ignoredInputs, e.name) {
				d.ignored.add(e, fmt.Sprintf("%s[%d]", inputsKey, i))
				continue
			}
			if e.name == "options" && e.value.kind == listKind {
				e.value = plainOptions(e.value)
			}
			adapted.entries = append(adapted.entries, e)
		}
		out.items = append(out.items, &adapted)
	}
	return &out
}

// plainOptions takes the value of options that have a label for people beside it.
func plainOptions(list *node) *node {
	out := *list
	out.items = slices.Clone(list.items)
	for i, item := range out.items {
		if value := item.get("value"); value != nil {
			out.items[i] = value
		}
	}
	return &out
}

// ignored collects the keys that mean nothing to us, for one warning.
type ignored struct {
	first  entry
	keys   []string            // in the order of the file
	places map[string][]string // where each stands
}

// add takes a key that is ignored at a path.
func (g *ignored) add(e entry, path string) {
	if g.places == nil {
		g.first, g.places = e, make(map[string][]string)
	}
	if _, ok := g.places[e.name]; !ok {
		g.keys = append(g.keys, e.name)
	}
	place := strings.TrimPrefix(path, serversKey+".")
	g.places[e.name] = append(g.places[e.name], place)
}

// clone returns a copy that further keys do not change.
func (g *ignored) clone() ignored {
	out := ignored{g.first, slices.Clone(g.keys), maps.Clone(g.places)}
	for key, places := range out.places {
		out.places[key] = slices.Clone(places)
	}
	return out
}

// note returns the warning; nil when nothing was ignored.
func (g *ignored) note(src *source) *Error {
	if g.keys == nil {
		return nil
	}
	var b strings.Builder
	b.WriteString("keys of other clients are ignored: ")
	for i, key := range g.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(key)
		if places := g.places[key]; places[0] != "" {
			b.WriteString(" (" + strings.Join(places, ", ") + ")")
		}
	}
	return &Error{File: src.name, Line: g.first.line, Column: g.first.column, Message: b.String()}
}
