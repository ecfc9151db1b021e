package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// passed is a proxy before a gateway that counts what passes, as "GET /v1/responses".
type passed struct {
	mu   sync.Mutex
	what map[string]int
	url  string
}

// pass starts one.
func pass(t *testing.T, g *gateway) *passed {
	t.Helper()
	to, err := url.Parse(g.Root)
	if err != nil {
		t.Fatal(err)
	}
	p := &passed{what: map[string]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.what[r.Method+" "+r.URL.Path]++
		p.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *passed) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.what[what]
}

// TestCodexOverWebSocket: Codex that was told that the gateway has WebSockets asks over one
// alone: its tools and ours in the same turn, and a session that goes on.
func TestCodexOverWebSocket(t *testing.T) {
	t.Parallel()
	g, up, log := agentGateway(t)
	p := pass(t, g)
	c := startCodex(t, g, true)
	path := filepath.Join(c.home, "config.toml")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(written), g.Root, p.url)
	writeFile(t, path, strings.Replace(text, "wire_api = \"responses\"\n", "wire_api = \"responses\"\nsupports_websockets = true\n", 1))
	f := c.ask("SAY Let me look.\nCALL exec_command {\"cmd\":\"echo made\"}\nCALL tools__echo {\"n\":1}\nCALL mcp__left__echo {\"n\":2}\nTHEN\nCALL tools__again {\"n\":3}\nSAY Done.")
	if !slices.Equal(f.Texts, []string{"Let me look.", "Done."}) || len(f.Fails) != 0 {
		t.Errorf("Codex says %+v", f)
	}
	up.last().whole(t, 4)
	f = c.resume(f.Thread, "CALL tools__echo {\"n\":4}\nSAY Again.")
	if !slices.Equal(f.Texts, []string{"Again."}) || len(f.Fails) != 0 {
		t.Errorf("Codex says %+v", f)
	}
	up.last().whole(t, 5)
	if got := ran(t, log); !slices.Equal(got, []string{"echo", "again", "echo"}) {
		t.Errorf("of ours ran %s", got)
	}
	if opened, posted := p.count("GET /v1/responses"), p.count("POST /v1/responses"); opened == 0 || posted != 0 {
		t.Errorf("%d WebSockets and %d posts", opened, posted)
	}
}
