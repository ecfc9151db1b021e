package recall

import (
	"encoding/json"
	"slices"
	"strings"
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

// TestTailStays: so must the key of what is behind an id of ours, which says nothing of what is
// before it.
func TestTailStays(t *testing.T) {
	for id, want := range map[string]string{
		ReadID + strings.Repeat("A", random): "prefix 7461696c20bf748c771e65ac43644bfc1a9455ea520c145ce8d197045b129be24e7a6c1426",
		read + strings.Repeat("A", random):   "prefix 7461696c200461674c678b04f0fd87a48a33da687621e4fc85e6c172db7274e0b584351485", // of an earlier version
	} {
		for _, before := range []string{`{"role":"user","content":"Go."}`, `{"role":"system","content":"Be brief."}`, `{"role":"assistant","tool_calls":[{"id":"` + WroteID + strings.Repeat("B", random) + `"}]}`} {
			d := newDigest()
			for _, message := range []string{
				before, `{"role":"assistant","content":"Before.","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"look","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"` + id + `","content":"found"}`, `{"role":"assistant","content":"Done."}`,
			} {
				d.message(object(t, message))
			}
			keys := spelled((&Thread{}).prefixKeys(nil, d))
			if got := keys[len(keys)-1]; got != want {
				t.Errorf("%s: %s, want %s", before, got, want)
			}
			d.free()
		}
	}
}
