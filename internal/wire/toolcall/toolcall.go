// Package toolcall tells what a model wrote of a call from what its client wrote.
package toolcall

import (
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Apart parts a message with which a client calls a tool from its arguments, where nothing
// else in it is wrong: these are JSON, and not as strict as [rawjson.Check] wants it, with
// half a character or a name twice. The rest is the same message without arguments. It is
// false for every other message.
//
// A model wrote the arguments, and can write them better if it is told. Of a message that
// is refused for them it hears nothing: over HTTP some clients end their session at status
// 400, and on lines they wait for an answer that has their id.
func Apart(message []byte) (rest, arguments []byte, ok bool) {
	if !json.Valid(message) {
		return nil, nil, false
	}
	m, err := rawjson.ParseObject(message)
	if err != nil {
		return nil, nil, false
	}
	params, err := rawjson.ParseObject(m.Get("params"))
	if method, _ := rawjson.String(m.Get("method")); method != "tools/call" || err != nil {
		return nil, nil, false
	}
	arguments = params.Get("arguments")
	if !params.Delete("arguments") || params.Get("arguments") != nil || rawjson.Check(arguments) == nil {
		return nil, nil, false
	}
	m.Set("params", params.Bytes())
	rest = m.Bytes()
	return rest, arguments, rawjson.Check(rest) == nil
}
