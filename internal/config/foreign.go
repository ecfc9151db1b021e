package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// foreignServers finds the mapping of labels to servers.
func foreignServers(root *node) *node {
	found := anyForeignServers(root)
	if found == nil || found.kind != mapKind {
		return found
	}
	return switchOff(found, root)
}

func anyForeignServers(root *node) *node {
	for _, path := range foreignPaths {
		n := root
		for _, name := range path {
			n = n.get(name)
		}
		switch {
		case n == nil:
		case n.kind == mapKind:
			return n
		case n.kind == listKind:
			return labelled(n)
		}
	}
	if extensions := root.get("extensions"); extensions != nil && slices.ContainsFunc(extensions.entries, isExtension) {
		return extensionServers(extensions)
	}
	// Some files are the mapping itself.
	startable := func(e entry) bool { return e.value.get("command") != nil || e.value.get("url") != nil }
	sections := func(e entry) bool { return e.value.kind == mapKind }
	if root.kind == mapKind && slices.ContainsFunc(root.entries, startable) && !slices.ContainsFunc(root.entries, func(e entry) bool { return !sections(e) }) {
		return root
	}
	return nil
}

// foreignPaths are where other clients have their servers, in mappings by their labels
// or in lists.
var foreignPaths = [][]string{
	{"mcpServers"}, {"servers"}, {"mcp", "servers"}, {"mcp", "mcpServers"}, {"mcp"}, {"context_servers"}, {"mcp_servers"},
	{"experimental", "modelContextProtocolServers"},
}

// Goose calls its servers extensions, and has names of its own for their keys.
var extensionKeys = map[string]string{"cmd": "command", "uri": "url", "envs": "env", "env_keys": "env_vars", "available_tools": "enabledTools", "display_name": "displayName"}

// isExtension reports whether an entry is a server among Goose's extensions.
func isExtension(e entry) bool { return e.value.get("cmd") != nil || e.value.get("uri") != nil }

// extensionServers returns Goose's extensions as servers. Those that are part of Goose
// itself have no command, and are left out later. No available tools are all of them.
func extensionServers(n *node) *node {
	out := *n
	out.entries = slices.Clone(n.entries)
	for i, e := range out.entries {
		if e.value.kind != mapKind {
			continue
		}
		server := *e.value
		server.entries = nil
		for _, e := range e.value.entries {
			if e.value.kind == nullKind || e.name == "available_tools" && len(e.value.items) == 0 {
				continue
			}
			if name, ok := extensionKeys[e.name]; ok {
				e.name = name
			}
			server.add(e)
		}
		out.entries[i].value = &server
	}
	return &out
}

// switchOff returns servers of which those are disabled that Gemini CLI's settings
// exclude, or do not allow, beside them.
func switchOff(found, root *node) *node {
	allowed, excluded := root.get("mcp").get("allowed"), root.get("mcp").get("excluded")
	off := func(label string) bool {
		named := func(item *node) bool { return item.text == label }
		return isList(allowed) && !slices.ContainsFunc(allowed.items, named) || isList(excluded) && slices.ContainsFunc(excluded.items, named)
	}
	out := *found
	out.entries = slices.Clone(found.entries)
	for i, e := range out.entries {
		if e.value.kind != mapKind || !off(e.name) {
			continue
		}
		server := *e.value
		server.entries = slices.DeleteFunc(slices.Clone(e.value.entries), func(e entry) bool {
			return e.name == "disabled" || slices.Contains(switchKeys, e.name)
		})
		server.add(entry{"disabled", e.line, e.column, &node{kind: boolKind, text: "true", line: e.line, column: e.column}})
		out.entries[i].value = &server
	}
	return &out
}

func isList(n *node) bool { return n != nil && n.kind == listKind }

// foreignInputs finds the inputs that editors keep beside their servers.
func foreignInputs(root *node) *node {
	if list := root.get(inputsKey); list != nil {
		return list
	}
	return root.get("mcp").get(inputsKey)
}

// relabel changes labels that cannot be labels here.
func (d *decoder) relabel(n *node) *node {
	out := *n
	out.entries = nil
	taken := make(map[string]bool)
	for _, e := range n.entries {
		taken[e.name] = true
	}
	for _, e := range n.entries {
		if servers.CheckLabel(e.name) != nil {
			label := plainLabel(e.name)
			for i := 2; taken[label]; i++ {
				label = fmt.Sprintf("%.28s-%d", plainLabel(e.name), i)
			}
			d.note(e, join(serversKey, e.name), fmt.Sprintf("the server %q is called %s here", e.name, label))
			taken[label] = true
			e.name = label
		}
		out.entries = append(out.entries, e)
	}
	return &out
}

// plainLabel returns the label that looks most like name.
func plainLabel(name string) string {
	label := strings.Map(func(r rune) rune {
		if r < 0x80 && servers.CheckLabel("a"+string(r)+"a") == nil {
			return r
		}
		return '-'
	}, name)
	for strings.Contains(label, qualified.Separator) {
		label = strings.ReplaceAll(label, qualified.Separator, "_")
	}
	for strings.Contains(label, "--") {
		label = strings.ReplaceAll(label, "--", "-")
	}
	label = strings.Trim(label[:min(len(label), servers.MaxLabel)], "-_.")
	if label == "" {
		return "server"
	}
	return label
}
