package mcp

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A gathering answers calls once as many run at a time as it waits for.
type gathering struct {
	*toolsettest.Inner
	wait sync.WaitGroup
}

func (g *gathering) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	g.wait.Done()
	g.wait.Wait()
	return dragoman.Result{Content: json.RawMessage(`{"content":[]}`), Ran: dragoman.RanYes}, nil
}

// TestManyCallsAtATime: one client may stand for many people, as another gateway does, and
// has all its calls made in both eras. They wait their turn where they run, and not here.
func TestManyCallsAtATime(t *testing.T) {
	const many = 200
	for name, transport := range served {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				g := &gathering{Inner: toolsettest.NewInner()}
				g.wait.Add(many)
				var wire sdk.Transport
				switch to := transport(t, g).(type) {
				case HTTP:
					wire = &sdk.StreamableClientTransport{Endpoint: to.URL}
				case Pipe:
					wire = &sdk.IOTransport{Reader: to.Reader, Writer: to.Writer}
				}
				client := sdk.NewClient(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
				s, err := client.Connect(t.Context(), wire, &sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				var calls sync.WaitGroup
				for range many {
					calls.Go(func() {
						if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: toolsettest.Echo}); err != nil {
							t.Error(err)
							g.wait.Done() // it is not waited for
						}
					})
				}
				calls.Wait()
			})
		}
	}
}
