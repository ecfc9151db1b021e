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
