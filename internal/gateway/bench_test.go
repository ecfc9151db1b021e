package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

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

// The same of the legacy era, which has sessions at both ends.
func BenchmarkEndpointLegacy(b *testing.B) {
	h := benchHandler(b, fakemcp.LegacyOnly, nil)
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	begun := httptest.NewRecorder()
	begin := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	begin.Header = header.Clone()
	h.ServeHTTP(begun, begin)
	header["Mcp-Session-Id"], header["Mcp-Protocol-Version"] = begun.Header()["Mcp-Session-Id"], []string{"2025-11-25"}
	b.Run("tools/call", func(b *testing.B) {
		benchRequest(b, h, header, `,"method":"tools/call","params":{"name":"lookup","arguments":{"message":"what is it?"}}}`)
	})
}

func benchEndpoint(b *testing.B, change func(*telemetry.Config)) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	h := benchHandler(b, fakemcp.BothEras, change)
	for _, r := range []struct{ method, name, params string }{
		{"tools/call", "lookup", `"name":"lookup","arguments":{"message":"what is it?"},`},
		{"tools/list", "", ""},
	} {
		header := http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {r.method},
		}
		if r.name != "" {
			header["Mcp-Name"] = []string{r.name}
		}
		b.Run(r.method, func(b *testing.B) {
			benchRequest(b, h, header, `,"method":"`+r.method+`","params":{`+r.params+meta+`}}`)
		})
	}
}

// benchHandler is a gateway before a server with a thousand tools.
func benchHandler(b *testing.B, era fakemcp.Era, change func(*telemetry.Config)) http.Handler {
	b.Helper()
	fake := httptest.NewServer(fakemcp.New(fakemcp.Config{Era: era, Keep: -1, Tools: []fakemcp.Tool{{Name: "lookup", Do: fakemcp.Big, Size: 1024}}, Count: 1000}))
	b.Cleanup(fake.Close)
	file := config.Default()
	if change != nil {
		change(&file.Telemetry)
	}
	file.MCPServers = map[string]servers.Config{"bench": {URL: fake.URL + "/mcp"}}
	g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }, Version: "test"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(g.Close)
	if err := g.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	return g.Handler()
}

// benchRequest makes one request again and again, with another id each time, as its session
// wants it. body is what follows the id.
func benchRequest(b *testing.B, h http.Handler, header http.Header, body string) {
	b.ReportAllocs()
	for id := 0; b.Loop(); id++ {
		req := httptest.NewRequest("POST", "http://localhost/mcp", io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+body)))
		req.Header = header
		w := &discards{header: http.Header{}}
		h.ServeHTTP(w, req)
		if w.status > http.StatusOK || w.size < 1000 {
			b.Fatalf("%d, %d bytes", w.status, w.size)
		}
	}
}

// discards is a client that looks at nothing.
type discards struct {
	header       http.Header
	status, size int
}

// As a connection does, so that setting deadlines costs what it does there.
func (*discards) SetReadDeadline(time.Time) error  { return nil }
func (*discards) SetWriteDeadline(time.Time) error { return nil }
func (*discards) EnableFullDuplex() error          { return nil }
func (*discards) Flush()                           {}

func (d *discards) Header() http.Header    { return d.header }
func (d *discards) WriteHeader(status int) { d.status = status }
func (d *discards) Write(b []byte) (int, error) {
	d.size += len(b)
	return len(b), nil
}
