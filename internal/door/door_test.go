package door

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
)

// A Mux finds the route that http.ServeMux would find.
func TestMuxFindsWhatServeMuxFinds(t *testing.T) {
	patterns := []string{
		"POST /v1/chat/completions", "GET /v1/responses", "POST /v1/responses", "GET /v1/responses/{id}", "DELETE /v1/responses/{id}",
		"/v1/", "/mcp", "/mcp/", "GET /mcp/set/{name}", "GET /sse", "/any", "GET /any", "GET /folder/{$}", "POST /v1/chat/{rest...}",
	}
	found, want := "", ""
	mux := NewMux(func(w http.ResponseWriter, r *http.Request, route *Route) { found = route.Pattern })
	other := http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(Route{Pattern: pattern, Serve: func(http.ResponseWriter, *http.Request, caller.Caller) {}})
		other.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { want = pattern })
	}
	seen := map[string]bool{}
	for _, path := range []string{
		"/v1/chat/completions", "/v1/chat/completions/", "/v1/chat/other", "/v1/responses", "/v1/responses/r1", "/v1/models", "/mcp", "/mcp/", "/mcp/a",
		"/mcp/set/x", "/sse", "/any", "/any/", "/folder", "/folder/", "/v1/chat/completion%73", "/v1/chat/completions?x=1", "/nowhere",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			found, want = "", ""
			got, expected := httptest.NewRecorder(), httptest.NewRecorder()
			mux.ServeHTTP(got, httptest.NewRequest(method, path, nil))
			other.ServeHTTP(expected, httptest.NewRequest(method, path, nil))
			if found != want || got.Code != expected.Code {
				t.Errorf("%s %s: %q and %d, want %q and %d", method, path, found, got.Code, want, expected.Code)
			}
			seen[found] = true
		}
	}
	for _, pattern := range patterns {
		if !seen[pattern] {
			t.Errorf("nothing asked for %q", pattern)
		}
	}
}
