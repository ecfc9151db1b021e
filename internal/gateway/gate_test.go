package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/apikey"
	"github.com/dragoman-mcp/dragoman/internal/approval"
	"github.com/dragoman-mcp/dragoman/internal/audit"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/policy"
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
	})
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.served = serve(t, s.Gateway)
	s.url = s.served.url
	return s
}

func (s *gatedGateway) do(key, method, path, body string) (status int, answer string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
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
	for _, body := range []string{`{"decision":"perhaps"}`, `{"Decision":"approve"}`, `{"decision":"deny","decision":"approve"}`, `["approve"]`, `{"decision":["approve"]}`} {
		if status, body := s.do(s.olga, "POST", path, body); status != 400 {
			t.Errorf("no decision: %d %s", status, body)
		}
	}
	if status, body := s.do(s.olga, "POST", path, `{"decision":"approve"}`); status != 200 || !strings.Contains(body, `"approved"`) {
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
