package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A LeftOut is a server of another client's file that cannot be used here, be it that
// only the client knows how to start it. The others of the file can.
type LeftOut struct {
	// Label is what the server would be called here.
	Label string
	// Reason says in one line what is wrong, and where.
	Reason *Error
}

// A said is what a decoder had said and filled in before something that may be left out.
type said struct {
	errs, warnings int
	ignored        ignored
	refs           map[string]reference
}

// soFar and forget make a decoder forget what it said and filled in since then. Only what
// the document costs stays counted.
func (d *decoder) soFar() said {
	return said{len(d.errs), len(d.warnings), d.ignored.clone(), maps.Clone(d.refs)}
}

func (d *decoder) forget(to said) {
	d.errs, d.warnings, d.ignored, d.refs = d.errs[:to.errs], d.warnings[:to.warnings], to.ignored, to.refs
}

// since returns what is wrong since then, in one line: the first of it, and how much
// more there is.
func (d *decoder) since(m said, about string) *Error {
	wrong := d.errs[m.errs:]
	first := *wrong[0]
	text := first.Message
	if first.Hint != "" {
		text += ". " + first.Hint
	}
	if more := len(wrong) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return &Error{File: first.File, Line: first.Line, Column: first.Column, Path: first.Path, Message: about + ": " + strings.Join(strings.Fields(text), " ")}
}

// serverOrNot fills v from an entry of another client's mcpServers, and reports whether
// it can be used. One that cannot is left out.
func (d *decoder) serverOrNot(e entry, v reflect.Value, path string, twice bool) bool {
	before := d.soFar()
	if twice {
		d.fail(&node{line: e.line, column: e.column}, join(path, e.name), fmt.Sprintf("there are several servers of this name in %s", path), "")
	} else if d.startable(e, path) {
		d.server(e, v, path)
	}
	if len(d.errs) == before.errs {
		return true
	}
	if d.nodes > maxNodes { // what is wrong is the whole document
		return true
	}
	reason := d.since(before, fmt.Sprintf("the server %q is left out", e.name))
	d.forget(before)
	said := slices.ContainsFunc(d.leftOut, func(l LeftOut) bool { return l.Label == e.name })
	if !said && !switchedOff(e.value) { // nobody misses one that is off
		d.leftOut = append(d.leftOut, LeftOut{e.name, reason})
	}
	return false
}

// startable reports whether an entry says how its server is started, or where it is. The
// entries of an editor's extensions do not: the extension does it.
func (d *decoder) startable(e entry, path string) bool {
	source := e.value.get("source")
	extension := source != nil && source.text == "extension" || e.value.get("settings") != nil
	if !extension || e.value.get("command") != nil || e.value.get("url") != nil {
		return true
	}
	at := join(path, e.name)
	d.fail(&node{line: e.line, column: e.column}, at, at+": an extension of the editor starts this server", "Write its command here.")
	return false
}

// switchedOff reports whether an entry is one of a server that is not to be started.
func switchedOff(n *node) bool {
	return isTrue(n.get("disabled")) || slices.ContainsFunc(switchKeys, func(key string) bool {
		value := n.get(key)
		return value != nil && value.kind == boolKind && !isTrue(value)
	})
}

// usableInputs leaves out the inputs of another client's file that are none here: what
// refers to one of them asks as for an input that nobody declared.
func (d *decoder) usableInputs(list *node) *node {
	if list.kind != listKind {
		d.note(entry{line: list.line, column: list.column}, inputsKey, inputsKey+" is no list, and is left out")
		return &node{kind: listKind, line: list.line, column: list.column}
	}
	out := *list
	out.items = nil
	var taken []Input
	for i, item := range list.items {
		before := d.soFar()
		var in Input
		d.value(item, reflect.ValueOf(&in).Elem(), fmt.Sprintf("%s[%d]", inputsKey, i), field{})
		if len(d.errs) == before.errs {
			if err := checkInputs(append(taken[:len(taken):len(taken)], in)); err != nil {
				d.invalid(item, "", err)
			}
		}
		if len(d.errs) > before.errs {
			reason := d.since(before, "an input is left out")
			d.forget(before)
			d.warnings = append(d.warnings, reason)
			continue
		}
		taken, out.items = append(taken, in), append(out.items, item)
	}
	return &out
}

// several returns the labels that stand more than once.
func several(entries []entry) map[string]bool {
	seen, twice := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		twice[e.name] = twice[e.name] || seen[e.name]
		seen[e.name] = true
	}
	return twice
}

// labelled returns a list of servers that have their names inside as the mapping that
// others write.
func labelled(list *node) *node {
	out := &node{kind: mapKind, line: list.line, column: list.column}
	for i, item := range list.items {
		name := fmt.Sprintf("server-%d", i+1)
		if given := item.get("name"); given != nil && given.kind == stringKind && given.text != "" {
			name = given.text
		}
		out.add(entry{name, item.line, item.column, item})
	}
	return out
}
