package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/result"
)

func TestToolsCall(t *testing.T) {
	d := open(t, nil)
	for _, tc := range []struct{ name, body, content string }{
		{"arguments as text", `{"name":"weather__get","arguments":"{\"city\":\"Oslo\"}","tool_call_id":"c1"}`, `"data":{"degrees":22}`},
		{"as an object", `{"name":"weather__get","arguments":{"city":"Oslo"},"tool_call_id":"c1"}`, `"data":{"degrees":22}`},
		{"repaired", `{"name":"weather__get","arguments":"{'city':'Oslo',}","tool_call_id":"c1"}`, `"data":{"degrees":22}`},
		{"none", `{"name":"weather__get","tool_call_id":"c1","model":"x"}`, `"data":{"degrees":22}`},
		{"without the prefix", `{"name":"get","arguments":"{}","tool_call_id":"c1","dialect":"openai"}`, `"data":{"degrees":22}`},
		{"unknown tool", `{"name":"nope","arguments":"{}","tool_call_id":"c1"}`, `"error":"unknown_tool"`},
		{"names the unknown tool", `{"name":"nope","arguments":"{}","tool_call_id":"c1"}`, `"tool":"nope"`},
		{"invalid arguments", `{"name":"get","arguments":{"city":{}},"tool_call_id":"c1"}`, `"error":"invalid_arguments"`},
		{"cut off", `{"name":"get","arguments":"{\"city\":","tool_call_id":"c1"}`, `"error":"truncated"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := d.do(http.MethodPost, "/v1/tools/call", tc.body)
			var got struct {
				Messages []struct {
					Role, Content string
					ID            string `json:"tool_call_id"`
				}
			}
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 || len(got.Messages) != 1 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if m := got.Messages[0]; m.Role != "tool" || m.ID != "c1" || !strings.Contains(m.Content, tc.content) {
				t.Errorf("got %+v, want it to hold %s", m, tc.content)
			}
		})
	}
	for _, tc := range []struct{ body, code string }{
		{`{"name":"get"`, "invalid_json"},
		{`[]`, "invalid_request"},
		{`{"arguments":"{}","tool_call_id":"c1"}`, "invalid_request"},
		{`{"name":"get","arguments":"{}"}`, "invalid_request"},
		{`{"name":"get","arguments":7,"tool_call_id":"c1"}`, "invalid_request"},
		{`{"name":"get","tool_call_id":"c1","dialect":"nope"}`, "invalid_request"},
	} {
		d.checkError(d.do(http.MethodPost, "/v1/tools/call", tc.body), 400, tc.code)
	}
}

// A picture takes two messages, where the model sees pictures at all.
func TestToolsCallWithPicture(t *testing.T) {
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	d := open(t, nil)
	d.tools.run = func(context.Context, dragoman.Call) (dragoman.Result, error) {
		return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"image","data":"` + pixel + `","mimeType":"image/png"}]}`)}, nil
	}
	a := d.do(http.MethodPost, "/v1/tools/call", `{"name":"weather__get","arguments":"{}","tool_call_id":"c1","dialect":"openai"}`)
	if !strings.Contains(a.body, `{"role":"user","content":[{"type":"text"`) || !strings.Contains(a.body, "data:image/png;base64,"+pixel) {
		t.Errorf("got %s", a.body)
	}
}

func TestToolsList(t *testing.T) {
	d := open(t, nil)
	a := d.do(http.MethodGet, "/v1/tools?dialect=openai", "")
	var got dialect.Document
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if len(got.Tools) != 3 || !strings.Contains(string(got.Tools[1]), `"name":"weather__get"`) {
		t.Errorf("got %s", a.body)
	}
	d.checkError(d.do(http.MethodGet, "/v1/tools?dialect=nope", ""), 400, "invalid_request")
}

// The word on a tool wins over that on a model, which wins over the general one.
func TestForms(t *testing.T) {
	d := openFor(t, session.Results{
		Form:  result.Form{Profile: result.Structured, Limit: 2000},
		Tools: []session.ToolResults{{Match: "weather__w*", Form: result.Form{Profile: result.Raw}}},
	}, nil)
	for tool, want := range map[string]string{
		"weather__get":  `{"degrees":22}`,
		"weather__warn": `{"content":[],"structuredContent":{"degrees":22},"isError":false}`,
	} {
		a := d.do(http.MethodPost, "/v1/tools/call", `{"name":"`+tool+`","arguments":"{}","tool_call_id":"c1"}`)
		var got struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Messages) != 1 || got.Messages[0].Content != want {
			t.Errorf("%s: got %s, want %s", tool, a.body, want)
		}
	}
}
