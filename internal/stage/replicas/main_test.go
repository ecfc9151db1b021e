//go:build unix

package replicas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/ledger"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/replicas"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/rehearsal"
)

func TestMain(m *testing.M) {
	if replicas.IsChild() {
		replicas.Main()
	}
	os.Exit(m.Run())
}

// full reports whether tests are to be as long as they are in "make soak".
func full() bool { return os.Getenv("DRAGOMAN_SOAK") != "" }

// A stage is three replicas with one MCP server and one model, which are in this process
// and outlive them, and with the keys of three people.
type stage struct {
	*replicas.Fleet
	t testing.TB
	// tools is the server, which counts what ran.
	tools *fakemcp.Server
	// ann calls tools; bea and olga may approve.
	ann, bea, olga string
	keys           string // the file of keys

	sent *sent
}

// sent is what a model was sent last.
type sent struct {
	mu   sync.Mutex
	body string
}

func (s *sent) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body
}

// A plan is what a stage is made of beside what all have.
type plan struct {
	config  string
	tools   []fakemcp.Tool
	polling bool
	count   int // zero means three
	notice  time.Duration
	// before stands between the gateways and the server; nil for nothing.
	before func(http.Handler) http.Handler
}

// staged starts a stage.
func staged(t testing.TB, p plan) *stage {
	t.Helper()
	s := &stage{t: t, sent: &sent{}, keys: filepath.Join(t.TempDir(), "keys.jsonl")}
	s.ann, s.bea, s.olga = s.key("ann", "tool:*", "model:*", "route:*"), s.key("bea", "approve:*"), s.key("olga", "approve:*")
	s.tools = fakemcp.New(fakemcp.Config{Tools: append(p.tools,
		fakemcp.Tool{Name: "count", Do: fakemcp.Counter}, fakemcp.Tool{Name: "echo"}, fakemcp.Tool{Name: "look"}, fakemcp.Tool{Name: "guarded", Do: fakemcp.Counter})})
	var handler http.Handler = s.tools
	if p.before != nil {
		handler = p.before(handler)
	}
	tools, model := httptest.NewServer(handler), httptest.NewServer(s.model())
	t.Cleanup(tools.Close)
	t.Cleanup(model.Close)
	s.Fleet = replicas.Start(t, replicas.Options{Count: p.count, Notice: p.notice, Polling: p.polling, Config: fmt.Sprintf(`auth: {keys_file: %q}
mcpServers: {files: {url: %q, effects: {read_only: [look]}}}
models: [{match: "*", base_url: %q}]
policy: [{allow: ["*"]}, {name: guarded, ask: ["files__guarded"]}]
log: {level: warn}
%s`, s.keys, tools.URL, model.URL+"/v1", p.config)})
	return s
}

// key makes a key that grants rights.
func (s *stage) key(name string, rights ...string) string {
	s.t.Helper()
	made, id := apikey.New()
	if err := apikey.Add(s.keys, apikey.Record{ID: id, Hash: apikey.Hash(made), User: name, Name: name, Rights: rights}); err != nil {
		s.t.Fatal(err)
	}
	return made
}

// model is the stand-in model, which keeps what it was sent last.
func (s *stage) model() http.Handler {
	stand := &rehearsal.Model{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.sent.mu.Lock()
		s.sent.body = string(body)
		s.sent.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		stand.ServeHTTP(w, r)
	})
}

// An answer is what came of a request.
type answer struct {
	status  int
	body    string
	replica string
	header  http.Header
}

// send sends a request, and returns an error where there is no answer.
func send(ctx context.Context, key, method, url, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(b), res.Header.Get("X-Replica"), res.Header}, err
}

// do sends a request that has to be answered with 200.
func (s *stage) do(key, method, url, body string, header ...string) answer {
	s.t.Helper()
	a, err := send(s.t.Context(), key, method, url, body, header...)
	if err != nil || a.status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s, %v", method, url, a.status, a.body, err)
	}
	return a
}

// call is the body of a direct call of a tool.
func call(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s,"tool_call_id":"c","dialect":"openai"}`, tool, arguments)
}

// at reads a value out of JSON, by keys and numbers with dots between.
func at(t testing.TB, body, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			n := 0
			if _, err := fmt.Sscan(key, &n); err != nil || n >= len(in) {
				t.Fatalf("no %s in %s", path, body)
			}
			v = in[n]
		default:
			t.Fatalf("no %s in %s", path, body)
		}
	}
	return v
}

// eventually waits for what nobody tells us about.
func eventually(t testing.TB, what string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !happened(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// ledger opens what the replicas share, as a command does beside them.
func (s *stage) ledger() *ledger.Ledger {
	s.t.Helper()
	l, err := ledger.Open(context.Background(), ledger.Config{Store: store.Config{URL: secret.New(s.Store)}}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	return l
}

// audited checks that the logs of all replicas hold together, and returns all records.
func (s *stage) audited(l *ledger.Ledger) (audit.Check, []audit.Record) {
	s.t.Helper()
	check, err := l.Audit.Verify(s.t.Context())
	if err != nil {
		s.t.Errorf("the audit logs do not hold together: %v", err)
	}
	records, err := l.Audit.Find(s.t.Context(), audit.Filter{})
	if err != nil {
		s.t.Fatal(err)
	}
	return check, records
}
