package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

const asksWeather = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"CALL weather__get {\"city\":\"Oslo\"}\nSAY Cold."}]`

// TestMessages: a request of the Messages API gets our tools, and sees them where it
// names their server.
func TestMessages(t *testing.T) {
	d := open(t, nil)
	unseen := d.do("POST", "/v1/messages?beta=true", asksWeather+`}`, "Anthropic-Beta", "never-heard-of-2030-01-01")
	if unseen.status != http.StatusOK || unseen.header.Get(wireHeader) != "chat" || strings.Contains(unseen.body, "mcp_tool") || !strings.Contains(unseen.body, `"text":"Cold."`) {
		t.Errorf("unseen: %d %v %s", unseen.status, unseen.header, unseen.body)
	}
	seen := d.do("POST", "/v1/messages", asksWeather+`,"tools":[{"type":"mcp_toolset","mcp_server_name":"weather"}],"stream":true}`)
	for _, want := range []string{`"type":"mcp_tool_use"`, `"server_name":"weather"`, `"type":"mcp_tool_result"`, "degrees", "event: message_stop"} {
		if !strings.Contains(seen.body, want) {
			t.Errorf("seen: no %s in %s", want, seen.body)
		}
	}
	if got := d.tools.calls(); strings.Count(got, "weather__get") != 2 {
		t.Errorf("ran %q", got)
	}
}

// TestMessagesRefused: errors have the form of the API, whoever finds them.
func TestMessagesRefused(t *testing.T) {
	d := open(t, nil, (&recorder{}).model(t, "m"))
	for _, tt := range []struct {
		name, body, want string
		status           int
	}{
		{"no JSON", `{`, `"invalid_request_error"`, 400},
		{"no such model", `{"model":"x","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`, `"not_found_error"`, 404},
		{"no such server", asksWeather + `,"mcp_servers":[{"name":"nowhere"}]}`, "nowhere", 400},
		{"somebody else's server", asksWeather + `,"mcp_servers":[{"type":"url","url":"https://example.com/mcp","name":"weather"}]}`, "dragoman:weather", 400},
		{"wrong history", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}`, "messages.0.content.0.tool_use_id", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := d.do("POST", "/v1/messages", tt.body)
			if a.status != tt.status || !strings.HasPrefix(a.body, `{"type":"error","error":{"type":"`) || !strings.Contains(a.body, tt.want) || a.header.Get("Request-Id") == "" {
				t.Errorf("%d %v %s", a.status, a.header, a.body)
			}
		})
	}
	if a := d.do("POST", "/v1/messages", asksWeather+`}`, "Idempotency-Key", "a", "Idempotency-Key", ""); !strings.HasPrefix(a.body, `{"type":"error"`) {
		t.Errorf("a bad key: %s", a.body)
	}
}

