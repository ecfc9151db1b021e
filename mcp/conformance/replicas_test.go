//go:build unix

package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/replicas"
)

func TestMain(m *testing.M) {
	if replicas.IsChild() {
		replicas.Main()
	}
	os.Exit(m.Run())
}

// TestReplicas runs the server's side of the official suite against three replicas of the
// gateway behind a load balancer that gives each request to the next of them, with the
// official SDK's everything-server behind in each era.
func TestReplicas(t *testing.T) {
	node, suite := programs(t)
	everything := everythingServer(t)
	for _, stateless := range []bool{false, true} {
		f := replicas.Start(t, replicas.Options{Config: fmt.Sprintf("mcp: {raw: true}\nmcpServers: {everything: {url: %q}}", start(t, everything, stateless))})
		for version := range required {
			t.Run(fmt.Sprintf("%s, behind stateless %t", version, stateless), func(t *testing.T) {
				judgeServer(t, node, suite, f.URL+"/mcp", version, stateless)
			})
		}
	}
}
