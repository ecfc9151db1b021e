package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// A spanCollector takes spans by OTLP, of everybody who has some.
type spanCollector struct {
	*testing.T
	url   string
	mu    sync.Mutex
	spans []sentSpan
}

// A sentSpan is one, with the service that sentSpan it.
type sentSpan struct {
	*tracepb.Span
	service string
}

func (s sentSpan) id() string     { return hex.EncodeToString(s.SpanId) }
func (s sentSpan) trace() string  { return hex.EncodeToString(s.TraceId) }
func (s sentSpan) parent() string { return hex.EncodeToString(s.ParentSpanId) }

func collect(t *testing.T) *spanCollector {
	c := &spanCollector{T: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *spanCollector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if r.URL.Path != "/v1/traces" || err != nil {
		return
	}
	if err := proto.Unmarshal(body, &data); err != nil {
		c.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range data.ResourceSpans {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans = append(c.spans, sentSpan{span, service})
			}
		}
	}
}

// of returns the spans of a service, in the order of their beginning.
func (c *spanCollector) of(service string) (all []sentSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.service == service {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b sentSpan) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return all
}

func names(spans []sentSpan) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

// A tracedServer is one whose tool remembers by which trace it was called.
type tracedServer struct {
	url string
	mu  sync.Mutex
	got []map[string]string
}

func (p *tracedServer) calls() []map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func probing(t *testing.T) *tracedServer {
	p := &tracedServer{}
	s := toolkit.NewServer(toolkit.Options{Service: "probe"})
	toolkit.Add(s, toolkit.Tool{
		Name: "probe_get_trace", Description: "Remembers by which trace it was called.", Examples: []toolkit.Example{{Ask: "Which trace?", Arguments: `{}`}},
		Hints: toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No},
	}, func(ctx context.Context, _ struct{}) (toolkit.Text, error) {
		r := toolkit.RequestFrom(ctx)
		meta, _ := r.SDK.Params.GetMeta()["traceparent"].(string)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.got = append(p.got, map[string]string{"meta": meta, "header": r.Header.Get("Traceparent")})
		return "remembered", nil
	})
	handler, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	p.url = server.URL + "/mcp"
	return p
}

// TestOneTraceFromClientToServer: a program under OpenTelemetry's own SDK asks a model, and
// what the gateway and a server do for it is in its trace: the trace goes through the header
// of the request, through ours to the server, and through _meta.
func TestOneTraceFromClientToServer(t *testing.T) {
	program, script := node(t, filepath.Join("clients", "otel.mjs"))
	node(t, filepath.Join("node_modules", "@opentelemetry", "sdk-node", "package.json"))
	c, p := collect(t), probing(t)
	g := start(t, nil, servers{"probe": {"url": p.url}}, with("telemetry", map[string]any{"endpoint": c.url}), environment("OTEL_BSP_SCHEDULE_DELAY=50")).ready()
	cmd := exec.CommandContext(patience.Context(t), program, script, "ask", "CALL probe_get_trace {}\nTHEN\nSAY done")
	cmd.Env = append(cleanEnv(t), "DRAGOMAN_BASE_URL="+g.Base, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url, "OTEL_SERVICE_NAME=client", "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var facts struct{ Trace, Content string }
	if err := json.Unmarshal(out, &facts); err != nil {
		t.Fatalf("%s%s: %v", out, &stderr, err)
	}
	if err != nil || !strings.Contains(facts.Content, "done") || len(facts.Trace) != 32 {
		t.Fatalf("%s, %v: %s", out, err, &stderr)
	}
	g.until("the spans of the gateway", func() bool { return len(c.of("dragoman")) == 4 })
	client, ours := c.of("client"), c.of("dragoman")
	for _, s := range slices.Concat(client, ours) {
		if s.trace() != facts.Trace {
			t.Errorf("%s of %s is in the trace %s, not in %s", s.Name, s.service, s.trace(), facts.Trace)
		}
	}
	if got := names(ours); !slices.Equal(got, []string{"invoke_agent dragoman", "chat rehearsal", "execute_tool probe_get_trace", "chat rehearsal"}) {
		t.Fatalf("the gateway has the spans %q", got)
	}
	if !slices.ContainsFunc(client, func(s sentSpan) bool { return s.id() == ours[0].parent() }) {
		t.Errorf("the conversation is no part of what the client did: %q, parent %s", names(client), ours[0].parent())
	}
	want := "00-" + facts.Trace + "-" + ours[2].id() + "-01"
	if got := p.calls(); len(got) != 1 || got[0]["meta"] != want || got[0]["header"] != want {
		t.Errorf("the server was told %v, want %s by _meta and by the header", got, want)
	}
}

// TestTerminalIsTraced: what a person does at a terminal is in the trace that the environment
// names, from there to the server.
func TestTerminalIsTraced(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"call", "probe_get_trace"}, []string{"execute_tool probe_get_trace"}},
		{[]string{"chat", "CALL probe_get_trace {}\nTHEN\nSAY done"}, []string{"invoke_agent dragoman", "chat rehearsal", "execute_tool probe_get_trace", "chat rehearsal"}},
	} {
		c, p := collect(t), probing(t)
		config := filepath.Join(t.TempDir(), "dragoman.yaml")
		writeFile(t, config, "mcpServers: {probe: {url: "+p.url+"}}\n")
		cmd := exec.CommandContext(patience.Context(t), binary(t), append(test.args, "--config", config)...)
		cmd.Env = append(cleanEnv(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url, "TRACEPARENT=00-"+trace+"-"+parent+"-01")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", test.args, err, out)
		}
		got := c.of("dragoman")
		if !slices.Equal(names(got), test.want) || got[0].trace() != trace || got[0].parent() != parent {
			t.Errorf("%q has the spans %q", test.args, names(got))
		}
		if calls := p.calls(); len(calls) != 1 || !strings.HasPrefix(calls[0]["meta"], "00-"+trace+"-") {
			t.Errorf("%q: the server was told %v", test.args, calls)
		}
	}
}
