package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// Whatever an upstream streams, the client gets one completion: chunks that are
// JSON with one id, one role, and one finish reason before [DONE], or an error
// and neither.
func FuzzStream(f *testing.F) {
	f.Add([]byte(getStream), true)
	f.Add([]byte(fineStream), true)
	f.Add([]byte(`data: {"choices":[{"delta":{"content":"a","tool_calls":[{"function":{"name":"x","arguments":"{"}}]},"finish_reason":"length"}],"usage":{"a":1}}`+"\n\n"), false)
	f.Add([]byte("data: {\"error\":{\"message\":\"x\"}}\r\n\r\n"), true)
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"text"}],"tool_calls":[{},{"id":"a"}]}}]}`), true)
	f.Add([]byte(`data: {"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":{"content":[{}]}}]}`+"\n\ndata:[DONE]"), false)
	f.Fuzz(func(t *testing.T, data []byte, wantMore bool) {
		w := &client{}
		body := strings.Replace(streamBody, `"m"`, `"m","tools":[{"type":"function","function":{"name":"x"}}],"stream_options":{"include_usage":true}`, 1)
		rounds := 0
		chat := newChat(t, w, body, Options{Memory: &memory.Memory{}, Model: asking(func(context.Context, [][]byte) (*http.Response, error) {
			if rounds++; rounds > 1 {
				return streamed(strings.NewReader(fineStream)), nil
			}
			r := io.Reader(bytes.NewReader(data))
			if wantMore {
				r = iotest.OneByteReader(r)
			}
			return streamed(r), nil
		})})
		_ = (&dragoman.Loop{Tools: calling(func(context.Context, dragoman.Call) (dragoman.Result, error) { return done, nil })}).Run(t.Context(), chat)
		checkCompletion(t, w)
	})
}

func checkCompletion(t *testing.T, w *client) {
	t.Helper()
	got := w.String()
	if w.status != http.StatusOK {
		if !strings.HasPrefix(got, `{"error":`) {
			t.Errorf("status %d: %s", w.status, got)
		}
		return
	}
	var id string
	roles, finishes, ends, failures := 0, 0, 0, 0
	for event := range strings.SplitSeq(strings.TrimSuffix(got, "\n\n"), "\n\n") {
		payload, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.Contains(payload, "\n") {
			t.Fatalf("event %q", event)
		}
		if payload == "[DONE]" {
			ends++
			continue
		}
		chunk, err := rawjson.ParseObject([]byte(payload))
		if err != nil || !json.Valid([]byte(payload)) {
			t.Fatalf("chunk %q: %v", payload, err)
		}
		if chunk.Get("error") != nil {
			failures++
			continue
		}
		choices, _ := rawjson.Elements(chunk.Get("choices"))
		for _, raw := range choices {
			choice, err := rawjson.ParseObject(raw)
			if err != nil {
				t.Fatalf("choice %q: %v", raw, err)
			}
			if delta, err := rawjson.ParseObject(choice.Get("delta")); err == nil && delta.Get("role") != nil {
				roles++
			}
			if !rawjson.IsNull(choice.Get("finish_reason")) {
				finishes++
			}
			if id == "" {
				id = string(chunk.Get("id"))
			}
			if got := string(chunk.Get("id")); got != id || id == "" {
				t.Errorf("id %s after %s", got, id)
			}
		}
	}
	if failures == 1 && finishes == 0 && ends == 0 && roles <= 1 {
		return
	}
	if failures != 0 || roles != 1 || finishes != 1 || ends != 1 {
		t.Errorf("%d errors, %d roles, %d finish reasons, %d ends:\n%s", failures, roles, finishes, ends, got)
	}
}

// Reading a request never panics; what is accepted goes upstream as JSON, with
// its unknown members in it.
func FuzzParseChat(f *testing.F) {
	f.Add([]byte(streamBody))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","function_call":{"name":"f"}},{"role":"function"}],"functions":[{"name":"f"}],"function_call":{"name":"f"},"x":1e400}`))
	f.Add([]byte(`{"model":"m","messages":[{}],"tools":[{"type":"mcp","server_label":"a","allowed_tools":{"tool_names":["x"]}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{}},"dragoman":{"messages":true}}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"call_dragoman0x"},1,null]},{"role":"tool","tool_call_id":"call_dragoman0x"}],"n":1,"x":[1.0,"\ud83d\ude00"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			if e, ok := err.(*model.Error); !ok || e.Status != http.StatusBadRequest {
				t.Errorf("error %v", err)
			}
			return
		}
		_ = r.Withhold()
		if err := rawjson.Check(r.Plain()); err != nil {
			t.Errorf("plain: %v: %s", err, r.Plain())
		}
		unknown := json.RawMessage(nil)
		if o, err := rawjson.ParseObject(data); err == nil {
			unknown = o.Get("x")
		}
		chat := newChat(t, &client{}, string(data), Options{Memory: &memory.Memory{}, Model: asking(func(_ context.Context, parts [][]byte) (*http.Response, error) {
			body := bytes.Join(parts, nil)
			if err := rawjson.Check(body); err != nil {
				t.Errorf("sent: %v: %s", err, body)
			}
			o, err := rawjson.ParseObject(body)
			if err != nil || !bytes.Equal(o.Get("x"), unknown) || o.Get("dragoman") != nil {
				t.Errorf("sent %s", body)
			}
			return streamed(strings.NewReader(fineStream)), nil
		})})
		_ = (&dragoman.Loop{Tools: calling(nil)}).Run(t.Context(), chat)
	})
}
