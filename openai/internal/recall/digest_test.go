package recall

import (
	"encoding/json"
	"slices"
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
	keys := (&Thread{Request: Request{Identified: true}}).prefixKeys(nil, d)
	if want := []string{
		"e0b9e6c2266ae1c66956539d940df4c22597b472eb676fc7df3773d2dc2ea3cbb63682abfea1f56baae330374b21ff096abec400b5067b1c6b6be127bc714021",
		"e0b9e6c2266ae1c66956539d940df4c22597b472eb676fc7df3773d2dc2ea3cb",
	}; !slices.Equal(spelled(keys), []string{prefixed + want[0], prefixed + want[1]}) {
		t.Errorf("%q, want %q", spelled(keys), want)
	}
}
