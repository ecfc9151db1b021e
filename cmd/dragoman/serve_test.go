package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/stage/freeport"
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

// Where the gateway speaks HTTPS, all addresses that its log names do, and none has the
// secret of the console.
func TestAddressesOverTLS(t *testing.T) {
	file := config.Default()
	file.TLS.Cert, file.TLS.Key = "tls.crt", "tls.key"
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8787}
	signIn := "https://127.0.0.1:8787/console/sign-in#secret"
	want := []any{"base_url", "https://127.0.0.1:8787/v1", "mcp", "https://127.0.0.1:8787/mcp", "console", "https://127.0.0.1:8787/console/"}
	if got := addresses(file, at, signIn, false); !slices.Equal(got, want) {
		t.Errorf("the log names %v", got)
	}
	want[5] = signIn
	if got := addresses(file, at, signIn, true); !slices.Equal(got, want) {
		t.Errorf("a person is told %v", got)
	}
}

// A gateway whose database is away, such as after a start of the machine, ends with another
// status than one whose configuration cannot be used: the service is started again then
// (RestartPreventExitStatus in packaging/dragoman.service).
func TestStatusWithoutDatabase(t *testing.T) {
	away, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]int{
		fmt.Sprintf("store: {url: \"postgres://nobody@%s/none\", key: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}\n", away): exitFailed,
		"store: {url: none}\n": exitUsage,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run([]string{"serve", "--listen", "127.0.0.1:0", "--config", path}); got != want {
			t.Errorf("%s: status %d, want %d", text, got, want)
		}
	}
}