// TestCountTokens: an estimate that says so, which counts the tools that are offered.
func TestCountTokens(t *testing.T) {
	d := open(t, nil)
	with := d.do("POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`)
	without := d.do("POST", "/v1/messages/count_tokens", `{"model":"m","tool_choice":{"type":"none"},"messages":[{"role":"user","content":"Hello"}]}`)
	if with.status != 200 || with.header.Get("X-Dragoman-Estimate") != "input_tokens" || without.body != "{\"input_tokens\":9}\n" || len(with.body) <= len(without.body) {
		t.Errorf("%v %s without tools %s", with.header, with.body, without.body)
	}
	if bad := d.do("POST", "/v1/messages/count_tokens", `{"model":"m"}`); bad.status != 400 || !strings.Contains(bad.body, `"type":"error"`) {
		t.Errorf("%d %s", bad.status, bad.body)
	}
}

// TestMessagesNative: an upstream that speaks the API gets requests as they are, loudly,
// unless they name our servers.
func TestMessagesNative(t *testing.T) {
	up := &recorder{}
	m := up.model(t, "m")
	m.Wires, m.APIKey = []string{"chat", upstream.Messages}, secret.New("upstream-key")
	d := open(t, nil, m)
	body := `{"model":"m","unknown":{"b":1,"a":2},"max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
		a := d.do("POST", path, body, "X-Api-Key", "the client's")
		got := up.last(t)
		if a.header.Get(wireHeader) != "relayed" || got.line != "POST /base"+path || got.body != body || got.header.Get("X-Api-Key") != "upstream-key" {
			t.Errorf("%s: %v, sent %+v", path, a.header, got)
		}
	}
	if !strings.Contains(d.log.String(), "passed on without the tools of MCP servers") {
		t.Errorf("not in the log: %s", d.log)
	}
	for _, named := range []string{`"mcp_servers":[{"name":"weather"}]`, `"tools":[{"type":"mcp_toolset","mcp_server_name":"weather"}]`} {
		a := d.do("POST", "/v1/messages", strings.TrimSuffix(body, "}")+","+named+"}")
		if got := up.last(t); a.header.Get(wireHeader) != "chat" || got.line != "POST /base/v1/chat/completions" || !strings.Contains(got.body, "weather__get") {
			t.Errorf("%s: %v, sent %+v", named, a.header, got)
		}
	}
}

// TestAnthropicModels: the list of models has Anthropic's shape for its clients, and is
// what it was for all others.
func TestAnthropicModels(t *testing.T) {
	d := open(t, nil)
	if a := d.do("GET", "/v1/models", "", "Anthropic-Version", "2023-06-01"); a.body != `{"data":[{"type":"model","id":"rehearsal","display_name":"rehearsal","created_at":"1970-01-01T00:00:00Z","max_input_tokens":null,"max_tokens":null}],"has_more":false,"first_id":"rehearsal","last_id":"rehearsal"}`+"\n" {
		t.Errorf("%s", a.body)
	}
	if a := d.do("GET", "/v1/models", ""); !strings.Contains(a.body, `"object":"list"`) {
		t.Errorf("%s", a.body)
	}
}

// What tools cost in a count is what the model is offered: all of them, or the two that
// stand in for them.
func TestOfferedTokens(t *testing.T) {
	tool := dragoman.Tool{Name: "a__b", Description: strings.Repeat("word ", 300)}
	list := &dragoman.List{Tools: dragoman.NewTools([]dragoman.Tool{tool, {Name: "bad", Quarantined: &dragoman.Problem{}}})}
	one := offered(list, model.Search{When: model.Never})
	for _, tc := range []struct {
		list   *dragoman.List
		search model.Search
		want   int
	}{
		{list, model.Search{When: model.Auto}, one},
		{list, model.Search{When: model.Auto, Tokens: one}, one},
		{list, model.Search{When: model.Auto, Tokens: one - 1}, searchTokens},
		{list, model.Search{When: model.Always}, searchTokens},
		{&dragoman.List{}, model.Search{When: model.Always}, 0},
		{&dragoman.List{}, model.Search{When: model.Auto}, 0},
	} {
		if got := offered(tc.list, tc.search); got != tc.want || one < 400 {
			t.Errorf("%+v: %d, want %d", tc.search, got, tc.want)
		}
	}
}

// A document that the model's API does not take is refused in the words by which Claude Code
// takes it out of its history. With others a session that read a PDF could never go on.
func TestDocumentsAreRefused(t *testing.T) {
	d := open(t, nil)
	document := `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQ="}}`
	for place, content := range map[string]string{
		"messages.0.content.0.source":           document,
		"messages.2.content.0.content.0.source": `{"type":"tool_result","tool_use_id":"toolu_1","content":[` + document + `]}`,
	} {
		before := ""
		if strings.Contains(content, "tool_result") {
			before = `{"role":"user","content":"Read it"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}]},`
		}
		a := d.do("POST", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[`+before+`{"role":"user","content":[`+content+`]}]}`)
		if a.status != 400 || !strings.Contains(a.body, `"message":"`+place+`: this model does not support PDF input`) {
			t.Errorf("%s: %d %s", place, a.status, a.body)
		}
	}
}
