package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// TestCountingIsFree: who asks what a request would cost uses no tokens of a model.
func TestCountingIsFree(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/messages/count_tokens":  `{"model":"messages","messages":[{"role":"user","content":"%s"}]}`,
		"/v1/responses/input_tokens": `{"model":"responses","input":"%s"}`,
	} {
		api := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"object":"response.input_tokens","input_tokens":2000}`)
		})) + "/v1"
		g := build(t, func(f *config.File) {
			f.Models = []upstream.Model{{Match: "messages", BaseURL: api, Wires: []string{upstream.Messages}}, {Match: "responses", BaseURL: api, Wires: []string{upstream.Responses}}}
			f.Limits = []limit.Limit{{Tokens: 1000}}
		})
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		url := serve(t, g).url
		for n := range 2 {
			res, err := http.Post(url+path, "application/json", strings.NewReader(fmt.Sprintf(body, strings.Repeat("word ", 1000))))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || !strings.Contains(string(answer), `"input_tokens":2000`) {
				t.Errorf("%s, %d: %d %s %v", path, n, res.StatusCode, answer, err)
			}
		}
	}
}
