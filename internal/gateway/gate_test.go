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
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// gatedGateway has three keys, and a rule that asks before records are made.
type gatedGateway struct {
	*testing.T
	*Gateway
	url                  string
	served               *serving
	ann, bob, olga, path string // keys; olga may approve
}

func gated(t *testing.T) *gatedGateway {
	t.Helper()
	return gatedBy(t, nil)
}

// gatedBy is gated with a configuration that is changed by change; nil changes nothing.
func gatedBy(t *testing.T, change func(*config.File)) *gatedGateway {
	t.Helper()
	s := &gatedGateway{T: t, path: filepath.Join(t.TempDir(), "keys.jsonl")}
	for _, who := range []struct {
		name   string
		grants []string
		key    *string
	}{
		{"ann", []string{"tool:*", "model:*"}, &s.ann},
		{"bob", []string{"tool:demo__get_*", "model:rehearsal"}, &s.bob},
		{"olga", []string{"approve:*"}, &s.olga},
	} {
		key, id := apikey.New()
		*who.key = key
		if err := apikey.Add(s.path, apikey.Record{ID: id, Hash: apikey.Hash(key), User: who.name, Name: who.name, Rights: who.grants}); err != nil {
			t.Fatal(err)
		}
	}
	s.Gateway = build(t, func(f *config.File) {
		f.Auth.KeysFile = s.path
		f.Policy = []policy.Rule{{Allow: []string{"*"}}, {Name: "records", Ask: []string{"demo__create_record"}}}
		f.Store.Path = filepath.Join(t.TempDir(), "dragoman.db")
		f.Approvals.Elicit = true
		if change != nil {
			change(f)
		}
	})
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.served = serve(t, s.Gateway)
	s.url = s.served.url
	return s
}

// change changes the file of keys and lets the gateway see it: a key that nobody knows
// makes it look.
func (s *gatedGateway) change(change func([]apikey.Record) ([]apikey.Record, error)) {
	s.Helper()
	if err := apikey.Change(s.path, change); err != nil {
		s.Fatal(err)
	}
	unknown, _ := apikey.New()
	if status, body := s.do(unknown, "GET", "/v1/models", ""); status != http.StatusUnauthorized {
		s.Fatalf("a key that nobody knows: %d %s", status, body)
	}
}

func (s *gatedGateway) do(key, method, path, body string) (status int, answer string) {
	s.Helper()
	return sent(s, key, method, s.url+path, body)
}

