package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/responses"
	"github.com/dragoman-mcp/dragoman/rehearsal"

	"net/http/httptest"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// stored opens a door that keeps responses, in front of the rehearsal model.
func stored(t *testing.T) *tested {
	return open(t, func(o *Options) { o.Responses = &responses.Memory{} })
}

// The Responses API over real HTTP, with the rehearsal model as an upstream that speaks
// Chat: our tools are offered and called, and what is kept can be read, listed and
// deleted by its caller alone.
func TestResponses(t *testing.T) {
	d := stored(t)
	a := d.do("POST", "/v1/responses", `{"model":"m","input":"Call weather__get with {\"city\":\"Oslo\"}"}`)
	o, err := rawjson.ParseObject([]byte(a.body))
	if err != nil || a.status != 200 || a.header.Get("X-Dragoman-Wire") != "chat" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if !strings.Contains(a.body, `"type":"mcp_call"`) || d.tools.calls() == "" {
		t.Errorf("ran %q: %s", d.tools.calls(), a.body)
	}
	id := idOf(o.Bytes())
	if got := d.do("GET", "/v1/responses/"+id, ""); got.body != a.body {
		t.Errorf("kept %s", got.body)
	}
	items := d.do("GET", "/v1/responses/"+id+"/input_items", "")
	if !strings.Contains(items.body, `"object":"list"`) || !strings.Contains(items.body, "Oslo") || !strings.Contains(items.body, `"has_more":false`) {
		t.Errorf("items %s", items.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		d.checkError(d.do(method, "/v1/responses/"+id, "", "X-Test-Caller", "mallory"), 404, "not_found")
	}
	d.checkError(d.do("POST", "/v1/responses/"+id+"/cancel", ""), 400, "invalid_request")
	if gone := d.do("DELETE", "/v1/responses/"+id, ""); !strings.Contains(gone.body, `"deleted":true`) {
		t.Errorf("%s", gone.body)
	}
	d.checkError(d.do("GET", "/v1/responses/"+id, ""), 404, "not_found")
	d.checkError(d.do("POST", "/v1/responses", `{"model":"m","input":"x","previous_response_id":"`+id+`"}`), 400, "previous_response_not_found")
	if count := d.do("POST", "/v1/responses/input_tokens", `{"model":"m","input":"Hello there"}`); !strings.Contains(count.body, `{"object":"response.input_tokens","input_tokens":`) {
		t.Errorf("%s", count.body)
	}
}

// A model whose API speaks Responses is asked by that, with tools of ours, and where there
// are none to offer the request goes there as it is. A header says which way it went.
func TestResponsesGoTwoWays(t *testing.T) {
	var paths []string
	chat := &rehearsal.Model{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if paths = append(paths, r.URL.Path); strings.HasSuffix(r.URL.Path, "/responses") {
			_, _ = w.Write([]byte(`{"id":"resp_theirs","status":"completed","output":[]}`))
			return
		}
		chat.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for _, tt := range []struct {
		wires []string
		body  string
		wire  string
	}{
		{[]string{"responses"}, `{"model":"m","input":"x"}`, "responses"},
		{[]string{"chat", "responses"}, `{"model":"m","input":"x"}`, "responses"},
		{[]string{"responses"}, `{"model":"m","input":"x","tool_choice":"none"}`, "relayed"},
		{[]string{"responses"}, `{"model":"m","input":"x","prompt":{"id":"pmpt_1"}}`, "relayed"},
		{[]string{"responses"}, `{"input":"x","prompt":{"id":"pmpt_1"}}`, "relayed"},
		{[]string{"responses"}, `{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"x","server_url":"https://example.com"}]}`, "responses"},
		{[]string{"chat", "responses"}, `{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"weather"}]}`, "responses"},
		{[]string{"chat", "responses"}, `{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"weather","server_url":"dragoman:weather"}]}`, "responses"},
		{[]string{"chat"}, `{"model":"m","input":"x"}`, "chat"},
		{nil, `{"model":"m","input":"x"}`, "chat"},
	} {
		paths = nil
		d := open(t, func(o *Options) { o.Responses = &responses.Memory{} }, upstream.Model{Match: "*", BaseURL: server.URL + "/v1", Wires: tt.wires})
		a := d.do("POST", "/v1/responses", tt.body)
		if a.status != 200 || a.header.Get("X-Dragoman-Wire") != tt.wire || len(paths) == 0 || strings.HasSuffix(paths[0], "/responses") != (tt.wire != "chat") {
			t.Errorf("%v %s: %d %q, asked %v: %s", tt.wires, tt.body, a.status, a.header.Get("X-Dragoman-Wire"), paths, a.body)
		}
	}
}
