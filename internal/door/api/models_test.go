package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// The list of models is OpenAI's and Codex's at once, has a tag by which clients need not
// read it again, and is Anthropic's for clients that speak that API.
func TestModelsForEveryClient(t *testing.T) {
	d := open(t, nil, upstream.Model{Match: "small", BaseURL: "http://127.0.0.1:1/v1", Context: 32768})
	a := d.do("GET", "/v1/models?client_version=0.169.0", "")
	list, err := rawjson.ParseObject([]byte(a.body))
	if err != nil {
		t.Fatal(err)
	}
	models, _ := rawjson.Elements(list.Get("models"))
	if data, _ := rawjson.Elements(list.Get("data")); len(models) != 1 || len(data) != 1 || a.header.Get("Cache-Control") != "private" {
		t.Fatalf("%v %s", a.header, a.body)
	}
	entry, _ := rawjson.ParseObject(models[0])
	for _, name := range []string{"slug", "display_name", "supported_reasoning_levels", "shell_type", "visibility", "supported_in_api", "priority",
		"support_verbosity", "truncation_policy", "experimental_supported_tools", "base_instructions"} {
		if rawjson.IsNull(entry.Get(name)) {
			t.Errorf("%s is %s", name, entry.Get(name))
		}
	}
	if string(entry.Get("context_window")) != "32768" {
		t.Errorf("context_window is %s", entry.Get("context_window"))
	}
	if again := d.do("GET", "/v1/models", "", "If-None-Match", a.header.Get("ETag")); again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("%d %s", again.status, again.body)
	}
	theirs := d.do("GET", "/v1/models", "", "Anthropic-Version", "2023-06-01")
	if want := `{"data":[{"type":"model","id":"small","display_name":"small","created_at":"1970-01-01T00:00:00Z","max_input_tokens":32768,"max_tokens":null}],"has_more":false,"first_id":"small","last_id":"small"}` + "\n"; theirs.body != want {
		t.Errorf("got %s", theirs.body)
	}
	one := d.do("GET", "/v1/models/small", "", "Anthropic-Version", "2023-06-01")
	if want := `{"type":"model","id":"small","display_name":"small","created_at":"1970-01-01T00:00:00Z","max_input_tokens":32768,"max_tokens":null}` + "\n"; one.status != 200 || one.body != want {
		t.Errorf("%d %s", one.status, one.body)
	}
	if one = d.do("GET", "/v1/models/small", ""); one.status != http.StatusBadGateway {
		t.Errorf("its upstream, which is not there, answers %d %s", one.status, one.body)
	}
	none := d.do("GET", "/v1/models/other", "", "Anthropic-Version", "2023-06-01")
	if none.status != http.StatusNotFound || !strings.Contains(none.body, `{"type":"error","error":{"type":"not_found_error"`) {
		t.Errorf("%d %s", none.status, none.body)
	}
}

// Codex asks for a summary of what a model thinks where its catalogue says so: where it is what
// Chat shows of thoughts.
func TestCodexAsksForSummaries(t *testing.T) {
	for _, tc := range []struct {
		wires []string
		want  string
	}{
		{nil, "true"},
		{[]string{"chat"}, "true"},
		{[]string{"messages"}, "true"},
		{[]string{"responses"}, "false"},
		{[]string{"chat", "responses"}, "false"},
	} {
		a := open(t, nil, upstream.Model{Match: "m", BaseURL: "http://127.0.0.1:1/v1", Wires: tc.wires}).do("GET", "/v1/models", "")
		list, err := rawjson.ParseObject([]byte(a.body))
		if err != nil {
			t.Fatal(err)
		}
		models, err := rawjson.Elements(list.Get("models"))
		if err != nil || len(models) != 1 {
			t.Fatal(err, a.body)
		}
		if got := string(rawjson.Find(models[0], "supports_reasoning_summary_parameter")); got != tc.want {
			t.Errorf("%v: %s", tc.wires, got)
		}
	}
}

// A model that its upstream calls otherwise is not asked for there: what the list has is told.
func TestModelOfAnotherName(t *testing.T) {
	asked := make(chan string, 9)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	d := open(t, nil, upstream.Model{Match: "fast", Name: "claude-x", BaseURL: server.URL + "/v1", Wires: []string{"messages"}})
	one := d.do("GET", "/v1/models/fast", "", "Anthropic-Version", "2023-06-01")
	if one.status != 200 || !strings.Contains(one.body, `"id":"fast"`) || !strings.Contains(one.body, `"max_input_tokens":null`) {
		t.Errorf("%d %s", one.status, one.body)
	}
	for len(asked) > 0 {
		if path := <-asked; path != "/v1/models" {
			t.Errorf("it is asked for %s", path)
		}
	}
}

// Limits that an upstream tells as Anthropic does are told on, but where the configuration
// says another.
func TestLimitsOfUpstreams(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":[{"type":"model","id":"a","max_input_tokens":1000000,"max_tokens":64000},{"type":"model","id":"b","max_input_tokens":200000,"max_tokens":"many"}]}`))
	}))
	t.Cleanup(server.Close)
	d := open(t, nil, upstream.Model{Match: "b*", BaseURL: server.URL + "/v1", Context: 50000}, upstream.Model{Match: "*", BaseURL: server.URL + "/v1"})
	all := d.do("GET", "/v1/models", "", "Anthropic-Version", "2023-06-01")
	for _, want := range []string{`"id":"a","display_name":"a","created_at":"1970-01-01T00:00:00Z","max_input_tokens":1000000,"max_tokens":64000}`, `"max_input_tokens":50000,"max_tokens":null}`} {
		if !strings.Contains(all.body, want) {
			t.Errorf("%s is not in %s", want, all.body)
		}
	}
}
