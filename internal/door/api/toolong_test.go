package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// Clients make their history shorter where a model reads less, and know that by what their
// API calls it: Codex by a code, Claude Code by words. Servers of local models say it in
// words of their own, at once, within a stream, or only when a tool has answered.
func TestTooLongRequests(t *testing.T) {
	for name, failure := range map[string]string{
		"vLLM":      `{"message":"This model's maximum context length is 8 tokens. However, your request has 9 input tokens.","type":"BadRequestError","param":null,"code":400}`,
		"llama.cpp": `{"code":400,"message":"request (9 tokens) exceeds the available context size (8 tokens), try increasing it","type":"exceed_context_size_error","n_ctx":8}`,
		"LM Studio": `"Trying to keep the first 9 tokens when context the overflows. However, the model is loaded with context length of only 8 tokens"`,
		"OpenAI":    `{"message":"Your input is too much.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`,
	} {
		within, called := false, false
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if called && !strings.Contains(string(body), `"role":"tool"`) {
				_, _ = fmt.Fprint(w, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"weather__get\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
				return
			}
			if !strings.Contains(string(body), `"tools":`) { // it is short enough then, but of no use
				_, _ = fmt.Fprint(w, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I have no tools.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
				return
			}
			if within {
				_, _ = fmt.Fprint(w, "data: {\"error\":"+failure+"}\n\n")
				return
			}
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"error":`+failure+`}`)
		}))
		t.Cleanup(server.Close)
		d := open(t, nil, upstream.Model{Match: "*", BaseURL: server.URL + "/v1"})
		for _, within = range []bool{false, true} {
			for _, called = range []bool{false, true} {
				when := fmt.Sprintf("%s, within a stream %v, behind a call %v", name, within, called)
				a := d.do("POST", "/v1/responses", `{"model":"m","stream":true,"input":"Hi"}`)
				if begun := within || called; (a.status == 200) != begun || strings.Contains(a.body, "event: response.failed") != begun || !strings.Contains(a.body, `"code":"context_length_exceeded"`) {
					t.Errorf("%s: %d %s", when, a.status, a.body)
				}
				a = d.do("POST", "/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`)
				if !called && a.status != 400 || !strings.Contains(a.body, `"error":{"type":"invalid_request_error","message":"prompt is too long: `) {
					t.Errorf("%s: %d %s", when, a.status, a.body)
				}
			}
		}
	}
}

// What is too long to be counted or made smaller is called so by the same code.
func TestTooLongToCompact(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"error":{"message":"This model's maximum context length is 8 tokens. However, your request has 9 input tokens.","type":"BadRequestError","param":null,"code":400}}`)
	}))
	t.Cleanup(server.Close)
	for _, wire := range []string{"chat", "responses"} {
		d := open(t, nil, upstream.Model{Match: "*", BaseURL: server.URL + "/v1", Wires: []string{wire}})
		for _, path := range []string{"compact", "input_tokens"} {
			a := d.do("POST", "/v1/responses/"+path, `{"model":"m","input":"Hi"}`)
			if path == "input_tokens" && wire == "chat" {
				continue // an estimate
			}
			if a.status != 400 || !strings.Contains(a.body, `"code":"context_length_exceeded"`) {
				t.Errorf("%s, %s: %d %s", wire, path, a.status, a.body)
			}
		}
	}
}
