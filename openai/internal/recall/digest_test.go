package recall

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestDigestStays: keys of turns are in stores that earlier versions wrote, so that what goes
// into them, and how, must stay.
func TestDigestStays(t *testing.T) {
	d := newDigest()
	defer d.free()
	for _, message := range []string{
		`{"role":"system","content":"Be brief."}`,
		`{"role":"user","content":[{"type":"text","text":"What is \"caf\u00e9\"?\n"}]}`,
		`{"role":"user","content":[{"type":"text","text":"Two"},{"type":"text","text":"parts"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"a\":1}"}},` +
			`{"id":"call_2","type":"custom","custom":{"name":"run","input":"x"}},` +
			`{"id":"call_3","type":"function","function":{"name":"look","arguments":{"a":2}}}]}`,
		`{"role":"tool","tool_call_id":"call_1","content":"found"}`,
		`{"role":"assistant","content":"Done."}`,
	} {
		o, err := rawjson.ParseObject(json.RawMessage(message))
		if err != nil {
			t.Fatal(err)
		}
		d.message(o)
	}
	if got, want := hex.EncodeToString([]byte(d.sum())), "e0b9e6c2266ae1c66956539d940df4c22597b472eb676fc7df3773d2dc2ea3cb"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
