package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestWithIDs: an item without an id gets one, and a type, and nothing else of it changes;
// others are as they came.
func TestWithIDs(t *testing.T) {
	for _, tc := range []struct{ item, want string }{
		{`{"role":"user","content":"<é> \"id\""}`, `{"role":"user","content":"<é> \"id\"","type":"message","id":"msg_1"}`},
		{`{"type":"function_call","name":"a","arguments":"{}"}`, `{"type":"function_call","name":"a","arguments":"{}","id":"fc_1"}`},
		{` { "type" : "reasoning" , "summary":[] } `, ` { "type" : "reasoning" , "summary":[] ,"id":"rs_1"}`},
		{`{"type":"other"}`, `{"type":"other","id":"item_1"}`},
		{`{"type":"shell_call","call_id":"c"}`, `{"type":"shell_call","call_id":"c","id":"sh_1"}`},
		{`{"type":"computer_call","call_id":"c"}`, `{"type":"computer_call","call_id":"c","id":"cu_1"}`},
		{`{"type":"shell_call_output","call_id":"c"}`, `{"type":"shell_call_output","call_id":"c","id":"item_1"}`},
		{`{}`, `{"type":"","id":"item_1"}`},
		{`{ }`, `{ "type":"","id":"item_1"}`},
		{`{"type":null,"role":"user"}`, `{"type":null,"role":"user","id":"msg_1"}`},
		{`{"id":"msg_mine","role":"user"}`, `{"id":"msg_mine","role":"user"}`},
		{`{"id":"","role":"user"}`, `{"role":"user","type":"message","id":"msg_1"}`},
		{`{"role":"user","id":null}`, `{"role":"user","type":"message","id":"msg_1"}`},
		{`{"id":7}`, `{"type":"","id":"item_1"}`},
		{`{"\u0069d":"odd"}`, `{"\u0069d":"odd"}`},
		{`{"content":{"id":"x"},"role":"user"}`, `{"content":{"id":"x"},"role":"user","type":"message","id":"msg_1"}`},
		{`"text"`, `"text"`},
		{`7`, `7`},
	} {
		n := 0
		got := withIDs([]json.RawMessage{json.RawMessage(tc.item)}, func(prefix string) string { n++; return fmt.Sprint(prefix, n) })
		if string(got[0]) != tc.want {
			t.Errorf("%s: %s, want %s", tc.item, got[0], tc.want)
		}
		if err := rawjson.Check(got[0]); err != nil {
			t.Errorf("%s: %v", got[0], err)
		}
	}
	// One that has the id of another one before it gets another.
	n := 0
	twice := withIDs([]json.RawMessage{json.RawMessage(`{"id":"x","role":"a"}`), json.RawMessage(`{"id":"x","role":"b"}`), json.RawMessage(`{"id":"y","role":"c"}`)},
		func(prefix string) string { n++; return fmt.Sprint(prefix, n) })
	if got := string(array(twice...)); got != `[{"id":"x","role":"a"},{"role":"b","type":"message","id":"msg_1"},{"id":"y","role":"c"}]` {
		t.Errorf("%s", got)
	}
	// What is behind one is not what the next is written over.
	many := withIDs([]json.RawMessage{json.RawMessage(`{"role":"a"}`), json.RawMessage(`{"role":"b"}`)}, func(string) string {
		return "a name that is longer than any that was reckoned with, so that there is no room for it in what was made"
	})
	_ = append(many[0], "overwritten"...)
	for i, role := range []string{"a", "b"} {
		if o, err := rawjson.ParseObject(many[i]); err != nil || stringOf(o, "role") != role {
			t.Errorf("%s, %v", many[i], err)
		}
	}
}

// An id that was made here does not go to an API that speaks Responses, but where a call needs
// one: then it begins as that API's own do.
func TestWithoutOurs(t *testing.T) {
	for kind, goes := range map[string]bool{
		"message": false, "function_call": false, "shell_call": false, "apply_patch_call": false, "shell_call_output": false,
		"computer_call": true, "local_shell_call": true,
	} {
		given := withIDs([]json.RawMessage{object(text("type", kind), text("call_id", "c"))}, newID)[0]
		o, err := rawjson.ParseObject(given)
		if err != nil {
			t.Fatal(err)
		}
		id := stringOf(o, "id")
		if sent := idOf(withoutOurs(o, given)); (sent != "") != goes || goes && strings.HasPrefix(id, "item_") {
			t.Errorf("%s with the id %q goes with %q", kind, id, sent)
		}
	}
}
