package config_test

import (
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// TestAffinity: a session's own connection is in one replica, so that it needs a load
// balancer that knows it; nothing else does.
func TestAffinity(t *testing.T) {
	for _, c := range []struct {
		url      string
		share    servers.Share
		affinity bool
		refused  bool
	}{
		{"", servers.ShareSession, false, false},
		{"postgres://x@y/z", servers.ShareSession, false, true},
		{"postgres://x@y/z", servers.ShareSession, true, false},
		{"postgres://x@y/z", servers.ShareCaller, false, false},
	} {
		f := config.Default()
		f.Store.URL, f.Replicas.Affinity = secret.New(c.url), c.affinity
		f.MCPServers = map[string]servers.Config{"browser": {Command: "x", Share: c.share}}
		err := f.Validate()
		if (err != nil) != c.refused || err != nil && !(strings.Contains(err.Error(), "mcpServers.browser has share: session") && strings.Contains(err.Error(), "replicas.affinity: true")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
