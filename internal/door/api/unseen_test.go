package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// A model that sees no pictures goes on without those that tools returned, in the turn and in
// all that follow: its client, which never got them, could not take them out. What the client
// sent itself stays its own to take out.
func TestPicturesThatAModelDoesNotTake(t *testing.T) {
	for _, tt := range []struct {
		name, refusal string
		status        int
		goes          bool
	}{
		{"OpenAI", `{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error"}}`, 400, true},
		{"no word of a picture", `{"error":{"message":"messages.3.content must be a string","type":"invalid_request_error"}}`, 400, true},
		{"OpenRouter", `{"error":{"message":"No endpoints found that support image input","code":404}}`, 404, true},
		{"llama.cpp", `{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}`, 500, true},
		{"a key that is not good", `{"error":{"message":"No.","type":"invalid_request_error"}}`, 401, false},
	} {
		up := &recorder{respond: func(w http.ResponseWriter, _ *http.Request, body []byte) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case bytes.Contains(body, []byte(`image_url`)) && !bytes.Contains(body, []byte(`"model":"sees"`)):
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.refusal)
			case bytes.Contains(body, []byte(`"role":"tool"`)):
				_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`)
			default:
				_, _ = io.WriteString(w, `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"weather__get","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
			}
		}}
		chat := up.model(t, "*")
		chat.Wires = nil
		for _, first := range []string{"blind", "sees"} {
			d := open(t, nil, chat)
			d.tools.run = func(context.Context, dragoman.Call) (dragoman.Result, error) {
				return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"image","data":"` + pixel + `","mimeType":"image/png"}]}`)}, nil
			}
			ask := func(model, more string) answer {
				return d.do("POST", "/v1/messages", `{"model":"`+model+`","max_tokens":100,"metadata":{"user_id":"ada"},"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Go"}`+more+`]}`, "X-Claude-Code-Session-Id", "s")
			}
			const on = `,{"role":"assistant","content":"Hi."},{"role":"user","content":`
			a := ask(first, "")
			if went := a.status == 200; went != (tt.goes || first == "sees") {
				t.Fatalf("%s, %s: %d %s", tt.name, first, a.status, a.body)
			}
			if !tt.goes {
				continue
			}
			if a = ask("blind", on+`"And?"}`); a.status != 200 {
				t.Fatalf("%s, %s: the next turn: %d %s", tt.name, first, a.status, a.body)
			}
			if told := up.last(t).body; !strings.Contains(told, leftOut) || !strings.Contains(told, `"tool_call_id":"a"`) {
				t.Errorf("%s, %s: the model is told %s", tt.name, first, told)
			}
			own := on + `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`
			if a = ask("blind", own); a.status != tt.status || !strings.Contains(up.last(t).body, "AAAA") {
				t.Errorf("%s, %s: a picture of the client's: %d %s", tt.name, first, a.status, a.body)
			}
			if got := d.tools.calls(); got != "weather__get {}" {
				t.Errorf("%s, %s: ran %s", tt.name, first, got)
			}
		}
	}
}

const leftOut = "(A tool returned pictures here. They were left out, since the model's API refused a request with them.)"
