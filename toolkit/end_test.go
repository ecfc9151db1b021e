package toolkit

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// waiting adds a tool that waits for its context to end, and returns what tells that it
// runs, and then why its context ended.
func waiting(s *Server) (running chan struct{}, cause chan error) {
	running, cause = make(chan struct{}), make(chan error, 1)
	Add(s, Tool{Name: "watch_door", Description: "Waits.", Hints: reading}, func(ctx context.Context, _ struct{}) (Text, error) {
		close(running)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return "", ctx.Err()
	})
	return running, cause
}

// TestCallsEnd ends the server, and the only stream to a client, while a function runs.
func TestCallsEnd(t *testing.T) {
	for _, tt := range []struct {
		name, path, version string
		client              bool // it leaves, and nobody closes the server
	}{
		{name: "http, legacy", path: "/mcp", version: legacy},
		{name: "http, modern", path: "/mcp", version: modern},
		{name: "sse", path: "/sse", version: legacy},
		{name: "sse, by the client", path: "/sse", version: legacy, client: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, Options{})
			running, cause := waiting(s)
			routes, err := s.Routes()
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(routes)
			t.Cleanup(web.Close)
			var via sdk.Transport = &sdk.StreamableClientTransport{Endpoint: web.URL + tt.path}
			if tt.path == "/sse" {
				via = &sdk.SSEClientTransport{Endpoint: web.URL + tt.path}
			}
			session := connect(t, via, tt.version, nil)
			go func() { _, _ = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "watch_door"}) }()
			<-running
			if tt.client {
				web.CloseClientConnections()
			} else if err := s.Close(); err != nil {
				t.Error(err)
			}
			if why := <-cause; errors.Is(why, errTimeout) {
				t.Errorf("the function ran until its time was over")
			}
		})
	}
}
