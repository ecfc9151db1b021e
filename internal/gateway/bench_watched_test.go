package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe/telemetry"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/cputime"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// What it costs a chat to be watched, by turns in one process, so that a machine that is busy
// is so for all: CPU time and allocations of a request, and what each way adds to it, in rows
// a2 (a tool is offered) and d (one is called) of bench/. The time has the model, the server
// and the client in it, which are in this process too: what is added is what counts.
//
//	go test ./internal/gateway -run - -bench WatchedChat -benchtime 40x
func BenchmarkWatchedChat(b *testing.B) {
	for _, row := range []struct{ name, first string }{
		{"a2", `{"role":"assistant","content":"It is sunny."},"finish_reason":"stop"`},
		{"d", `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"lookup","arguments":"{\"message\":\"x\"}"}}]},"finish_reason":"tool_calls"`},
	} {
		b.Run(row.name, func(b *testing.B) { benchWatchedChat(b, row.first) })
	}
}

func benchWatchedChat(b *testing.B, first string) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		choice := first
		if bytes.Contains(body, []byte(`"role":"tool"`)) {
			choice = `{"role":"assistant","content":"It is sunny."},"finish_reason":"stop"`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":`+choice+`}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	}))
	defer model.Close()
	tools := httptest.NewServer(fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "lookup", Do: fakemcp.Big, Size: 1024}}}))
	defer tools.Close()
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	changes := []struct {
		name   string
		change func(*telemetry.Config)
	}{
		{name: "off", change: func(c *telemetry.Config) { c.Metrics.Off, c.Traces.Off = true, true }},
		{name: "metrics", change: func(*telemetry.Config) {}},
		{name: "traces-of-1%", change: func(c *telemetry.Config) { c.Metrics.Off, c.Endpoint, c.Traces.Sample = true, collector.URL, 1 }},
		{name: "everything", change: func(c *telemetry.Config) { c.Endpoint = collector.URL }},
	}
	var ways []*way
	for _, c := range changes {
		file := config.Default()
		c.change(&file.Telemetry)
		file.MCPServers = map[string]servers.Config{"bench": {URL: tools.URL + "/mcp"}}
		file.Models = []upstream.Model{{Match: "*", BaseURL: model.URL + "/v1"}}
		g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		if err := g.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		ways = append(ways, &way{name: c.name, handler: g.Handler()})
	}
	byTurns(b, ways)
}

// A way is one of several ways to serve the same requests.
type way struct {
	name    string
	handler http.Handler
	settle  func()          // does what a batch has left to do; nil for nothing
	took    []time.Duration // of a request, by batch
	allocs  uint64
}

// byTurns measures chats in each way by turns, and reports CPU time, and what each way adds to
// the first one.
func byTurns(b *testing.B, ways []*way) {
	const batch = 200
	var before, after runtime.MemStats
	for round := 0; b.Loop(); round++ {
		for turn := range ways {
			way := ways[(turn+round)%len(ways)]
			runtime.GC()
			runtime.ReadMemStats(&before)
			took := cputime.Of(func() {
				for range batch {
					asksOnce(b, way.handler)
				}
				if way.settle != nil {
					way.settle()
				}
			})
			runtime.ReadMemStats(&after)
			if round > 0 || b.N == 1 { // the first is for connections
				way.took = append(way.took, took/batch)
				way.allocs += (after.Mallocs - before.Mallocs) / batch
			}
		}
	}
	var off, allocs float64
	for i, way := range ways {
		slices.Sort(way.took)
		// The quicker half: what is slower was disturbed.
		us, n := 0.0, max(len(way.took)/2, 1)
		for _, d := range way.took[:n] {
			us += float64(d.Nanoseconds()) / 1000 / float64(n)
		}
		each := float64(way.allocs) / float64(max(len(way.took), 1))
		if i == 0 {
			off, allocs = us, each
		}
		b.ReportMetric(us, way.name+"-cpu-µs")
		b.ReportMetric(us-off, way.name+"-added-µs")
		b.ReportMetric(each-allocs, way.name+"-added-allocs")
	}
}

const chatOnce = `{"model":"m","messages":[{"role":"user","content":"What is the weather?"}]}`

func asksOnce(b *testing.B, h http.Handler) {
	req := httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(chatOnce))
	req.Header.Set("Content-Type", "application/json")
	w := &discards{header: http.Header{}}
	h.ServeHTTP(w, req)
	if w.status > http.StatusOK || w.size < 100 {
		b.Fatal(fmt.Sprint(w.status, w.size))
	}
}

// BenchmarkHistory is a chat that goes on after a thousand messages, with a tool offered; with
// a store in it, as with keys, what servers' tools said in it is looked for there. The time
// has the model in it, which reads all of it and says a sentence.
//
//	go test ./internal/gateway -run - -bench History
func BenchmarkHistory(b *testing.B) {
	b.Run("alone", func(b *testing.B) { benchHistory(b, func(*config.File) {}) })
	b.Run("store", func(b *testing.B) {
		benchHistory(b, func(file *config.File) {
			file.Store.Path, file.Policy = filepath.Join(b.TempDir(), "store.db"), []policy.Rule{{Allow: []string{"*"}}}
		})
	})
}

func benchHistory(b *testing.B, configure func(*config.File)) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"It is sunny."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	}))
	defer model.Close()
	tools := httptest.NewServer(fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "lookup"}}}))
	defer tools.Close()
	file := config.Default()
	file.MCPServers = map[string]servers.Config{"bench": {URL: tools.URL + "/mcp"}}
	file.Models = []upstream.Model{{Match: "*", BaseURL: model.URL + "/v1"}}
	configure(file)
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	if err := g.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	h := g.Handler()
	var body strings.Builder
	body.WriteString(`{"model":"m","messages":[{"role":"system","content":"You are an assistant."}`)
	for n := range 500 {
		fmt.Fprintf(&body, `,{"role":"user","content":"Question %d: what is the weather, and why?"},{"role":"assistant","content":"Answer %d: %s"}`, n, n, strings.Repeat(`it is sunny, and \"nobody\" knows why. `, 7))
	}
	body.WriteString(`,{"role":"user","content":"What is the weather?"}]}`)
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(body.String()))
		req.Header.Set("Content-Type", "application/json")
		w := &discards{header: http.Header{}}
		h.ServeHTTP(w, req)
		if w.status > http.StatusOK || w.size < 100 {
			b.Fatal(w.status, w.size)
		}
	}
}
