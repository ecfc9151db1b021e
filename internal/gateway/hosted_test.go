package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// finder is a server that searches a web of two pages, and one that does something else.
type finder struct {
	mu    sync.Mutex
	asked []string
}

func (*finder) Owner() string { return "" }

func (*finder) Describe(context.Context) mcp.Description {
	return mcp.Description{Info: json.RawMessage(`{"name":"finder","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{}}`)}
}

func (f *finder) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	switch call.Method {
	case "tools/list":
		return dragoman.Result{Content: json.RawMessage(`{"tools":[
			{"name":"web","description":"Finds pages.","inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}},
			{"name":"news","description":"Finds news.","inputSchema":{"type":"object"}}]}`)}, nil
	case "subscriptions/listen":
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	params, _ := rawjson.ParseObject(call.Arguments)
	f.mu.Lock()
	f.asked = append(f.asked, string(params.Get("name"))+string(params.Get("arguments")))
	f.mu.Unlock()
	return dragoman.Result{Content: json.RawMessage(`{"content":[],"structuredContent":{"hits":[
		{"url":"https://cats.example/oslo","title":"Cats in Oslo","snippet":"There are many."},
		{"url":"https://dogs.example/","title":"Dogs","snippet":"Some."}]}}`)}, nil
}

func (f *finder) calls() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, " ")
}

func searching(t *testing.T, change func(*config.File)) (*gatedGateway, *finder) {
	f := &finder{}
	behind := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return f, nil }}
	t.Cleanup(behind.Close)
	url := web(t, behind)
	return gatedBy(t, func(file *config.File) {
		file.MCPServers = map[string]servers.Config{"search": {URL: url}}
		file.Hosted.WebSearch = session.WebSearch{Tool: "search__web", Query: "q", Results: "/hits", URL: "url", Title: "title", Text: "snippet"}
		file.Policy = []policy.Rule{{Allow: []string{"*"}}}
		if change != nil {
			change(file)
		}
	}), f
}

const (
	findsCats       = `CALL web_search {\"query\":\"cats\"}\nTHEN\nSAY See https://cats.example/oslo.`
	searchResponses = `{"model":"rehearsal","include":["web_search_call.action.sources"],"tools":[{"type":"web_search"}],"input":"` + findsCats + `"}`
	searchMessages  = `{"model":"rehearsal","max_tokens":99,"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"` + findsCats + `"}]}`
)

// TestWebSearchIsATool: a search that a client declares as the API's own is a call of the
// tool that the configuration maps: it is run, judged and written down under that tool's
// name.
func TestWebSearchIsATool(t *testing.T) {
	for _, tc := range []struct{ path, body, want string }{
		{"/v1/responses", searchResponses, `"type":"web_search_call","status":"completed","action":{"type":"search","query":"cats","queries":["cats"],"sources":[{"type":"url","url":"https://cats.example/oslo"},{"type":"url","url":"https://dogs.example/"}]}`},
		{"/v1/responses", searchResponses, `"annotations":[{"type":"url_citation","start_index":4,"end_index":29,"url":"https://cats.example/oslo","title":"Cats in Oslo"}]`},
		{"/v1/messages", searchMessages, `"type":"web_search_result","url":"https://cats.example/oslo","title":"Cats in Oslo"`},
		{"/v1/messages", searchMessages, `"server_tool_use":{"web_search_requests":1`},
	} {
		s, f := searching(t, nil)
		status, body := s.do(s.ann, "POST", tc.path, tc.body)
		if status != http.StatusOK || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %s", tc.path, status, body)
		}
		if f.calls() != `"web"{"q":"cats"}` {
			t.Errorf("%s: the server was called with %s", tc.path, f.calls())
		}
		found, err := s.ledger.Audit.Find(t.Context(), audit.Filter{Tool: "web"})
		if err != nil || len(found) == 0 {
			t.Errorf("%s: the audit log has nothing of it, %v", tc.path, err)
		}
	}
}

