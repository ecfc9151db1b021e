package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestRequestOfAnUpstreamThatIsOneOfUs: an answer names the request that was made here, which
// this log has, and not the one that was made of a gateway behind this one.
func TestRequestOfAnUpstreamThatIsOneOfUs(t *testing.T) {
	const theirs = "req_ofthegatewaybehind00"
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(RequestHeader, theirs)
		w.Header().Set("Content-Type", "application/json")
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "broken") {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte(`{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(behind.Close)
	g := build(t, func(f *config.File) {
		f.Models = []upstream.Model{{Match: "*", BaseURL: behind.URL + "/v1", APIKey: secret.New("own")}}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	base := serve(t, g).url
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for name, ask := range map[string]struct{ path, body string }{
		"with tools of ours": {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
		"relayed":            {"/v1/chat/completions", `{"model":"m","tool_choice":"none","messages":[{"role":"user","content":"hi"}]}`},
		"another route":      {"/v1/embeddings", `{"model":"m","input":"hi"}`},
		"an error":           {"/v1/chat/completions", `{"model":"broken","messages":[{"role":"user","content":"hi"}]}`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", base+ask.path, strings.NewReader(ask.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		_, _, header := exchange(t, client, req)
		if ids := header[http.CanonicalHeaderKey(RequestHeader)]; len(ids) != 1 || slices.Contains(ids, theirs) {
			t.Errorf("%s: the answer names the request %q", name, ids)
		}
	}
}
