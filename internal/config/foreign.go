package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/servers"
)

// ReadMCP reads the MCP servers from another client's file, which is JSON,
// maybe with comments, and holds them under mcpServers, servers, mcp.servers or
// context_servers. Everything else in the file is left alone. The result is a
// [File] with nothing but servers and defaults, for [File.UseServers].
//
// Keys that mean nothing to us become warnings. Labels that we could not use are
// changed, with a warning. References to environment variables are filled in as
// in our own files, except that $$ is two dollars; references that only an
// editor can fill in, such as ${input:key} and ${workspaceFolder}, are errors.
func ReadMCP(path string, lookup func(string) (string, bool)) (*File, error) {
	data, warnings, err := readFile(path, maxForeignFile)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		return nil, Errors{{File: path, Message: "TOML is not read here", Hint: "Write the servers as JSON: {\"mcpServers\": {\"label\": {\"command\": …}}}."}}
	}
	f, err := parseMCP(path, data, lookup)
	if err != nil {
		return nil, err
	}
	f.Warnings = append(warnings, f.Warnings...)
	f.resolve(filepath.Dir(path))
	return f, nil
}

func parseMCP(name string, data []byte, lookup func(string) (string, bool)) (*File, error) {
	src, root, failed := tree(name, data)
	if failed != nil {
		return nil, Errors{failed}
	}
	found := foreignServers(root)
	if found == nil {
		return nil, Errors{src.errorAt(root.line, root.column, "", "there are no MCP servers in this file", `They are expected under "mcpServers", "servers" or "mcp".`)}
	}
	d := &decoder{src: src, expand: expander{lookup: lookup, plainDollars: true}, refs: make(map[string]reference), lenient: true}
	section := entry{"mcpServers", found.line, found.column, d.relabel(found)}
	return d.file(&node{kind: mapKind, line: root.line, column: root.column, entries: []entry{section}})
}

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
			d.warn(e.line, e.column, "mcpServers."+e.name, fmt.Sprintf("the server %q is called %s here", e.name, label), "")
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
		if r < 0x80 && servers.CheckLabel("a"+string(r)) == nil {
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
