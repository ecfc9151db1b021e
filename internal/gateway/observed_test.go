package gateway

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A collector takes what is sent by OTLP.
type collector struct {
	*testing.T
	url     string
	mu      sync.Mutex
	spans   []*tracepb.Span
	metrics map[string]bool
}

func collect(t *testing.T) *collector {
	c := &collector{T: t, metrics: map[string]bool{}}
	c.url = web(t, c)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.URL.Path {
	case "/v1/traces":
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			c.Error(err)
		}
		for _, of := range data.ResourceSpans {
			for _, s := range of.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	case "/v1/metrics":
		var data metricspb.MetricsData
		if err := proto.Unmarshal(body, &data); err != nil {
			c.Error(err)
		}
		for _, of := range data.ResourceMetrics {
			for _, s := range of.ScopeMetrics {
				for _, m := range s.Metrics {
					c.metrics[m.Name] = true
				}
			}
		}
	default:
		c.Errorf("something came to %s", r.URL.Path)
	}
}

// tree writes the spans of a trace, from a parent on: names, kinds, what failed, events,
// and the keys of attributes.
func (c *collector) tree(trace, parent string, depth int) string {
	var b strings.Builder
	spans := slices.SortedFunc(slices.Values(c.spans), func(a, b *tracepb.Span) int {
		return cmp.Or(cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range spans {
		if hex.EncodeToString(s.TraceId) != trace || hex.EncodeToString(s.ParentSpanId) != parent {
			continue
		}
		indent := strings.Repeat("  ", depth)
		kind := strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"))
		fmt.Fprintf(&b, "%s%s (%s)", indent, s.Name, kind)
		if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			b.WriteString(" failed")
		}
		b.WriteString("\n")
		var keys []string
		for _, a := range s.Attributes {
			keys = append(keys, a.Key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Fprintf(&b, "%s  . %s\n", indent, key)
		}
		var events []string
		for _, e := range s.Events {
			events = append(events, e.Name)
		}
		for _, e := range slices.Compact(events) {
			fmt.Fprintf(&b, "%s  ! %s\n", indent, e)
		}
		b.WriteString(c.tree(trace, hex.EncodeToString(s.SpanId), depth+1))
	}
	return b.String()
}

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientParent = "b7ad6b7169203331"
)

// talks makes a conversation with two tools, of which one fails and one has to be
// approved, in a trace of the client's, and returns the id of the request.
func (s *gatedGateway) talks() (request string) {
	s.Helper()
	body, _ := json.Marshal(map[string]any{"model": "rehearsal", "stream": true, "messages": []any{map[string]any{
		"role":    "user",
		"content": "CALL delete_file {\"path\":\"nowhere.txt\"}\nTHEN\nCALL create_record {\"table\":\"people\",\"data\":{\"name\":\"Ada\"}}\nTHEN\nSAY done",
	}}})
	answered := make(chan string, 1)
	go func() {
		req, _ := http.NewRequest("POST", s.url+"/v1/chat/completions", strings.NewReader(string(body)))
		req.Header.Set("Authorization", "Bearer "+s.ann)
		req.Header.Set("Traceparent", "00-"+clientTrace+"-"+clientParent+"-01")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			s.Error(err)
			answered <- ""
			return
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if !strings.Contains(string(text), "done") {
			s.Errorf("the answer: %s", text)
		}
		answered <- res.Header.Get(RequestHeader)
	}()
	var waiting struct{ Approvals []struct{ ID string } }
	eventually(s.T, "a question", func() bool {
		_, body := s.do(s.olga, "GET", "/approvals", "")
		return json.Unmarshal([]byte(body), &waiting) == nil && len(waiting.Approvals) == 1
	})
	s.do(s.olga, "POST", "/approvals/"+waiting.Approvals[0].ID, `{"decision":"approve"}`)
	return <-answered
}

// TestOneConversationIsOneTree: what a collector gets of a conversation is a tree in the
// client's own trace, with the names of the conventions, and nothing that anybody said.
func TestOneConversationIsOneTree(t *testing.T) {
	c := collect(t)
	s := gatedBy(t, func(f *config.File) { f.Telemetry.Endpoint = c.url })
	request := s.talks()
	if err := s.telemetry.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.tree(clientTrace, clientParent, 0)
	golden := filepath.Join("testdata", "trace.golden")
	if *update {
		_ = os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
	said := 0
	for _, span := range c.spans {
		for _, a := range span.Attributes {
			text := a.Value.GetStringValue()
			if strings.Contains(text, "Ada") || strings.Contains(text, "nowhere") {
				t.Errorf("%s says %s, which is content", a.Key, text)
			}
			if a.Key == "dragoman.request.id" && text == request && request != "" {
				said++
			}
		}
	}
	if said != 1 {
		t.Errorf("the id %q of the answer's header is in %d spans", request, said)
	}
	for _, name := range []string{"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "dragoman.approvals", "mcp.client.operation.duration"} {
		if !c.metrics[name] {
			t.Errorf("the collector got no %s", name)
		}
	}
}

// scraped reads /metrics as somebody.
func (s *gatedGateway) scraped(key string) (status int, text string) {
	return s.do(key, "GET", "/metrics", "")
}

// visits begins a session of a legacy MCP client, and ends it.
func (s *gatedGateway) visits() {
	s.Helper()
	send := func(method, session, body string) *http.Response {
		req, _ := http.NewRequest(method, s.url+"/mcp", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+s.ann)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			s.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	began := send("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"visitor","version":"1"}}}`)
	if ended := send("DELETE", began.Header.Get("Mcp-Session-Id"), ""); ended.StatusCode != http.StatusNoContent {
		s.Fatalf("the session ends with %s", ended.Status)
	}
}

// TestMetricsAreWellFormed: what /metrics says is what Prometheus reads, with names that
// its own lint likes, and only who has the right reads it.
func TestMetricsAreWellFormed(t *testing.T) {
	s := gated(t)
	s.talks()
	s.visits()
	if status, body := s.scraped(s.ann); status != 403 {
		t.Errorf("without the right: %d %s", status, body)
	}
	var text strings.Builder
	if err := s.telemetry.Write(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	gatherer := prometheus.GathererFunc(func() (all []*dto.MetricFamily, err error) {
		for _, f := range families {
			all = append(all, f)
		}
		return all, nil
	})
	problems, err := testutil.GatherAndLint(gatherer)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric == "go_goroutine_count" {
			continue // the conventions call it so
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		`dragoman_server_up{dragoman_server="demo"} 1`,
		`dragoman_approvals_total{dragoman_approval_verdict="approved"} 1`,
		`gen_ai_execute_tool_duration_seconds_count{dragoman_server="demo",error_type="tool_error",gen_ai_tool_name="delete_file"} 1`,
		`gen_ai_invoke_agent_tool_calls_sum{gen_ai_agent_name="dragoman"} 2`,
		`http_route="/v1/chat/completions"`,
		`gen_ai_client_operation_time_per_output_chunk_seconds_count{gen_ai_operation_name="chat"`,
		`mcp_server_session_duration_seconds_count{mcp_protocol_version="2025-06-18",network_transport="tcp"} 1`,
		`go_goroutine_count`,
		`dragoman_store_operation_duration_seconds_count`,
		`dragoman_runs{dragoman_run_state="waiting"} 0`,
		`dragoman_replicas 1`,
		`dragoman_queue_length{dragoman_queue="mail:"} 0`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %s in\n%s", want, text.String())
		}
	}
}

// TestRequestIDs: the id of a request is where the clients of each API look for it, but
// where the model's API says one of its own.
func TestRequestIDs(t *testing.T) {
	model := web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}]}`)
	}))
	g := build(t, func(f *config.File) {
		f.Models = []upstream.Model{{Match: "m", BaseURL: model + "/v1"}, {Match: "*", BaseURL: upstream.RehearsalURL}}
	})
	url := serve(t, g).url
	for _, tt := range []struct {
		path, header, body string
		ours               bool
	}{
		{"/v1/chat/completions", "X-Request-Id", `{"model": "m", "messages": [{"role": "user", "content": "SAY done"}]}`, true},
		{"/v1/chat/completions", "X-Request-Id", `{"model": "other", "stream": true, "messages": [{"role": "user", "content": "SAY done"}]}`, false},
		{"/v1/responses", "X-Request-Id", `{"model": "m", "input": "SAY done"}`, true},
		{"/v1/responses", "X-Request-Id", `{"model": "other", "input": "SAY done"}`, false},
		{"/v1/messages", "Request-Id", `{"model": "other", "max_tokens": 100, "messages": [{"role": "user", "content": "SAY done"}]}`, true},
		{"/v1/messages", "Request-Id", `{}`, true},
	} {
		res, err := http.Post(url+tt.path, "application/json", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		id, said := res.Header.Get(RequestHeader), res.Header.Values(tt.header)
		if err != nil || id == "" || len(said) != 1 || (said[0] == id) != tt.ours {
			t.Errorf("%s %s: %d %v, %v", tt.path, tt.body, res.StatusCode, res.Header, err)
		}
	}
}

// TestPiecesAreOfStreams: what comes as a whole has no first piece, at whichever door.
func TestPiecesAreOfStreams(t *testing.T) {
	s := gated(t)
	for _, stream := range []string{"false", "true"} {
		for path, body := range map[string]string{
			"/v1/chat/completions": `"messages":[{"role":"user","content":"SAY done"}]`,
			"/v1/responses":        `"input":"SAY done"`,
			"/v1/messages":         `"max_tokens":9,"messages":[{"role":"user","content":"SAY done"}]`,
		} {
			if status, said := s.do(s.ann, "POST", path, `{"model":"rehearsal","stream":`+stream+`,`+body+`}`); status != 200 {
				t.Fatalf("%s: %d %s", path, status, said)
			}
		}
		var text strings.Builder
		if err := s.telemetry.Write(t.Context(), &text); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "time_to_first_chunk_seconds_count"); (n > 0) != (stream == "true") {
			t.Errorf("streams %s: %d series of first pieces in\n%s", stream, n, text.String())
		}
	}
}

// TestInventedNamesStayFew: a client that makes up models, tools, methods and paths makes
// no series of its own, and no rows of usage.
func TestInventedNamesStayFew(t *testing.T) {
	s := gated(t)
	count := func() (series int) {
		var text strings.Builder
		if err := s.telemetry.Write(t.Context(), &text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			// The store's series are one for each kind of operation, and come when it is first used.
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "dragoman_store_") {
				series++
			}
			if strings.Contains(line, "invented") {
				t.Errorf("a name that a client made up: %s", line)
			}
		}
		return series
	}
	invent := func(n int) {
		name := fmt.Sprintf("invented%d", n)
		s.do(s.ann, "POST", "/v1/chat/completions", `{"model":"`+name+`","messages":[{"role":"user","content":"CALL `+name+` {}"}],"user":"`+name+`"}`)
		s.do(s.ann, "POST", "/v1/tools/call", `{"name":"`+name+`","arguments":{}}`)
		s.do(s.ann, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+name+`","params":{}}`)
		s.do(s.ann, "GET", "/"+name, "")
		s.do(name, "GET", "/v1/models", "")
	}
	invent(0)
	before := count()
	for n := range 60 {
		invent(n + 1)
	}
	if after := count(); after > before {
		t.Errorf("%d series became %d", before, after)
	}
	rows, err := s.readUsage(t.Context(), usage.Query{By: usage.Columns})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if strings.Contains(r.Model+r.Tool+r.Server, "invented") {
			t.Errorf("a row of usage: %+v", r)
		}
	}
}

