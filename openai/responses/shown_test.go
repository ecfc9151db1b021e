package responses

import (
	"encoding/json"
	"testing"
)

// TestShown: what a request may leave out, an item that clients get has; everything else of
// it is as it came.
func TestShown(t *testing.T) {
	for _, tc := range []struct{ item, want string }{
		{`{"role":"user","content":"a","id":"x"}`, `{"role":"user","content":[{"type":"input_text","text":"a"}],"id":"x","type":"message","status":"completed"}`},
		{`{"type":"message","role":"developer","content":"a"}`, `{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"}],"status":"completed"}`},
		{`{"type":"message","role":"assistant","content":"a","status":"incomplete"}`,
			`{"type":"message","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"a"}],"status":"incomplete"}`},
		{`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}","status":"completed"}`},
		{`{"type":"function_call_output","call_id":"c","output":"o","status":null}`, `{"type":"function_call_output","call_id":"c","output":"o","status":"completed"}`},
		{`{ "type":"message","role":"user","content":[],"status":"completed" }`, `{ "type":"message","role":"user","content":[],"status":"completed" }`},
		{`{"type":"mcp_approval_response","approve":true}`, `{"type":"mcp_approval_response","approve":true}`},
		{`{"type":"reasoning","summary":[]}`, `{"type":"reasoning","summary":[]}`},
		{`7`, `7`},
	} {
		if got := string(Shown(json.RawMessage(tc.item))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.item, got, tc.want)
		}
	}
}
