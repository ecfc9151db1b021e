package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/reach/credential"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
)

// What other clients write in the entries of mcpServers, so that a block that
// works for one of them works here as it is.
var (
	// renamedKeys are their names for keys of ours.
	renamedKeys = map[string]string{
		"type":             "transport",
		"serverUrl":        "url",
		"httpUrl":          "url",
		"environment":      "env",
		"workingDirectory": "cwd",
	}
	// filterKeys say which tools there are.
	filterKeys = map[string]string{
		"disabledTools":  "exclude",
		"disabled_tools": "exclude",
		"excludeTools":   "exclude",
		"enabledTools":   "include",
		"enabled_tools":  "include",
		"includeTools":   "include",
		"allowedTools":   "include",
	}
	// switchKeys are the opposite of disabled.
	switchKeys = []string{"enabled", "isActive"}
	// ignoredKeys have no meaning for a gateway, or give permissions that are
	// given elsewhere here.
	ignoredKeys = []string{
		"alwaysAllow", "authProviderType", "autoAllow", "autoApprove", "autoStart", "bundled", "chatMenu", "description",
		"default_tools_approval_mode", "dev", "displayName", "experimental_environment", "gallery", "icon", "iconPath",
		"iconUrl", "id", "installUrl", "logoUrl", "longRunning", "metadata", "name", "namespace", "note",
		"oauth_resource", "provider", "providerUrl", "registryUrl", "required", "requiresOAuth", "sandboxEnabled",
		"scopes", "serverInstructions", "settings", "source", "supports_parallel_tool_calls", "tags", "title", "trust",
		"trusted", "version", "watchPaths",
	}
	// transportNames are their names for transports.
	transportNames = map[string]string{
		"http":            "streamable-http",
		"streamableHttp":  "streamable-http",
		"streamable_http": "streamable-http",
		"local":           "stdio",
		"remote":          "auto",
	}
)