// TestWebSearchThatIsNotThere: whom rules or rights keep from the tool, and where none is
// mapped, there is no search: clients that always declare one have it left out, others are
// told.
func TestWebSearchThatIsNotThere(t *testing.T) {
	denied := func(f *config.File) { f.Policy = append(f.Policy, policy.Rule{Deny: []string{"search__web"}}) }
	unmapped := func(f *config.File) { f.Hosted = session.DefaultHosted }
	codex := strings.Replace(searchResponses, `"web_search"}`, `"web_search","external_web_access":false}`, 1)
	for name, tc := range map[string]struct {
		change     func(*config.File)
		key        func(*gatedGateway) string
		path, body string
		status     int
		want       string
	}{
		"denied":             {denied, nil, "/v1/responses", searchResponses, 400, `"param":"tools[0].type"`},
		"denied to Codex":    {denied, nil, "/v1/responses", codex, 200, "offers: news."},
		"denied in Messages": {denied, nil, "/v1/messages", searchMessages, 200, "offers: news."},
		"no right":           {nil, func(s *gatedGateway) string { return s.bob }, "/v1/responses", searchResponses, 400, `"param":"tools[0].type"`},
		"unmapped":           {unmapped, nil, "/v1/responses", searchResponses, 400, "hosted.web_search"},
		"unmapped, chosen":   {unmapped, nil, "/v1/responses", strings.Replace(codex, `{"model"`, `{"tool_choice":{"type":"web_search"},"model"`, 1), 400, `"param":"tool_choice"`},
		"another one":        {nil, nil, "/v1/responses", strings.Replace(searchResponses, `"type":"web_search"`, `"type":"file_search"`, 1), 400, `"param":"tools[0].type"`},
		"another in Messages": {
			nil, nil, "/v1/messages", strings.Replace(searchMessages, "web_search_20250305", "code_execution_20250522", 1), 400, "tools.0.type",
		},
		"tools are not wanted": {unmapped, nil, "/v1/responses", `{"model":"rehearsal","tool_choice":"none","tools":[{"type":"web_search"}],"input":"SAY hi"}`, 200, "hi"},
	} {
		s, f := searching(t, tc.change)
		key := s.ann
		if tc.key != nil {
			key = tc.key(s)
		}
		status, body := s.do(key, "POST", tc.path, tc.body)
		if status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %s, want %d with %s", name, status, body, tc.status, tc.want)
		}
		if f.calls() != "" {
			t.Errorf("%s: the server was called with %s", name, f.calls())
		}
	}
}

// TestWebSearchBesideServers: the model is not offered the tool under its own name beside
// web_search, unless the request names it; a request for another server has web_search
// all the same.
func TestWebSearchBesideServers(t *testing.T) {
	offered := func(t *testing.T, tools string) string {
		seen := ""
		model := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Tools []struct{ Function struct{ Name string } }
			}
			_ = json.NewDecoder(r.Body).Decode(&body)
			for _, tool := range body.Tools {
				seen += tool.Function.Name + " "
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`))
		}))
		s, _ := searching(t, func(f *config.File) {
			f.Models = []upstream.Model{{Match: "*", BaseURL: model}}
			f.MCPServers["poet"] = poetAt(t)
		})
		if status, body := s.do(s.ann, "POST", "/v1/responses", `{"model":"m","input":"hi","tools":[{"type":"web_search"}`+tools+`]}`); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		return strings.TrimSpace(seen)
	}
	for tools, want := range map[string]string{
		"": "poet__poem search__news web_search",
		`,{"type":"mcp","server_label":"poet","require_approval":"never"}`:                            "poet__poem web_search",
		`,{"type":"mcp","server_label":"search","require_approval":"never"}`:                          "search__news search__web web_search",
		`,{"type":"mcp","server_label":"search","allowed_tools":["news"],"require_approval":"never"}`: "search__news web_search",
		`,{"type":"function","name":"web_search","parameters":{}}`:                                    "web_search poet__poem search__news web_search_mcp",
	} {
		if got := offered(t, tools); got != want {
			t.Errorf("with %s the model is offered %s, want %s", tools, got, want)
		}
	}
}

func poetAt(t *testing.T) servers.Config {
	behind := &mcp.Server{Host: func(*http.Request) (mcp.Host, error) { return poet{}, nil }}
	t.Cleanup(behind.Close)
	return servers.Config{URL: web(t, behind)}
}
