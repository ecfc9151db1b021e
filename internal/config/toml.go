package config

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads TOML, which has no references to variables: its text is as it stands
// there. Nodes have the places that errors show.
func parseTOML(src *source, data []byte) (*node, *Error) {
	// The parser below takes tables that are said twice, and keys.
	if err := toml.Unmarshal(data, &map[string]any{}); err != nil {
		wrong, ok := errors.AsType[*toml.DecodeError](err)
		if !ok {
			return nil, &Error{File: src.name, Message: "this is not valid TOML"}
		}
		line, column := wrong.Position()
		return nil, src.errorAt(line, column, "", "this is not valid TOML", "")
	}
	b := &tomlBuilder{src: src, data: data, starts: []int{0}, column: 1, root: &node{kind: mapKind, line: 1, column: 1}}
	for i, c := range data {
		if c == '\n' {
			b.starts = append(b.starts, i+1)
		}
	}
	b.parser.Reset(data)
	table := b.root
	for b.parser.NextExpression() {
		e := b.parser.Expression()
		if e.Kind == unstable.KeyValue {
			b.pair(table, e, 0)
		} else {
			table = b.table(e)
		}
		if b.failed != nil {
			return nil, b.failed
		}
	}
	if err := b.parser.Error(); err != nil { // which Unmarshal would have found
		return nil, &Error{File: src.name, Message: "this is not valid TOML"}
	}
	return b.root, nil
}

// A tomlBuilder puts the expressions of a TOML document together.
type tomlBuilder struct {
	src    *source
	data   []byte
	starts []int // where lines begin
	parser unstable.Parser

	at, column int // the last byte of which the column is known
	root       *node
	count      int
	failed     *Error
}

// made returns a new node of a kind at the place of another one's bytes, and counts it.
func (b *tomlBuilder) made(k kind, at unstable.Range) *node {
	n := &node{kind: k, literal: true}
	n.line, n.column = b.place(at)
	if b.count++; b.count > maxNodes && b.failed == nil {
		b.failed = b.src.errorAt(n.line, n.column, "", fmt.Sprintf("the document has more than %d values", maxNodes), "")
	}
	return n
}

// place returns the line and the column, in characters, where bytes begin.
func (b *tomlBuilder) place(at unstable.Range) (line, column int) {
	offset := int(at.Offset)
	line, _ = slices.BinarySearch(b.starts, offset+1) // the parser itself counts from the beginning of the file
	start, column := b.starts[line-1], 1
	if start <= b.at && b.at <= offset {
		start, column = b.at, b.column
	}
	if column += utf8.RuneCount(b.data[start:offset]); offset > b.at {
		b.at, b.column = offset, column
	}
	return line, column
}

// table returns the table that a header names, which is the last one of a list where it
// is in one.
func (b *tomlBuilder) table(e *unstable.Node) *node {
	at := b.root
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		name, last := string(key.Data), keys.IsLast()
		have := at.get(name)
		switch {
		case have == nil && last && e.Kind == unstable.ArrayTable:
			have = b.made(listKind, key.Raw)
			b.enter(at, key, have)
		case have == nil:
			have = b.made(mapKind, key.Raw)
			b.enter(at, key, have)
		}
		if have.kind == listKind {
			if last && e.Kind == unstable.ArrayTable {
				have.items = append(have.items, b.made(mapKind, key.Raw))
			}
			have = have.items[len(have.items)-1]
		}
		at = have
	}
	return at
}

func (b *tomlBuilder) enter(to *node, key *unstable.Node, value *node) {
	line, column := b.place(key.Raw)
	to.add(entry{string(key.Data), line, column, value})
}

// pair enters a key, maybe with dots, and its value into a table.
func (b *tomlBuilder) pair(table *node, e *unstable.Node, depth int) {
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		if keys.IsLast() {
			b.enter(table, key, b.value(e.Value(), key, depth+1))
			return
		}
		have := table.get(string(key.Data))
		if have == nil {
			have = b.made(mapKind, key.Raw)
			b.enter(table, key, have)
		}
		table = have
	}
}

// value returns a value. Lists and tables stand at the place of their key, since the
// parser does not say where they begin.
func (b *tomlBuilder) value(v *unstable.Node, key *unstable.Node, depth int) *node {
	at := v.Raw
	if at.Length == 0 {
		at = key.Raw
	}
	if depth > maxDepth {
		if b.failed == nil {
			line, column := b.place(at)
			b.failed = b.src.errorAt(line, column, "", fmt.Sprintf("the document is nested more than %d levels deep", maxDepth), "")
		}
		return &node{}
	}
	var n *node
	switch v.Kind {
	case unstable.Array:
		n = b.made(listKind, at)
		for items := v.Children(); items.Next(); {
			n.items = append(n.items, b.value(items.Node(), key, depth+1))
		}
	case unstable.InlineTable:
		n = b.made(mapKind, at)
		for pairs := v.Children(); pairs.Next(); {
			b.pair(n, pairs.Node(), depth+1)
		}
	case unstable.Bool:
		n = b.made(boolKind, at)
		n.text = string(v.Data)
	case unstable.Integer, unstable.Float:
		n = b.made(numberKind, at)
		n.text = string(v.Data)
	default: // text, and times, which are text here
		n = b.made(stringKind, at)
		n.text = string(v.Data)
	}
	return n
}
