package toolkit

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// reading are the hints of a tool that only looks something up.
var reading = Hints{ReadOnly: Yes, Destructive: No, Idempotent: Yes, OpenWorld: No}

// A sink keeps what was written to it.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// newServer makes a server whose names need no prefix.
func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Service == "" && o.Name == "" {
		o.Name = "test-mcp-server"
	}
	s := NewServer(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func loggingTo(w *sink) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// dial connects the official client in one era.
func dial(t testing.TB, s *Server, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	r, w := s.Pipe(context.WithoutCancel(t.Context()))
	return connect(t, &sdk.IOTransport{Reader: r, Writer: w}, version, o)
}

func connect(t testing.TB, via sdk.Transport, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, o)
	session, err := client.Connect(t.Context(), via, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// An outcome is a result of a call, as a client sees it.
type outcome struct {
	text   string // of the text blocks, one on each line
	data   string // structuredContent; empty if there is none
	failed bool
}

func call(t testing.TB, session *sdk.ClientSession, tool, arguments string) outcome {
	t.Helper()
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	o := outcome{failed: res.IsError}
	for i, c := range res.Content {
		if i > 0 {
			o.text += "\n"
		}
		if text, ok := c.(*sdk.TextContent); ok {
			o.text += text.Text
		}
	}
	if res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		o.data = string(raw)
	}
	return o
}
