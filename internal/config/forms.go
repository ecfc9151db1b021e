package config

import (
	"slices"
)

// Some clients put what are keys of an entry here into mappings of their own, or
// name variables in place of writing references to them:
//
//	Zed       command: {path: …, args: […], env: {…}}
//	Continue  transport: {type: …, url: …}, requestOptions: {headers: {…}}
//	Codex     http_headers, env_http_headers: {NAME: VARIABLE}, env_vars: [VARIABLE],
//	          bearer_token_env_var: VARIABLE, startup_timeout_sec: 20

// unfold returns the entry of a server with such keys in place of their mappings.
func (d *decoder) unfold(n *node) *node {
	out := &node{kind: mapKind, line: n.line, column: n.column}
	for _, e := range n.entries {
		unfold := unfolders[e.name]
		if unfold == nil || !unfold(d, out, e) {
			out.add(e)
		}
	}
	return out
}

// unfolders add what an entry stands for to a server, by the entry's key. They report
// whether it had the form that they know.
var unfolders = map[string]func(d *decoder, to *node, e entry) bool{
	"command": func(_ *decoder, to *node, e entry) bool {
		return e.value.spread(to, map[string]string{"path": "command", "args": "args", "env": "env"})
	},
	"transport": func(_ *decoder, to *node, e entry) bool {
		return e.value.spread(to, map[string]string{"type": "type", "url": "url", "headers": "headers", "command": "command", "args": "args", "env": "env"})
	},
	"requestOptions": func(_ *decoder, to *node, e entry) bool {
		return e.value.spread(to, map[string]string{"headers": "headers"})
	},
	"http_headers": func(_ *decoder, to *node, e entry) bool {
		if e.value.kind != mapKind {
			return false
		}
		to.merge("headers", e, e.value.entries...)
		return true
	},
	"env_http_headers": func(_ *decoder, to *node, e entry) bool {
		if e.value.kind != mapKind {
			return false
		}
		to.merge("headers", e, referring(e.value.entries, "")...)
		return true
	},
	"bearer_token_env_var": func(_ *decoder, to *node, e entry) bool {
		if e.value.kind != stringKind {
			return false
		}
		to.merge("headers", e, referring([]entry{{"Authorization", e.line, e.column, e.value}}, "Bearer ")...)
		return true
	},
	"env_vars":            (*decoder).passVariables,
	"startup_timeout_sec": timeIn("startup_timeout", "s"),
	"startup_timeout_ms":  timeIn("startup_timeout", "ms"),
	"connectionTimeout":   timeIn("startup_timeout", "ms"),
	"tool_timeout_sec":    timeIn("timeout", "s"),
}

// spread adds the values of a mapping to a server, under the names that they have
// there. A value that is no mapping is not of this form.
func (n *node) spread(to *node, names map[string]string) bool {
	if n.kind != mapKind {
		return false
	}
	for _, e := range n.entries {
		name, ok := names[e.name]
		switch {
		case !ok:
		case e.value.kind == mapKind:
			to.merge(name, e, e.value.entries...)
		default:
			e.name = name
			to.add(e)
		}
	}
	return true
}

// passVariables adds the variables of our environment that a list names. One that is
// not set is not passed, as for those who have this key.
func (d *decoder) passVariables(to *node, e entry) bool {
	if e.value.kind != listKind {
		return false
	}
	var passed []entry
	for _, item := range e.value.items {
		name := item
		if item.kind == mapKind {
			name = item.get("name")
		}
		if name == nil || name.kind != stringKind || !variableName(name.text) {
			return false
		}
		if _, set := d.expand.lookup(name.text); set {
			passed = append(passed, entry{name.text, name.line, name.column, name})
		}
	}
	to.merge("env", e, referring(passed, "")...)
	return true
}

// referring returns entries whose values, which name variables, are references to them,
// behind a prefix. What is not the name of a variable stays, and is found out later.
func referring(entries []entry, prefix string) []entry {
	out := slices.Clone(entries)
	for i, e := range out {
		if e.value.kind == stringKind {
			out[i].value = &node{kind: stringKind, text: prefix + "${" + e.value.text + "}", line: e.value.line, column: e.value.column}
		}
	}
	return out
}

// timeIn returns what takes a number for a time in a unit.
func timeIn(key, unit string) func(*decoder, *node, entry) bool {
	return func(_ *decoder, to *node, e entry) bool {
		if e.value.kind != numberKind {
			return false
		}
		to.add(entry{key, e.line, e.column, &node{kind: stringKind, text: e.value.text + unit, line: e.value.line, column: e.value.column}})
		return true
	}
}

// add adds an entry to a mapping that is being made.
func (n *node) add(e entry) { n.entries = append(n.entries, e) }

// merge adds entries to the mapping of one name in a mapping that is being made. at is
// the place of the mapping where it is new.
func (n *node) merge(name string, at entry, entries ...entry) {
	have := n.entry(name)
	if have == nil {
		n.add(entry{name, at.line, at.column, &node{kind: mapKind, line: at.value.line, column: at.value.column}})
		have = n.entry(name)
	}
	whole := *have.value
	whole.entries = slices.Concat(whole.entries, entries)
	have.value = &whole
}
