package config

import (
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
)

// foreignServers finds the mapping of labels to servers.
func foreignServers(root *node) *node {
	for _, path := range [][]string{{"mcpServers"}, {"servers"}, {"mcp", "servers"}, {"mcp", "mcpServers"}, {"mcp"}, {"context_servers"}} {
		n := root
		for _, name := range path {
			n = n.get(name)
		}
		if n != nil && n.kind == mapKind {
			return n
		}
	}
	// Some files are the mapping itself.
	if root.kind != mapKind || len(root.entries) == 0 {
		return nil
	}
	for _, e := range root.entries {
		if e.value.get("command") == nil && e.value.get("url") == nil {
			return nil
		}
	}
	return root
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
	for strings.Contains(label, "__") {
		label = strings.ReplaceAll(label, "__", "_")
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
