package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// doubtLabels warns of patterns for what a server offers whose label no server has:
// a rule that denies what nobody offers looks like one that protects. Where the file
// names no servers they are named elsewhere.
func (d *decoder) doubtLabels(root *node, f *File) {
	if f.MCPServers == nil {
		return
	}
	labels := slices.Sorted(maps.Keys(f.MCPServers))
	doubt := func(at *node, path, pattern string) {
		label := labelOf(pattern)
		if label == "" || slices.Contains(labels, label) {
			return
		}
		hint := Nearest(label, labels)
		if hint == "" && len(labels) > 0 {
			hint = "The servers are " + strings.Join(labels, ", ") + "."
		}
		d.warn(at.line, at.column, path, fmt.Sprintf("%s: %q matches nothing: no server is called %s", path, pattern, label), hint)
	}
	all := func(at *node, path string, patterns []string) {
		for i, pattern := range patterns {
			doubt(at.items[i], fmt.Sprintf("%s[%d]", path, i), pattern)
		}
	}
	for i, rule := range f.Policy {
		at, path := root.get("policy").items[i], fmt.Sprintf("policy[%d].", i)
		all(at.get("allow"), path+"allow", rule.Allow)
		all(at.get("ask"), path+"ask", rule.Ask)
		all(at.get("deny"), path+"deny", rule.Deny)
	}
	for i, limit := range f.Limits {
		all(root.get("limits").items[i].get("of"), fmt.Sprintf("limits[%d].of", i), limit.Of)
	}
	all(root.get("tools").get("always"), "tools.always", f.Tools.Always)
	all(root.get("cache").get("tools"), "cache.tools", f.Cache.Tools)
	for i, form := range f.Results.Tools {
		path := fmt.Sprintf("results.tools[%d]", i)
		doubt(root.get("results").get("tools").items[i], path+".match", form.Match)
	}
}

// labelOf returns the label of the one server whose things a pattern is for; empty
// where it may be for those of several, or of none.
func labelOf(pattern string) string {
	kind, name := permission.CutPattern(pattern)
	label, _, ok := qualified.Split(name)
	if !ok || kind == "model" || kind == "route" || !glob.Literal(label) {
		return ""
	}
	return label
}
