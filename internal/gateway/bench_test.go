package gateway

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/observe/telemetry"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// What the gateway itself spends on requests at the MCP endpoint, without a
// connection to the client. bench/ measures all of it.
func BenchmarkEndpoint(b *testing.B) { benchEndpoint(b, nil) }

// What it costs to be watched, of a call and of a list: not at all, by metrics, and by
// traces of one in a hundred and of all.
func BenchmarkWatched(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	for _, watched := range []struct {
		name   string
		change func(*telemetry.Config)
	}{
		{"off", func(c *telemetry.Config) { c.Metrics.Off = true }},
		{"metrics", func(*telemetry.Config) {}},
		{"traces of 1%", func(c *telemetry.Config) { c.Endpoint, c.Traces.Sample = collector.URL, 1 }},
		{"everything", func(c *telemetry.Config) { c.Endpoint = collector.URL }},
	} {
		b.Run(watched.name, func(b *testing.B) { benchEndpoint(b, watched.change) })
	}
}

func benchEndpoint(b *testing.B, change func(*telemetry.Config)) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	fake := httptest.NewServer(fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "lookup", Do: fakemcp.Big, Size: 1024}}, Count: 1000}))
	defer fake.Close()
	file := config.Default()
	if change != nil {
		change(&file.Telemetry)
	}
	file.MCPServers = map[string]servers.Config{"bench": {URL: fake.URL + "/mcp"}}
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	if err := g.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	h := g.Handler()
	for _, r := range []struct{ method, name, params string }{
		{"tools/call", "lookup", `"name":"lookup","arguments":{"message":"what is it?"},`},
		{"tools/list", "", ""},
	} {
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + r.method + `","params":{` + r.params + meta + `}}`)
		b.Run(r.method, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest("POST", "http://localhost/mcp", io.NopCloser(bytes.NewReader(body)))
				req.Header = http.Header{
					"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
					"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {r.method},
				}
				if r.name != "" {
					req.Header["Mcp-Name"] = []string{r.name}
				}
				w := &discards{header: http.Header{}}
				h.ServeHTTP(w, req)
				if w.status > http.StatusOK || w.size < 1000 {
					b.Fatalf("%d, %d bytes", w.status, w.size)
				}
			}
		})
	}
}

// discards is a client that looks at nothing.
type discards struct {
	header       http.Header
	status, size int
}

func (d *discards) Header() http.Header    { return d.header }
func (d *discards) WriteHeader(status int) { d.status = status }
func (d *discards) Write(b []byte) (int, error) {
	d.size += len(b)
	return len(b), nil
}
