package toolkit

import (
	"context"
	"errors"
	"io"
	"testing"
)

func TestPipeEnds(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
	for _, tt := range []struct {
		name string
		end  func(s *Server, r io.Closer, w io.Closer, cancel context.CancelFunc)
	}{
		{"writer closed", func(_ *Server, _, w io.Closer, _ context.CancelFunc) { w.Close() }},
		{"reader closed", func(_ *Server, r, _ io.Closer, _ context.CancelFunc) { r.Close() }},
		{"context cancelled", func(_ *Server, _, _ io.Closer, cancel context.CancelFunc) { cancel() }},
		{"server closed", func(s *Server, _, _ io.Closer, _ context.CancelFunc) { s.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewServer(Options{Name: "test-mcp-server"})
			defer s.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, w := s.Pipe(ctx)
			if _, err := io.WriteString(w, ping); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, 1)
			if _, err := io.ReadFull(r, answer); err != nil || answer[0] != '{' {
				t.Fatalf("answer starts with %q, %v", answer, err)
			}

			tt.end(s, r, w, cancel)
			if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("read after the end: %v", err)
			}
			s.pipes.Wait() // hangs if the session did not notice
			if _, err := io.WriteString(w, ping); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("write after the end: %v, want %v", err, io.ErrClosedPipe)
			}
		})
	}
}
