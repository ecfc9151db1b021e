package toolkit

import (
	"context"
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type benchIn struct {
	City   string `json:"city"`
	Nights int    `json:"nights,omitempty"`
}

type benchOut struct {
	City  string   `json:"city"`
	Rooms []string `json:"rooms"`
}

func benchAnswer(_ context.Context, in benchIn) (benchOut, error) {
	return benchOut{in.City, []string{"one", "two", "three"}}, nil
}

// BenchmarkCall compares a tool of the toolkit's with the same tool on the bare
// SDK, over the same in-memory transport: at most 1.15 times is the target.
func BenchmarkCall(b *testing.B) {
	s := newServer(b, Options{})
	Add(s, Tool{Name: "find_room", Description: "x", Hints: reading, Examples: []Example{{"x", `{"city":"x"}`}}}, benchAnswer)
	ours, err := s.SDK()
	if err != nil {
		b.Fatal(err)
	}
	audited := newServer(b, Options{Audit: &sink{}})
	Add(audited, Tool{Name: "find_room", Description: "x", Hints: reading, Examples: []Example{{"x", `{"city":"x"}`}}}, benchAnswer)
	withTrail, err := audited.SDK()
	if err != nil {
		b.Fatal(err)
	}
	bare := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	sdk.AddTool(bare, &sdk.Tool{Name: "find_room", Description: "x"}, func(ctx context.Context, _ *sdk.CallToolRequest, in benchIn) (*sdk.CallToolResult, benchOut, error) {
		out, err := benchAnswer(ctx, in)
		return nil, out, err
	})
	for _, tt := range []struct {
		name   string
		server *sdk.Server
	}{{"bare", bare}, {"toolkit", ours}, {"toolkit+audit", withTrail}} {
		b.Run(tt.name, func(b *testing.B) {
			near, far := sdk.NewInMemoryTransports()
			if _, err := tt.server.Connect(b.Context(), near, nil); err != nil {
				b.Fatal(err)
			}
			session := connect(b, far, legacy, nil)
			params := &sdk.CallToolParams{Name: "find_room", Arguments: json.RawMessage(`{"city":"Rome","nights":2}`)}
			b.ReportAllocs()
			for b.Loop() {
				if res, err := session.CallTool(b.Context(), params); err != nil || res.IsError {
					b.Fatal(res, err)
				}
			}
		})
	}
}

// BenchmarkNewServer keeps making a server cheap.
func BenchmarkNewServer(b *testing.B) {
	for b.Loop() {
		s := NewServer(Options{Name: "test-mcp-server"})
		Add(s, stayTool(), echo)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
