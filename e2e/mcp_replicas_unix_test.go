//go:build unix

package e2e

import (
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/pgtest"
	"github.com/dragoman-mcp/dragoman/internal/stage/replicas"
)

// TestMCPClientsOfReplicas lets the clients of [TestMCPClients] use three replicas on one
// PostgreSQL database, behind a load balancer that gives each request to the next of them.
// HTTP+SSE is left out: its stream is in one process, and so has to be what is posted to it.
func TestMCPClientsOfReplicas(t *testing.T) {
	all, legacy, modern := clientsServers(t)
	store := with("store", map[string]any{"url": pgtest.URL(t), "key": replicas.Key})
	balancer := replicas.NewBalancer()
	var urls []string
	var last *gateway
	for range 3 {
		last = start(t, nil, all, store, with("replicas", map[string]any{"notice": "100ms"})).ready()
		urls = append(urls, last.Root)
	}
	balancer.Use(urls)
	front := httptest.NewServer(balancer)
	t.Cleanup(front.Close)
	useClients(t, last, front.URL, []string{"legacy", "auto", "modern", "remote", "ai", "agents"}, legacy, modern)
}
