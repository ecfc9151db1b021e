package demo

import (
	"os"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

func newDemo(t *testing.T) *Demo {
	t.Helper()
	d := New(Options{})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// dial connects the official client through d's pipe.
func dial(t *testing.T, d *Demo, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	r, w := d.Pipe(t.Context())
	return connect(t, &sdk.IOTransport{Reader: r, Writer: w}, version, opts)
}

func connect(t *testing.T, via sdk.Transport, version string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	s, err := client.Connect(t.Context(), via, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	if got := s.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("protocol version %s, want %s", got, version)
	}
	return s
}
