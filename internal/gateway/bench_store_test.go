package gateway

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/storetest"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// BenchmarkStored is what keeping costs each kind of request: its time, and the statements
// that were run by the end, those of the log that nobody waits for among them. bench/STORE.md
// has figures.
func BenchmarkStored(b *testing.B) {
	fake := httptest.NewServer(fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "read", Do: fakemcp.Echo}, {Name: "write", Do: fakemcp.Echo}}}))
	defer fake.Close()
	key := storetest.Key
	for _, where := range []struct {
		name string
		set  func(b *testing.B, c *store.Config)
	}{
		{"nowhere", func(*testing.B, *store.Config) {}},
		{"file", func(b *testing.B, c *store.Config) { c.Path = filepath.Join(b.TempDir(), "bench.db") }},
		{"postgres", func(b *testing.B, c *store.Config) { c.URL, c.Key = secret.New(pgtest.URL(b)), key }},
		{"postgres+1ms", func(b *testing.B, c *store.Config) {
			cable, url := pgtest.Lay(b, pgtest.URL(b))
			cable.Delay(time.Millisecond)
			c.URL, c.Key = secret.New(url), key
		}},
	} {
		b.Run(where.name, func(b *testing.B) {
			file := config.Default()
			where.set(b, &file.Store)
			file.MCPServers = map[string]servers.Config{"bench": {URL: fake.URL + "/mcp", Effects: servers.Effects{ReadOnly: []string{"read"}}}}
			g, err := New(file, Options{Lookup: func(string) (string, bool) { return "", false }})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			if err := g.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
			h := g.Handler()
			for _, r := range []struct{ name, path, body string }{
				{"chat", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Say hello."}]}`},
				{"response", "/v1/responses", `{"model":"m","input":"Say hello."}`},
				{"read", "/v1/tools/call", `{"model":"m","name":"read","arguments":{"n":1},"tool_call_id":"c"}`},
				{"write", "/v1/tools/call", `{"model":"m","name":"write","arguments":{"n":1},"tool_call_id":"c"}`},
			} {
				b.Run(r.name, func(b *testing.B) { withStore(b, g, h, r.path, r.body) })
			}
		})
	}
}

func withStore(b *testing.B, g *Gateway, h http.Handler, path, body string) {
	before := statements(g)
	n := 0
	for b.Loop() {
		n++
		req := httptest.NewRequest("POST", "http://localhost"+path, io.NopCloser(bytes.NewReader([]byte(body))))
		req.Header.Set("Content-Type", "application/json")
		w := &discards{header: http.Header{}}
		h.ServeHTTP(w, req)
		if w.status > http.StatusOK || w.size < 50 {
			b.Fatalf("%d, %d bytes", w.status, w.size)
		}
	}
	if g.ledger != nil { // what was appended is there once something is that came later
		if err := g.ledger.DB.Write(b.Context(), func(*store.Tx) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(statements(g)-before)/float64(n), "statements/op")
}

func statements(g *Gateway) int64 {
	if g.ledger == nil {
		return 0
	}
	return g.ledger.DB.Statements()
}