// TestUsageOfACaller: what a caller uses of models and tools stands in the store, with its
// price, and each sees their own.
func TestUsageOfACaller(t *testing.T) {
	s := gatedBy(t, func(f *config.File) {
		f.Models = []upstream.Model{{BaseURL: upstream.RehearsalURL, Price: usage.Price{Input: "1", Output: "2"}}}
	})
	s.talks()
	var answer struct {
		Data []usage.Row
		Own  bool
	}
	_, body := s.do(s.ann, "GET", "/v1/usage?by=model,server,tool&since=1d", "")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	found := map[string]usage.Row{}
	for _, r := range answer.Data {
		found[r.Model+r.Tool] = r
	}
	chat, failed, record := found["*"], found["delete_file"], found["create_record"]
	if !answer.Own || chat.Calls != 3 || chat.Input == 0 || chat.Output == 0 || chat.Cost != chat.Input+2*chat.Output {
		t.Errorf("the model: %+v", chat)
	}
	if failed.Calls != 1 || failed.Errors != 1 || record.Calls != 1 || record.Errors != 0 {
		t.Errorf("the tools: %+v, %+v", failed, record)
	}
	if _, body := s.do(s.bob, "GET", "/v1/usage", ""); !strings.Contains(body, `"data":[]`) {
		t.Errorf("another caller sees %s", body)
	}
	if status, _ := s.do(s.ann, "GET", "/v1/usage?by=colour", ""); status != 400 {
		t.Errorf("told apart by what there is not: %d", status)
	}
}

// The type of the error of a request over HTTP is its status, as OpenTelemetry has it, be it
// one without a name such as Anthropic's 529.
func TestErrorTypeIsStatus(t *testing.T) {
	busy := web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"type":"error","error":{"type":"overloaded_error","message":"no"}}`, 529)
	}))
	g := build(t, func(f *config.File) {
		f.Models = []upstream.Model{{Match: "*", BaseURL: busy + "/v1", Wires: []string{"chat", "messages"}}}
	})
	url := serve(t, g).url
	if status, body := sent(t, "", "POST", url+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`); status != 529 {
		t.Fatalf("%d %s", status, body)
	}
	counted := ""
	eventually(t, "it is counted", func() bool {
		_, counted = sent(t, "", "GET", url+"/metrics", "")
		return strings.Contains(counted, `http_response_status_code="529"`)
	})
	if !strings.Contains(counted, `http_server_request_duration_seconds_count{error_type="529",http_request_method="POST",http_response_status_code="529",http_route="/v1/messages"} 1`) {
		t.Error(counted)
	}
}