// sent returns the answer to a request, on a connection of its own; key may be empty.
func sent(t testing.TB, key, method, url, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

const makesARecord = `{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"CALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Ada\"}}\nTHEN\nSAY done"}]}`

// TestApproval: a stream waits until an operator has answered, over HTTP. Those who
// may not answer see nothing to be answered.
func TestApproval(t *testing.T) {
	s := gated(t)
	type answer struct {
		status int
		body   string
	}
	answered := make(chan answer, 1)
	go func() {
		status, body := s.do(s.ann, "POST", "/v1/chat/completions", makesARecord)
		answered <- answer{status, body}
	}()
	var waiting struct {
		Approvals []struct {
			ID        string
			Arguments json.RawMessage
		}
	}
	eventually(t, "a question", func() bool {
		_, body := s.do(s.olga, "GET", "/approvals", "")
		if err := json.Unmarshal([]byte(body), &waiting); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return len(waiting.Approvals) == 1
	})
	if got := string(waiting.Approvals[0].Arguments); got != `{"data":{"name":"Ada"},"table":"people"}` {
		t.Errorf("the operator is shown %s", got)
	}
	path := "/approvals/" + waiting.Approvals[0].ID
	for _, key := range []string{s.ann, s.bob} {
		if status, body := s.do(key, "GET", "/approvals", ""); status != 200 || body != "{\"approvals\":[]}\n" {
			t.Errorf("who may not approve: %d %s", status, body)
		}
		if status, body := s.do(key, "POST", path, `{"decision":"approve"}`); status != 404 {
			t.Errorf("who may not approve: %d %s", status, body)
		}
	}
	for _, body := range []string{`{"decision":"perhaps"}`, `{"Decision":"approve"}`, `{"decision":"deny","decision":"approve"}`, `["approve"]`, `{"decision":["approve"]}`, `{"decision":"approve","arguments":{"data":{"name":"Eve"},"table":"people"}}`} {
		if status, body := s.do(s.olga, "POST", path, body); status != 400 {
			t.Errorf("no decision: %d %s", status, body)
		}
	}
	if status, body := s.do(s.olga, "POST", path, `{"decision":"approve","arguments":{"table":"people","data":{"name":"Ada"}}}`); status != 200 || !strings.Contains(body, `"approved"`) {
		t.Errorf("approved: %d %s", status, body)
	}
	if status, body := s.do(s.olga, "POST", path, `{"decision":"deny"}`); status != 409 {
		t.Errorf("twice: %d %s", status, body)
	}
	if got := <-answered; got.status != 200 || !strings.Contains(got.body, "done") {
		t.Errorf("the stream: %d %s", got.status, got.body)
	}
	found, err := s.ledger.Audit.Find(t.Context(), audit.Filter{Tool: "create_record"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[audit.Kind]int{}
	for _, r := range found {
		kinds[r.Kind]++
	}
	if kinds[audit.Intent] != 1 || kinds[audit.Approval] != 1 {
		t.Errorf("the audit log has %v", kinds)
	}
}

// A gateway that stops waits for no operator: the caller is told that the call is
// pending, and finds the answer later.
func TestStoppingWaitsForNoOperator(t *testing.T) {
	s := gated(t)
	answered := make(chan string, 1)
	go func() {
		_, body := s.do(s.ann, "POST", "/v1/chat/completions", `{"model":"rehearsal","stream":true,"messages":[{"role":"user","content":"CALL create_record {\"table\":\"people\",\"data\":{}}"}]}`)
		answered <- body
	}()
	eventually(t, "a question", func() bool {
		_, body := s.do(s.olga, "GET", "/approvals", "")
		return strings.Contains(body, "create_record")
	})
	s.served.stop()
	if body := <-answered; !strings.Contains(body, `"finish_reason":"stop"`) || !strings.Contains(body, `"calls":1`) || strings.Contains(body, `"error"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("the stream: %s", body)
	}
	if err := <-s.served.done; err != nil {
		t.Errorf("Serve = %v", err)
	}
	if waiting, err := s.ledger.Inbox.List(t.Context(), approval.Filter{State: approval.Pending}); err != nil || len(waiting) != 1 {
		t.Errorf("what waits: %v, %v", waiting, err)
	}
}

// TestKeysAreNarrow: a key is good for what it was made for, at every door.
func TestKeysAreNarrow(t *testing.T) {
	s := gated(t)
	for _, tt := range []struct {
		name, key, method, path, body string
		status                        int
		has, hasNot                   string
	}{
		{"the tools that a key may use", s.bob, "GET", "/v1/tools", "", 200, "get_weather", "create_record"},
		{"a model that it may not", s.bob, "POST", "/v1/chat/completions", `{"model":"large","messages":[{"role":"user","content":"hi"}]}`, 403, "denied", ""},
		{"the models that a key may use", s.bob, "GET", "/v1/models", "", 200, `"id":"rehearsal"`, "rehearsal:"},
		{"no model at all", s.olga, "GET", "/v1/models", "", 200, `"data":[]`, "rehearsal"},
		{"a route that it may not", s.bob, "GET", "/v1/files", "", 403, "denied", ""},
		{"nothing but approving", s.olga, "GET", "/v1/tools", "", 200, "", "get_weather"},
		{"a tool that it may not, at /mcp", s.bob, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_record","arguments":{"table":"x","data":{}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`, 0, "", "people"},
		{"a call of a tool that it may not", s.bob, "POST", "/v1/tools/call", `{"name":"create_record","tool_call_id":"x","model":"rehearsal","arguments":{"table":"x","data":{}}}`, 200, "unknown_tool", "people"},
	} {
		status, body := s.do(tt.key, tt.method, tt.path, tt.body)
		if tt.status != 0 && status != tt.status || !strings.Contains(body, tt.has) || tt.hasNot != "" && strings.Contains(body, tt.hasNot) {
			t.Errorf("%s: %d %.300s", tt.name, status, body)
		}
	}
}

// TestNamesAreNotTold: of servers and tools that a caller may not use nobody tells the
// names, nor that there are any: not in errors, in headers, nor to those who wait until
// the gateway is ready.
func TestNamesAreNotTold(t *testing.T) {
	shop, _ := fakes(t, fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo"}, {Name: "flaky"}, {Name: "secret_keys"}}})
	s := gatedBy(t, func(f *config.File) {
		f.MCPServers = map[string]servers.Config{"demo": {Command: "/no/such/program"}, "payroll": {Command: "/no/such/program"}, "shop": shop}
		f.Policy = append(f.Policy, policy.Rule{Deny: []string{"shop__secret_*"}})
	})
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		all[1].Rights = []string{"tool:demo__*", "tool:shop__echo", "model:*"} // bob
		return all, nil
	})
	chat := func(choice string) string {
		return `{"model":"rehearsal","messages":[{"role":"user","content":"hi"}]` + choice + `}`
	}
	chosen := func(server, tool string) string {
		return chat(`,"tools":[{"type":"mcp","server_label":"` + server + `","allowed_tools":["` + tool + `"]}]`)
	}
	ask := func(key, path, body string) string {
		t.Helper()
		method := "POST"
		if body == "" {
			method = "GET"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.StatusCode, " ", res.Header, string(text))
	}
	for _, tt := range []struct{ name, key, path, body, has, hasNot string }{
		{"a tool with nearly that name", s.bob, "/v1/chat/completions", chosen("shop", "secret_key"), "has no tool", "secret_keys"},
		{"one that is not granted", s.bob, "/v1/chat/completions", chosen("shop", "flip"), "has no tool", "flaky"},
		{"one that may be seen", s.bob, "/v1/chat/completions", chosen("shop", "ecko"), `did you mean \"echo\"?`, ""},
		{"one that is denied to everybody", s.ann, "/v1/chat/completions", chosen("shop", "secret_key"), "has no tool", "secret_keys"},
		{"a server that has nothing for the caller", s.bob, "/v1/chat/completions", chosen("payroll", "x"), `no MCP server is labelled \"payroll\"`, "failed"},
		{"a server that is not there", s.bob, "/v1/chat/completions", chosen("nothing", "x"), `no MCP server is labelled \"nothing\"`, "payroll"},
		{"a server that fails", s.bob, "/v1/chat/completions", chosen("demo", "x"), "is not available", "payroll"},
		{"servers that are missing", s.bob, "/v1/chat/completions", chat(""), "demo (", "payroll"},
		{"the same for who may use it", s.ann, "/v1/chat/completions", chat(""), "payroll (", ""},
		{"the same to list tools", s.bob, "/v1/tools", "", "demo (", "payroll"},
		{"who may use nothing", s.olga, "/v1/tools", "", "", "demo"},
		{"ready, for everybody", "", "/readyz", "", "ready", ":"},
		{"ready, for who shows nothing good", "x", "/readyz", "", "ready", "demo"},
		{"ready, for a caller", s.bob, "/readyz", "", "demo: ", "payroll"},
		{"ready, for another", s.ann, "/readyz", "", "payroll: ", ""},
	} {
		got := ask(tt.key, tt.path, tt.body)
		if tt.path == "/readyz" {
			got = got[strings.LastIndex(got, "ready"):] // the header has colons
		}
		if !strings.Contains(got, tt.has) || tt.hasNot != "" && strings.Contains(strings.ReplaceAll(got, tt.body, ""), tt.hasNot) {
			t.Errorf("%s: %.600s", tt.name, got)
		}
	}
}

// TestRelayedChanges: what may change something at a model API, with the credentials of
// the gateway, is written down before it is passed on, and not passed on where it cannot
// be; and no header makes a question of it, or of its path another one.
func TestRelayedChanges(t *testing.T) {
	var s *gatedGateway
	var got []string
	peer := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		written, _ := s.ledger.Audit.Find(r.Context(), audit.Filter{Kind: audit.Intent}) // none once it is closed
		header := ""
		for name := range r.Header {
			if strings.Contains(name, "Override") || strings.Contains(name, "Url") {
				header += " " + name
			}
		}
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.Path, " ", len(written), header))
		w.WriteHeader(map[bool]int{true: 404, false: 200}[strings.HasSuffix(r.URL.Path, "/none")])
	}))
	s = gatedBy(t, func(f *config.File) { f.Models = []upstream.Model{{Match: "*", BaseURL: peer + "/v1"}} })
	s.change(func(all []apikey.Record) ([]apikey.Record, error) {
		all[0].Rights = append(all[0].Rights, "route:*") // ann
		return all, nil
	})
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/v1/files", ""},
		{"DELETE", "/v1/files/f-7", ""},
		{"POST", "/v1/embeddings", `{"model":"m","input":"x"}`},
		{"POST", "/v1/vector_stores", `{}`},
		{"POST", "/v1/fine_tuning/jobs", `{"model":"m"}`},
		{"POST", "/v1/vector_stores/none", `{"name":"x"}`},
		{"DELETE", "/v1/models/m", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, s.url+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + s.ann, "Content-Type": "application/json",
			"X-HTTP-Method-Override": "DELETE", "X_Http_Method_Override": "DELETE", "X-Original-URL": "/v1/files/f-8", "X-Rewrite-Url": "/v1/files/f-8",
		} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	want := []string{
		"GET /v1/files 0", "DELETE /v1/files/f-7 1", "POST /v1/embeddings 1", "POST /v1/vector_stores 2", "POST /v1/fine_tuning/jobs 3", "POST /v1/vector_stores/none 4", "DELETE /v1/models/m 5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the API got %q\nwant %q", got, want)
	}
	var came []string
	eventually(t, "what came of them", func() bool {
		came = nil
		found, err := s.ledger.Audit.Find(t.Context(), audit.Filter{Kind: audit.Outcome})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range slices.Backward(found) {
			came = append(came, fmt.Sprint(r.Target, " ", r.Ran, " ", r.Failed))
		}
		return len(came) == 5
	})
	if want := []string{"DELETE /v1/files/f-7 yes false", "POST /v1/vector_stores yes false", "POST /v1/fine_tuning/jobs yes false", "POST /v1/vector_stores/none yes true", "DELETE /v1/models/m yes false"}; !slices.Equal(came, want) {
		t.Errorf("what came of them is %q", came)
	}
	if err := s.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	before := len(got)
	if status, body := s.do(s.ann, "DELETE", "/v1/files/f-9", ""); status != 503 || len(got) != before {
		t.Errorf("without a log: %d %s", status, body)
	}
	if status, body := s.do(s.ann, "GET", "/v1/files", ""); status != 200 || len(got) != before+1 {
		t.Errorf("a question without a log: %d %s", status, body)
	}
}
