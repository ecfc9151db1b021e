package main

import (
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

// Issue 17, D7: names on the command line stand beside those of the configuration.
func TestHostAllowedOnTheCommandLine(t *testing.T) {
	file := config.Default()
	configured := []string{"gateway.test"}
	file.AllowedHosts = configured
	if err := listenAs(file, "0.0.0.0:0", []string{"host.docker.internal", "dragoman"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"gateway.test", "host.docker.internal", "dragoman"}; !slices.Equal(file.AllowedHosts, want) || file.Listen != "0.0.0.0:0" {
		t.Errorf("allowed %v at %s", file.AllowedHosts, file.Listen)
	}
	if err := listenAs(file, "", nil); err != nil || file.Listen != "0.0.0.0:0" {
		t.Errorf("without flags: %v, %s", err, file.Listen)
	}
}
