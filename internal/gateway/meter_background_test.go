package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/limit"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// TestBackgroundIsCounted: of a response in the background tokens are counted as of any other,
// also where no server has tools for it, and the model's API could make it by itself.
func TestBackgroundIsCounted(t *testing.T) {
	api := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		response := `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[],"usage":{"input_tokens":10,"output_tokens":90,"total_tokens":100}}`
		switch {
		case r.Method == http.MethodGet: // where clients find what the API makes by itself
			fmt.Fprint(w, response)
		case strings.Contains(string(body), `"background":true`):
			fmt.Fprint(w, `{"id":"resp_1","object":"response","status":"queued","model":"m","output":[],"usage":null}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"type":"response.completed","sequence_number":0,"response":`+response+"}\n\n")
		}
	})) + "/v1"
	g := build(t, func(f *config.File) {
		f.MCPServers = map[string]servers.Config{}
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db") // in which nothing of the day is counted yet
		f.Models = []upstream.Model{{Match: "*", BaseURL: api, Wires: []string{upstream.Responses}}}
		f.Limits = []limit.Limit{{Of: []string{"model:*"}, Tokens: 50}}
	})
	url := serve(t, g).url
	ask := func(path string) (status int, id, state string) {
		t.Helper()
		res, err := http.Post(url+path, "application/json", strings.NewReader(`{"model":"m","background":true,"input":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		return read(t, res)
	}
	for _, path := range []string{"/v1/responses/", "/v1/Responses", "/V1/responses"} { // which many APIs take for the same
		if status, _, _ := ask(path); status == 200 {
			t.Errorf("at %s it is passed on, and not counted", path)
		}
	}
	status, id, _ := ask("/v1/responses")
	if status != 200 {
		t.Fatal(status)
	}
	eventually(t, "the response is made", func() bool {
		res, err := http.Get(url + "/v1/responses/" + id)
		if err != nil {
			t.Fatal(err)
		}
		_, _, state := read(t, res)
		return state == "completed"
	})
	if status, _, _ := ask("/v1/responses"); status != 429 {
		t.Errorf("another one, when its tokens are used up: %d", status)
	}
}

// read reads a response of the Responses API.
func read(t *testing.T, res *http.Response) (status int, id, state string) {
	t.Helper()
	defer res.Body.Close()
	var response struct{ ID, Status string }
	if err := json.NewDecoder(res.Body).Decode(&response); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, response.ID, response.Status
}
