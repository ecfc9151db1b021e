package model

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A growing value is put together from the deltas of a stream. Text appends,
// arrays whose elements have an index merge element by element, other arrays
// append, objects merge, and everything else is replaced by the last. Unknown
// members are merged by the same rules, since providers want some of them back:
// DeepSeek its reasoning_content, OpenRouter its reasoning_details, Gemini its
// extra_content.
//
// What has arrived is never read again, so that a stream costs what it is long.
// Nothing of a delta is kept but copies.
type growing struct {
	raw    []byte         // the value, or its beginning; nil for none
	end    byte           // what raw lacks at its end: a quote or a bracket; 0 for nothing
	object *growingObject // in place of raw, once two objects were merged
	array  *growingArray  // in place of raw, where elements have an index
}

type growingObject struct {
	members []growingMember
	at      map[string]int // of the members by name, once they are many
}

type growingMember struct {
	name  string
	value growing
}

type growingArray struct {
	elements []growing
	at       map[string]int // of the elements by index
}

// Costs in bytes of what holds a part of a growing value beside its own bytes.
const (
	memberCost  = 128
	elementCost = 192
)

// add merges a delta into the value of a member, and returns about how many bytes
// more are held for it.
func (g *growing) add(name string, delta json.RawMessage) int {
	switch kind := rawjson.Kind(delta); {
	case g.kind() == 0, g.kind() == 'n':
		return g.set(name, delta)
	case kind == 'n': // says nothing new
		return 0
	case kind != g.kind():
		return g.set(name, delta)
	case kind == '"' && appends(name):
		return g.appendText(delta)
	case kind == '[':
		return g.addElements(delta)
	case kind == '{':
		return g.addMembers(delta)
	}
	return g.set(name, delta)
}

// kind is [rawjson.Kind] of the value; 0 for none.
func (g *growing) kind() byte {
	switch {
	case g.object != nil:
		return '{'
	case g.array != nil:
		return '['
	case g.raw == nil:
		return 0
	}
	return rawjson.Kind(g.raw)
}

func (g *growing) set(name string, value json.RawMessage) int {
	*g = growing{raw: append(g.raw[:0], value...)}
	switch kind := rawjson.Kind(value); {
	case kind == '"' && appends(name):
		g.raw, g.end = g.raw[:len(g.raw)-1], '"'
	case kind == '[':
		g.raw = nil
		return g.addElements(value)
	}
	return len(value)
}

// appendText joins two literals without decoding them.
func (g *growing) appendText(delta json.RawMessage) int {
	if g.end != '"' {
		g.raw, g.end = g.raw[:len(g.raw)-1], '"'
	}
	g.raw = append(g.raw, delta[1:len(delta)-1]...)
	return len(delta) - 2
}

// addElements merges an array. Whether its elements have an index shows with the
// first one.
func (g *growing) addElements(delta json.RawMessage) int {
	elements, err := rawjson.Elements(delta)
	if err != nil || len(elements) == 0 {
		if g.kind() == 0 {
			g.raw = append(g.raw, delta...)
		}
		return len(delta)
	}
	if g.array == nil && g.end != ']' { // none so far
		*g = growing{raw: []byte{'['}, end: ']'}
		if index(elements[0]) != "" {
			*g = growing{array: &growingArray{at: map[string]int{}}}
		}
	}
	if g.array != nil {
		cost := 0
		for _, element := range elements {
			cost += g.array.add(element)
		}
		return cost
	}
	for _, element := range elements {
		if len(g.raw) > 1 {
			g.raw = append(g.raw, ',')
		}
		g.raw = append(g.raw, element...)
	}
	return len(delta)
}

func (a *growingArray) add(element json.RawMessage) int {
	key := index(element)
	if at, ok := a.at[key]; ok && key != "" {
		return a.elements[at].add("", element)
	}
	if key != "" {
		a.at[key] = len(a.elements)
	}
	a.elements = append(a.elements, growing{raw: bytes.Clone(element)})
	return len(element) + elementCost
}

// index returns the index by which an element of an array says which one it
// continues; "" for none.
func index(element json.RawMessage) string {
	if rawjson.Kind(element) != '{' {
		return ""
	}
	o, err := rawjson.ParseObject(element)
	if err != nil {
		return ""
	}
	return string(o.Get("index"))
}

func (g *growing) addMembers(delta json.RawMessage) int {
	o, err := rawjson.ParseObject(delta)
	if err != nil {
		return 0
	}
	cost := 0
	if g.object == nil {
		have, err := rawjson.ParseObject(g.raw)
		if err != nil {
			return g.set("", delta)
		}
		*g = growing{object: &growingObject{}}
		cost = g.object.merge(have)
	}
	return cost + g.object.merge(o)
}

// merge adds the members of an object, and returns about how many bytes more are
// held for it.
func (o *growingObject) merge(delta *rawjson.Object) int {
	cost := 0
	for _, m := range delta.Members {
		value := o.get(m.Name)
		if value == nil {
			cost += memberCost
			value = o.put(strings.Clone(m.Name))
		}
		cost += value.add(m.Name, m.Value)
	}
	return cost
}

// many is the number of members from which on they are found by a map.
const many = 16

// get returns the value of a member; nil for none.
func (o *growingObject) get(name string) *growing {
	if o.at != nil {
		if i, ok := o.at[name]; ok {
			return &o.members[i].value
		}
		return nil
	}
	for i := range o.members {
		if o.members[i].name == name {
			return &o.members[i].value
		}
	}
	return nil
}

func (o *growingObject) put(name string) *growing {
	o.members = append(o.members, growingMember{name: name})
	last := len(o.members) - 1
	switch {
	case o.at != nil:
		o.at[name] = last
	case last >= many:
		o.at = map[string]int{}
		for i := range o.members {
			o.at[o.members[i].name] = i
		}
	}
	return &o.members[last].value
}

// result returns the object as it is now. It shares no bytes with what goes on
// growing.
func (o *growingObject) result() *rawjson.Object {
	done := &rawjson.Object{Members: make([]rawjson.Member, 0, len(o.members)+3)}
	for i := range o.members {
		m := &o.members[i]
		done.Members = append(done.Members, rawjson.Member{Name: m.name, Value: m.value.append(nil)})
	}
	return done
}

// append appends the value to dst.
func (g *growing) append(dst []byte) []byte {
	switch {
	case g.object != nil:
		return g.object.result().Append(dst)
	case g.array != nil:
		dst = append(dst, '[')
		for i := range g.array.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = g.array.elements[i].append(dst)
		}
		return append(dst, ']')
	}
	if dst = append(dst, g.raw...); g.end != 0 {
		dst = append(dst, g.end)
	}
	return dst
}

// appends reports whether a string member comes in pieces.
func appends(name string) bool {
	switch name {
	case "content", "refusal", "text", "thinking", "summary", "data", "transcript", "arguments", "input":
		return true
	}
	return strings.Contains(name, "reasoning")
}

// AddLogprobs joins the logprobs of the rounds of one completion.
func AddLogprobs(documents ...json.RawMessage) json.RawMessage {
	var g growing
	for _, document := range documents {
		if !rawjson.IsNull(document) {
			g.add("", document)
		}
	}
	if g.kind() == 0 {
		return nil
	}
	return g.append(nil)
}
