package responses

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Values that nobody changes.
var null, yes, no, empty = json.RawMessage("null"), json.RawMessage("true"), json.RawMessage("false"), json.RawMessage("[]")

// object returns an object of members, in their order.
func object(members ...rawjson.Member) json.RawMessage {
	return (&rawjson.Object{Members: members}).Bytes()
}

func raw(name string, value json.RawMessage) rawjson.Member {
	if value == nil {
		value = null
	}
	return rawjson.Member{Name: name, Value: value}
}

func text(name, value string) rawjson.Member {
	return rawjson.Member{Name: name, Value: rawjson.Literal(value)}
}

// enter puts an entry into a map, which is made with its first one: most requests need few of
// theirs.
func enter[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// typeOf returns the type that an object says; empty where it says none, or is none.
func typeOf(object json.RawMessage) string {
	kind, _ := rawjson.String(rawjson.Find(object, "type"))
	return kind
}

func number(name string, n int) rawjson.Member {
	return rawjson.Member{Name: name, Value: strconv.AppendInt(nil, int64(n), 10)}
}

func array(elements ...json.RawMessage) json.RawMessage {
	if len(elements) == 0 {
		return empty
	}
	return rawjson.AppendArray(nil, elements)
}

// literalOf returns the literal of a member's text; that of no text where it is none.
func literalOf(o *rawjson.Object, name string) json.RawMessage {
	if value := o.Get(name); rawjson.Kind(value) == '"' {
		return value
	}
	return noWords
}

// stringOf returns the text of a member; empty where it is none.
func stringOf(o *rawjson.Object, name string) string {
	s, _ := rawjson.String(o.Get(name))
	return s
}

func boolean(b bool) json.RawMessage {
	if b {
		return yes
	}
	return no
}
