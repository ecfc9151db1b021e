package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// talker is a model API whose every answer costs 30 tokens. Of streams it says so where
// it is asked, unless it refuses to be, or never.
func talker(refuses, never bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Stream  bool
			Options *struct {
				Usage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		_ = json.Unmarshal(body, &request)
		const usage = `"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}`
		switch {
		case strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
			w.WriteHeader(http.StatusNotAcceptable) // nobody could count it
		case refuses && request.Options != nil:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"stream_options?","param":"stream_options"}}`)
		case request.Stream:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"id":"1","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"}}]}`+"\n\n")
			fmt.Fprint(w, `data: {"id":"1","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
			if request.Options != nil && request.Options.Usage && !never {
				fmt.Fprint(w, `data: {"id":"1","created":1,"model":"m","choices":[],`+usage+"}\n\n")
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			said := usage
			if never {
				said = `"usage":null`
			}
			fmt.Fprint(w, `{"id":"1","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],`+said+`}`)
		}
	}
}

// TestMeter: what a caller uses of a model is counted however the request comes and
// whatever the model says of it, and the client sees no more than it asked for.
func TestMeter(t *testing.T) {
	long := strings.Repeat("word ", 60)
	requests := map[string]struct{ path, body string }{
		"a conversation": {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`},
		"a stream":       {"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`},
		"passed on":      {"/v1/chat/completions", `{"model":"m","stream":true,"tool_choice":"none","messages":[{"role":"user","content":"` + long + `"}]}`},
		"another route":  {"/v1/completions", `{"model":"m","stream":true,"prompt":"` + long + `"}`},
		"another case":   {"/v1/Completions", `{"model":"m","stream":true,"prompt":"` + long + `"}`},
		"with a slash":   {"/v1/completions/", `{"model":"m","stream":true,"prompt":"` + long + `"}`},
	}
	for name, up := range map[string]struct {
		api  http.HandlerFunc
		want []int // statuses of one request after the other, of 50 tokens
	}{
		"says it":  {talker(false, false), []int{200, 200, 429}},
		"refuses":  {talker(true, false), []int{200, 429}}, // an estimate is higher
		"is quiet": {talker(false, true), []int{200, 429}},
	} {
		for kind, request := range requests {
			t.Run(name+", "+kind, func(t *testing.T) {
				g := build(t, func(f *config.File) {
					f.Models = []upstream.Model{{Match: "*", BaseURL: web(t, up.api) + "/v1"}}
					f.Limits = []limit.Limit{{Tokens: 50}}
					f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
				})
				if err := g.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := up.want
				if name == "refuses" && kind == "a conversation" {
					want = []int{200, 200, 429} // it is no stream, and says it
				}
				url := serve(t, g).url
				var got []int
				for range want {
					res, err := http.Post(url+request.path, "application/json", strings.NewReader(request.body))
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(res.Body)
					res.Body.Close()
					if got = append(got, res.StatusCode); err != nil || res.StatusCode == 200 && !strings.Contains(string(body), "hello") {
						t.Errorf("%v %s", err, body)
					}
					if strings.Contains(request.body, `"stream"`) && strings.Contains(string(body), `"usage":{`) {
						t.Errorf("the client did not ask for it: %s", body)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %d, want %d", got, want)
				}
			})
		}
	}
}
