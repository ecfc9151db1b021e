package gateway

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/session"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestShare: a server that callers do not share is greeted for each of them, when
// the first request comes; one that they do is greeted once.
func TestShare(t *testing.T) {
	var mu sync.Mutex
	greeted := map[string]int{}
	fake := func(label string, share servers.Share) servers.Config {
		inner := fakemcp.New(fakemcp.Config{Era: fakemcp.LegacyOnly, Tools: []fakemcp.Tool{{Name: "x"}}})
		return servers.Config{Share: share, URL: web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"initialize"`)) {
				mu.Lock()
				greeted[label]++
				mu.Unlock()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			inner.ServeHTTP(w, r)
		}))}
	}
	g := build(t, func(f *config.File) {
		f.MCPServers = map[string]servers.Config{"all": fake("all", servers.ShareAll), "own": fake("own", servers.ShareCaller)}
	})
	if err := g.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ann", "bob", "ann"} {
		open, err := g.Open(t.Context(), caller.Caller{ID: id, Grants: []string{"tool:*"}}, session.Want{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := open.Tools.List(t.Context())
		if err != nil || list.Tools.Exact("all__x") == nil || list.Tools.Exact("own__x") == nil {
			t.Fatalf("%s has %+v, %v", id, list, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if greeted["all"] != 1 || greeted["own"] != 2 {
		t.Errorf("the servers were greeted %v", greeted)
	}
}
