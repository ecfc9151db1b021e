package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// What a caller spends of models ends its budget at every door, in the words of each; others
// go on, and a caller sees what is left of its own.
func TestBudgetAtEveryDoor(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Models = []upstream.Model{{BaseURL: upstream.RehearsalURL, Price: usage.Price{Input: "1000", Output: "1000"}}}
		f.Budgets = []budget.Budget{{Name: "pocket money", Cost: "0.001"}, {Name: "all", Per: "all", Tokens: 1_000_000}}
	})
	const ask = `"messages":[{"role":"user","content":"hello"}],"model":"rehearsal","max_tokens":50}`
	if status, body := s.do(s.ann, "POST", "/v1/chat/completions", "{"+ask); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if h := asked(t, s, "/v1/chat/completions", "{"+ask).header.Get(BudgetHeader); !regexp.MustCompile(`^"pocket money";spent=\d+;ends=\d+$`).MatchString(h) {
		t.Errorf("of what is used up the answer says %q", h)
	}
	for path, request := range map[string]string{
		"/v1/chat/completions": "{" + ask,
		"/v1/messages":         "{" + ask,
		"/v1/responses":        `{"model":"rehearsal","input":"hello"}`,
	} {
		res := asked(t, s, path, request)
		if res.status != http.StatusTooManyRequests || res.header.Get("Retry-After") == "" || res.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %v", path, res.status, res.header)
		}
		var e struct {
			Type  string
			Error struct{ Type, Code, Message string }
		}
		if err := json.Unmarshal([]byte(res.body), &e); err != nil || !strings.Contains(e.Error.Message, `"pocket money" is 0.001 a month, and it is used up`) {
			t.Errorf("%s: %s", path, res.body)
		}
		if wire := path == "/v1/messages"; wire != (e.Type == "error") || e.Error.Type != "rate_limit_error" || !wire && e.Error.Code != "budget_exhausted" {
			t.Errorf("%s is not in the shape of its API: %s", path, res.body)
		}
	}
	if _, body := s.do(s.ann, "POST", "/v1/tools/call", `{"name":"calculate_sum","arguments":"{\"a\":1,\"b\":2}","tool_call_id":"call_1"}`); !strings.Contains(body, "budget_exhausted") {
		t.Errorf("a tool: %s", body)
	}
	mcp := asked(t, s, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calculate_sum","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "calculate_sum")
	if !strings.Contains(mcp.body, "pocket money") || !strings.Contains(mcp.body, `"isError":true`) {
		t.Errorf("a tool over MCP: %s", mcp.body)
	}
	if status, body := s.do(s.bob, "POST", "/v1/chat/completions", "{"+ask); status != http.StatusOK {
		t.Errorf("another caller: %d %s", status, body)
	}

	var told struct{ Budgets []budget.State }
	_, body := s.do(s.ann, "GET", "/v1/usage", "")
	if err := json.Unmarshal([]byte(body), &told); err != nil || len(told.Budgets) != 2 {
		t.Fatalf("%s: %v", body, err)
	}
	own, shared := told.Budgets[0], told.Budgets[1]
	if own.Budget != "pocket money" || own.Level != budget.Spent || own.Percent < 100 || own.CostLeft != 0 || own.CostOf != 1000 {
		t.Errorf("her own: %+v", own)
	}
	if shared.Budget != "all" || shared.Level != budget.Fine || shared.Tokens <= own.Tokens || shared.TokensLeft != 1_000_000-shared.Tokens {
		t.Errorf("that which all share: %+v", shared)
	}
	var metrics strings.Builder
	if err := s.telemetry.Write(t.Context(), &metrics); err != nil || !strings.Contains(metrics.String(), `dragoman_budgets{dragoman_budget="pocket money",dragoman_budget_state="used_up"} 1`) {
		t.Errorf("there is no metric of it: %v\n%s", err, metrics.String())
	}
	records, err := s.audit().Find(t.Context(), audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	denied := 0
	for _, r := range records {
		if r.Code == "budget_exhausted" {
			denied++
		}
	}
	if denied < 5 {
		t.Errorf("%d refusals stand in the audit log, want 5", denied)
	}
}

type answered struct {
	status int
	header http.Header
	body   string
}

// asked is what ann gets who posts a request.
func asked(t *testing.T, s *gatedGateway, path, body string, headers ...string) (a answered) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.ann)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text strings.Builder
	if err := res.Write(&text); err != nil {
		t.Fatal(err)
	}
	_, a.body, _ = strings.Cut(text.String(), "\r\n\r\n")
	a.status, a.header = res.StatusCode, res.Header
	return a
}

// Whoever is past the warning mark of a budget is told on every answer, over each door, and
// goes on; others are not.
func TestBudgetWarns(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Budgets = []budget.Budget{{Name: "mark", Tokens: 1_000_000_000, WarnAt: 1}, {Name: `küche "1"`, Tokens: 1_000_000_000, WarnAt: 1, Per: "all", Caller: []string{"ann"}}}
	})
	s.usage.Add(usage.Key{Caller: s.as(s.ann), Model: "*"}, usage.Sum{Calls: 1, Input: 500_000_000})
	s.usage.Named(s.as(s.ann), "ann")
	for path, request := range map[string]string{
		"/v1/chat/completions": `{"model":"rehearsal","messages":[{"role":"user","content":"hello"}]}`,
		"/v1/tools/call":       `{"name":"calculate_sum","arguments":"{\"a\":1,\"b\":2}","tool_call_id":"call_1"}`,
		"/mcp":                 `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	} {
		got := asked(t, s, path, request).header.Get(BudgetHeader)
		if !regexp.MustCompile(`^%"k%c3%bcche %221%22";spent=50;ends=\d+, "mark";spent=50;ends=\d+$`).MatchString(got) {
			t.Errorf("%s says %q", path, got)
		}
	}
	s.ann = s.bob
	if got := asked(t, s, "/v1/chat/completions", `{"model":"rehearsal","messages":[{"role":"user","content":"hello"}]}`).header.Get(BudgetHeader); got != "" {
		t.Errorf("somebody else is told %q", got)
	}
}

// as returns who has a key.
func (s *gatedGateway) as(key string) string {
	s.Helper()
	r, _ := http.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	who, err := s.callers.Recognise(r)
	if err != nil {
		s.Fatal(err)
	}
	return who.ID
}
