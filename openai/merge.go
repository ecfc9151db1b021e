package openai

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// merge adds the delta of one chunk to what has arrived of a message. Text
// appends, arrays whose elements have an index merge element by element, other
// arrays append, objects merge, and everything else is replaced by the last.
// Unknown members are merged by the same rules, since providers want some of
// them back: DeepSeek its reasoning_content, OpenRouter its reasoning_details,
// Gemini its extra_content. into keeps no part of delta.
func merge(into, delta *rawjson.Object) {
	for _, m := range delta.Members {
		old := into.Get(m.Name)
		switch {
		case old != nil && rawjson.IsNull(m.Value):
			// null says nothing new
		case rawjson.IsNull(old), len(m.Value) == len(old) && m.Name == "role":
			if string(old) != string(m.Value) {
				into.Set(m.Name, append(json.RawMessage(nil), m.Value...))
			}
		default:
			into.Set(m.Name, mergeValue(m.Name, old, m.Value))
		}
	}
}

func mergeValue(name string, old, delta json.RawMessage) json.RawMessage {
	kind := rawjson.Kind(delta)
	if rawjson.Kind(old) != kind {
		return append(json.RawMessage(nil), delta...)
	}
	switch kind {
	case '"':
		if appends(name) {
			// Both are literals: join them without decoding. The parts of a parsed
			// document have no room behind them, so nothing is overwritten.
			return append(old[:len(old)-1], delta[1:]...)
		}
	case '[':
		return mergeArrays(old, delta)
	case '{':
		a, errA := rawjson.ParseObject(old)
		b, errB := rawjson.ParseObject(delta)
		if errA == nil && errB == nil {
			merge(a, b)
			return a.Bytes()
		}
	}
	return append(json.RawMessage(nil), delta...)
}

// appends reports whether a string member comes in pieces.
func appends(name string) bool {
	switch name {
	case "content", "refusal", "text", "thinking", "summary", "data", "transcript", "arguments", "input":
		return true
	}
	return strings.Contains(name, "reasoning")
}

func mergeArrays(old, delta json.RawMessage) json.RawMessage {
	elements, err := rawjson.Elements(old)
	added, errAdded := rawjson.Elements(delta)
	if err != nil || errAdded != nil {
		return append(json.RawMessage(nil), delta...)
	}
	for _, raw := range added {
		o, err := rawjson.ParseObject(raw)
		if err != nil || o.Get("index") == nil {
			elements = append(elements, raw)
			continue
		}
		at := -1
		for i, e := range elements {
			if have, err := rawjson.ParseObject(e); err == nil && string(have.Get("index")) == string(o.Get("index")) {
				at = i
			}
		}
		if at < 0 {
			elements = append(elements, raw)
			continue
		}
		have, _ := rawjson.ParseObject(elements[at])
		merge(have, o)
		elements[at] = have.Bytes()
	}
	return rawjson.AppendArray(nil, elements)
}
