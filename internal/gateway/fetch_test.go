package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// TestNothingIsFetchedForClients: whatever address a request names, of an MCP server, a
// picture, a file or a document, nothing is asked there by us. An address of a server is
// refused in words; one of a picture is the upstream's to fetch, and reaches it as it is.
func TestNothingIsFetchedForClients(t *testing.T) {
	var fetched atomic.Int32
	inner := web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fetched.Add(1); w.WriteHeader(http.StatusOK) }))
	seen := ""
	model := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`))
	}))
	s := gatedBy(t, func(f *config.File) {
		f.Policy, f.Models = nil, []upstream.Model{{Match: "*", BaseURL: model, Wires: []string{"chat"}}}
	})
	const meta = "http://169.254.169.254/latest/meta-data"
	responses := func(members string) string { return `{"model":"m",` + members + `}` }
	messages := func(content, more string) string {
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":` + content + `}]` + more + `}`
	}
	for name, tc := range map[string]struct {
		path, body, param, passed string
		status                    int
	}{
		"server_url":            {"/v1/responses", responses(`"input":"x","tools":[{"type":"mcp","server_label":"a","server_url":"` + inner + `"}]`), `"param":"tools`, "", 400},
		"server_url of a cloud": {"/v1/responses", responses(`"input":"x","tools":[{"type":"mcp","server_label":"a","server_url":"` + meta + `"}]`), `"param":"tools`, "", 400},
		"server_url of ours":    {"/v1/responses", responses(`"input":"x","tools":[{"type":"mcp","server_label":"demo","server_url":"` + inner + `"}]`), `"param":"tools`, "", 400},
		"credentials":           {"/v1/responses", responses(`"input":"x","tools":[{"type":"mcp","server_label":"demo","authorization":"t"}]`), `"param":"tools[0].authorization"`, "", 400},
		"headers":               {"/v1/responses", responses(`"input":"x","tools":[{"type":"mcp","server_label":"demo","headers":{"X-A":"b"}}]`), `"param":"tools[0].headers"`, "", 400},
		"connector_id":          {"/v1/responses", responses(`"input":"x","tools":[{"type":"mcp","server_label":"demo","connector_id":"connector_mail"}]`), `"param":"tools[0].connector_id"`, "", 400},
		"server_url in Chat":    {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"mcp","server_label":"a","server_url":"` + inner + `"}]}`, `"param":"tools`, "", 400},
		"url in Messages":       {"/v1/messages", messages(`"x"`, `,"mcp_servers":[{"type":"url","name":"a","url":"`+inner+`"}]`), "mcp_servers.0.url", "", 400},
		"input_image":           {"/v1/responses", responses(`"input":[{"role":"user","content":[{"type":"input_image","image_url":"` + inner + `/a.png"}]}]`), "", inner + "/a.png", 200},
		"input_file":            {"/v1/responses", responses(`"input":[{"role":"user","content":[{"type":"input_file","file_url":"` + inner + `/a.pdf"}]}]`), "input[0]", "", 400},
		"picture in Messages":   {"/v1/messages", messages(`[{"type":"image","source":{"type":"url","url":"`+inner+`/a.png"}}]`, ""), "", inner + "/a.png", 200},
		"document in Messages":  {"/v1/messages", messages(`[{"type":"document","source":{"type":"url","url":"`+inner+`/a.pdf"}}]`, ""), "messages.0.content.0.source", "", 400},
		"picture in Chat":       {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + inner + `/a.png"}}]}]}`, "", inner + "/a.png", 200},
	} {
		seen = ""
		status, body := s.do(s.ann, "POST", tc.path, tc.body)
		if status != tc.status || !strings.Contains(body, tc.param) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, body, tc.status, tc.param)
		}
		if !strings.Contains(seen, tc.passed) || tc.status != 200 && seen != "" {
			t.Errorf("%s: the upstream was sent %s", name, seen)
		}
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d requests were made to an address that a client named", n)
	}
}
