package demo

import (
	"context"
	"errors"
	"io"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestPipeEnds(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	for _, tt := range []struct {
		name string
		end  func(d *Demo, r io.Closer, w io.Closer, cancel context.CancelFunc)
	}{
		{"writer closed", func(_ *Demo, _, w io.Closer, _ context.CancelFunc) { w.Close() }},
		{"reader closed", func(_ *Demo, r, _ io.Closer, _ context.CancelFunc) { r.Close() }},
		{"context cancelled", func(_ *Demo, _, _ io.Closer, cancel context.CancelFunc) { cancel() }},
		{"demo closed", func(d *Demo, _, _ io.Closer, _ context.CancelFunc) { d.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			defer d.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, w := d.Pipe(ctx)
			if _, err := io.WriteString(w, ping); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, 1)
			if _, err := io.ReadFull(r, answer); err != nil || answer[0] != '{' {
				t.Fatalf("answer starts with %q, %v", answer, err)
			}

			tt.end(d, r, w, cancel)
			if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("read after the end: %v", err)
			}
			d.pipes.Wait() // hangs if the session did not notice
			if _, err := io.WriteString(w, ping); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("write after the end: %v, want %v", err, io.ErrClosedPipe)
			}
		})
	}
}
