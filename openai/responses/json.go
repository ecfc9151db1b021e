package responses

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

var null = json.RawMessage("null")

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
	return rawjson.Member{Name: name, Value: rawjson.Quote(value)}
}

func number(name string, n int) rawjson.Member {
	return rawjson.Member{Name: name, Value: strconv.AppendInt(nil, int64(n), 10)}
}

func array(elements ...json.RawMessage) json.RawMessage { return rawjson.AppendArray(nil, elements) }

// stringOf returns the text of a member; empty where it is none.
func stringOf(o *rawjson.Object, name string) string {
	s, _ := rawjson.String(o.Get(name))
	return s
}

func boolean(b bool) json.RawMessage {
	if b {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}
