package gateway

import (
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

// askedTwice has a gateway with a store asked the same twice, and returns the statuses of the
// answers. What the first one took is counted then.
func askedTwice(t *testing.T, change func(*config.File), method, path, kind, body string) (got []int) {
	t.Helper()
	g := build(t, func(f *config.File) {
		change(f)
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := serve(t, g).url
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body) // behind which it is counted
		res.Body.Close()
		got = append(got, res.StatusCode)
	}
	return got
}

// TestUnnamedModelCounts: some APIs answer a request that names no model with the one that
// they have. It is a use of it, however the route is spelled.
func TestUnnamedModelCounts(t *testing.T) {
	for _, request := range []struct{ path, body string }{
		{"/v1/completions", `{"prompt":"hello"}`},
		{"/v1/completions", `{"prompt":"hello","model":null}`},
		{"/v1/completions", `{"prompt":"hello","model":""}`},
		{"/v1/completions", `{"prompt":"hello","model":7}`},
		{"/v1/Chat/Completions/", `{"messages":[]}`},
		{"/v1/engines/m/completions", `{"prompt":"hello"}`},
		{"/v1/embeddings", `{"input":"hello"}`},
		{"/v1/responses", `{"input":"hello"}`},
		{"/v1/messages", `{"messages":[]}`},
	} {
		t.Run(request.path, func(t *testing.T) {
			api := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"object":"list","usage":{"prompt_tokens":1000,"total_tokens":1000}}`)
			})) + "/v1"
			got := askedTwice(t, func(f *config.File) {
				f.Models = []upstream.Model{{Match: "m*", BaseURL: api, Wires: []string{upstream.Chat, upstream.Responses, upstream.Messages}}, {BaseURL: api}}
				f.Limits = []limit.Limit{{Of: []string{"model:m*"}, Tokens: 50}, {Of: []string{"model:*"}, Tokens: 500}}
			}, http.MethodPost, request.path, "application/json", request.body)
			if !slices.Equal(got, []int{200, 429}) {
				t.Errorf("%s: got %d, want one answer and a refusal", request.body, got)
			}
		})
	}
}

// TestMethodsCount: some APIs look at the path of a request alone, and answer whatever its
// method is. What has no body only looks something up.
func TestMethodsCount(t *testing.T) {
	for _, request := range []struct {
		method, body string
		want         []int
	}{
		{"PUT", `{"model":"m","prompt":"hello"}`, []int{200, 429}},
		{"PATCH", `{"prompt":"hello"}`, []int{200, 429}},
		{"GET", `{"model":"m","prompt":"hello"}`, []int{200, 429}},
		{"GET", "", []int{200, 200}},
		{"DELETE", "", []int{200, 200}},
	} {
		t.Run(request.method, func(t *testing.T) {
			api := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"object":"list","usage":{"prompt_tokens":1000,"total_tokens":1000}}`)
			})) + "/v1"
			got := askedTwice(t, func(f *config.File) {
				f.Models = []upstream.Model{{BaseURL: api}}
				f.Limits = []limit.Limit{{Tokens: 50}}
			}, request.method, "/v1/completions", "application/json", request.body)
			if !slices.Equal(got, request.want) {
				t.Errorf("%s: got %d, want %d", request.body, got, request.want)
			}
		})
	}
}

// TestTextThatBreaksOffCounts: whatever the API, text that came is counted where the answer
// ends before it says what it cost.
func TestTextThatBreaksOffCounts(t *testing.T) {
	const form = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--x--\r\n"
	for _, request := range []struct{ path, kind, body, first string }{
		{"/v1/completions", "application/json", `{"model":"m","stream":true,"prompt":"hi"}`, `{"choices":[{"text":"a"}]}`},
		{"/v1/responses", "application/json", `{"model":"m","stream":true,"input":"hi"}`, `{"type":"response.created","response":{"id":"r","usage":null}}`},
		{"/v1/messages", "application/json", `{"model":"m","stream":true,"messages":[]}`, `{"type":"message_start","message":{"id":"a","usage":{"input_tokens":3,"output_tokens":1}}}`},
		{"/v1/audio/transcriptions", "multipart/form-data; boundary=x", form, `{"type":"transcript.text.delta","delta":"a"}`},
	} {
		t.Run(request.path, func(t *testing.T) {
			api := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", request.first)
				for range 200 {
					fmt.Fprint(w, "data: {\"type\":\"delta\",\"delta\":{\"text\":\"a few words\"}}\n\n")
				}
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})) + "/v1"
			got := askedTwice(t, func(f *config.File) {
				f.Models = []upstream.Model{{BaseURL: api, Wires: []string{upstream.Chat, upstream.Responses, upstream.Messages}}}
				f.Limits = []limit.Limit{{Tokens: 100}}
			}, http.MethodPost, request.path, request.kind, request.body)
			if !slices.Equal(got, []int{200, 429}) {
				t.Errorf("got %d, want one answer and a refusal", got)
			}
		})
	}
}