// ForeignKeys returns the keys of other clients that entries of mcpServers may
// have, sorted.
func ForeignKeys() []string {
	keys := append(slices.Concat(ignoredKeys, switchKeys), variablesFile)
	for key := range unfolders {
		if !slices.Contains(keysOf[servers.Config](), key) {
			keys = append(keys, key)
		}
	}
	for key := range renamedKeys {
		keys = append(keys, key)
	}
	for key := range filterKeys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// adapt returns an entry of mcpServers with what other clients write replaced
// by what we would.
func (d *decoder) adapt(n *node, path string) *node {
	if n.kind != mapKind {
		return n
	}
	merged := n.get(variablesFile) != nil || n.get("env_vars") != nil // with what env says itself
	n = d.unfold(n)
	out := &node{kind: mapKind, line: n.line, column: n.column}
	add := func(e entry, name string, value *node) {
		out.entries = append(out.entries, entry{name, e.line, e.column, value})
	}
	filter := &node{kind: mapKind, line: n.line, column: n.column}
	for _, e := range n.entries {
		at := join(path, e.name)
		switch value := e.value; {
		case e.name == "sandbox" && d.lenient && !ourSandbox(value):
			d.ignored.add(e, path)
		case (e.name == "oauth" || e.name == "auth") && d.lenient && !ourOAuth(value):
			d.ignored.add(e, path)
		case e.name == "pins" && d.lenient && value.text != string(pin.Explicit):
			d.ignored.add(e, path) // whether tools are trusted is not for such files, which others write
		case slices.Contains(ignoredKeys, e.name) || strings.HasPrefix(e.name, "_") || strings.HasPrefix(e.name, "x-"):
			d.ignored.add(e, path)
		case filterKeys[e.name] != "":
			filter.entries = append(filter.entries, entry{filterKeys[e.name], e.line, e.column, value})
		case e.name == "tools" && d.lenient && !ourTools(value):
			d.ignored.add(e, path)
		case e.name == "tools" && value.kind == listKind:
			filter.entries = append(filter.entries, entry{"include", e.line, e.column, value})
		case slices.Contains(switchKeys, e.name) && value.kind == boolKind:
			add(e, "disabled", &node{kind: boolKind, text: strconv.FormatBool(!isTrue(value)), line: value.line, column: value.column})
		case e.name == "command" && value.kind == listKind && len(value.items) > 0:
			add(e, "command", value.items[0])
			if n.get("args") == nil {
				add(e, "args", &node{kind: listKind, items: value.items[1:], line: value.line, column: value.column})
			}
		case e.name == variablesFile:
			out.merge("env", e, d.variablesOf(e, at, n.get("env"))...)
		case e.name == "httpUrl":
			add(e, "url", value)
			if n.get("transport") == nil && n.get("type") == nil {
				add(e, "transport", &node{kind: stringKind, text: "streamable-http", line: value.line, column: value.column})
			}
		case e.name == "transport" || e.name == "type":
			add(e, "transport", adaptTransport(value))
		case e.name == "timeout" && value.kind == numberKind:
			add(e, "timeout", d.adaptTimeout(e, at))
		case e.name == "env" && value.kind == mapKind && merged:
			out.merge("env", e, withoutNulls(value).entries...)
		case e.name == "env" && value.kind == mapKind:
			add(e, "env", withoutNulls(value))
		case renamedKeys[e.name] != "":
			add(e, renamedKeys[e.name], value)
		default:
			out.entries = append(out.entries, e)
		}
	}
	if len(filter.entries) > 0 {
		if tools := out.entry("tools"); tools != nil && tools.value.kind == mapKind {
			both := *tools.value
			both.entries = slices.Concat(both.entries, filter.entries)
			tools.value = &both
		} else {
			out.entries = append(out.entries, entry{"tools", filter.entries[0].line, filter.entries[0].column, filter})
		}
	}
	return out
}

func adaptTransport(value *node) *node {
	name, ok := transportNames[value.text]
	if value.kind != stringKind || !ok {
		return value
	}
	return &node{kind: stringKind, text: name, line: value.line, column: value.column}
}

// adaptTimeout gives a bare number its unit. Some clients mean seconds and some
// milliseconds; nobody waits an hour for a call, or less than 4 seconds in
// milliseconds.
func (d *decoder) adaptTimeout(e entry, path string) *node {
	number, err := strconv.ParseFloat(e.value.text, 64)
	if err != nil || number <= 0 {
		return e.value
	}
	text := e.value.text + "s"
	if number > 3600 {
		text = e.value.text + "ms"
	}
	d.warn(e.line, e.column, path, fmt.Sprintf("%s has no unit and is taken for %s", path, text), "Write "+text+".")
	return &node{kind: stringKind, text: text, line: e.value.line, column: e.value.column}
}

// ourSandbox reports whether the sandbox of a server is one as we have it. Another
// client's, which has other keys, or is a switch, cannot be followed.
func ourSandbox(n *node) bool {
	keys := keysOf[servers.Sandbox]()
	return n.kind == mapKind && !slices.ContainsFunc(n.entries, func(e entry) bool {
		return !slices.Contains(keys, e.name) || e.name == "network" && e.value.kind == mapKind
	})
}

// ourOAuth reports whether the oauth of a server is one as we have it. Another client's
// says who that client is, and where its own login comes back to.
func ourOAuth(n *node) bool {
	keys := keysOf[credential.Config]()
	return n.kind == mapKind && (n.get("scopes") == nil || n.get("grant") != nil) &&
		!slices.ContainsFunc(n.entries, func(e entry) bool { return !slices.Contains(keys, e.name) })
}

// ourTools reports whether tools are a filter as we have it, or a list. Another
// client's mapping, by names of tools, says when it asks a person.
func ourTools(n *node) bool {
	keys := keysOf[servers.Filter]()
	return n.kind != mapKind || !slices.ContainsFunc(n.entries, func(e entry) bool { return !slices.Contains(keys, e.name) })
}

// keysOf returns the keys of a section.
func keysOf[T any]() (keys []string) {
	for _, f := range fieldsOf(reflect.TypeFor[T]()) {
		keys = append(keys, f.name)
	}
	return keys
}

// withoutNulls drops variables that are null, which some clients write for
// those that are not to be set.
func withoutNulls(n *node) *node {
	out := *n
	out.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool { return e.value.kind == nullKind })
	return &out
}
