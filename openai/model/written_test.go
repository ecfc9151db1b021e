package model

import (
	"encoding/json"
	"testing"
)

// TestWritten: documents of the Chat API are what they say, with what is none left out or null.
func TestWritten(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for want, got := range map[string]json.RawMessage{
		`{"role":"user","content":"Say \u00e9."}`:                                      ChatMessage("user", raw(`"Say \u00e9."`)),
		`{"role":"a\"b","content":null}`:                                               ChatMessage(`a"b`, nil),
		`{"role":"tool","tool_call_id":"c\\1","content":[{"type":"text","text":"x"}]}`: ChatResult(`c\1`, raw(`[{"type":"text","text":"x"}]`)),
		`{"role":"tool","tool_call_id":"","content":null}`:                             ChatResult("", nil),
		`{"role":"assistant","content":null}`:                                          ChatAnswer(nil, nil),
		`{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":""}}]}`: ChatAnswer(raw(`"x"`), []json.RawMessage{ChatCall("a", "f", raw(`"{\"x\":1}"`)), ChatCall("b", "g", nil)}),
		`{"type":"function","function":{"name":"f","description":"d\n","parameters":{"type":"object"},"strict":true}}`:                                                                                       ChatFunction("f", raw(`"d\n"`), raw(`{"type":"object"}`), raw("true")),
		`{"type":"function","function":{"name":"f"}}`: ChatFunction("f", raw(`""`), raw("null"), nil),
		`{"type":"function","function":{"name":"g"}}`: ChatFunction("g", raw("3"), nil, raw("null")),
	} {
		if string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !json.Valid(got) {
			t.Errorf("%s is no JSON", got)
		}
	}
}
