package servers

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestAsksOld: who runs a server whose tool asks in the way of older clients is told once what lets
// it, be it SDKs' own refusal or somebody's result. Nothing is said of other failures, nor where the
// older era is spoken.
func TestAsksOld(t *testing.T) {
	const hint = "era: legacy"
	failing := func(text string, era fakemcp.Era) *fakemcp.Server {
		return fakemcp.New(fakemcp.Config{Era: era, Tools: []fakemcp.Tool{{
			Name: "ask", Do: fakemcp.Fixed, Result: json.RawMessage(`{"content":[{"type":"text","text":"` + text + `"}],"isError":true}`),
		}}})
	}
	official := sdk.NewServer(&sdk.Implementation{Name: "asker", Version: "1"}, nil)
	sdk.AddTool(official, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
		_, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Your name?"})
		return nil, nil, err
	})
	for name, c := range map[string]struct {
		server http.Handler
		warned int
	}{
		"the official SDK":  {sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return official }, &sdk.StreamableHTTPOptions{Stateless: true}), 1},
		"a method":          {failing("No way to do sampling/createMessage here.", fakemcp.BothEras), 1},
		"another failure":   {failing("The disk is full.", fakemcp.BothEras), 0},
		"the era is legacy": {failing("No way to do sampling/createMessage here.", fakemcp.LegacyOnly), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var logged records
			s := openOne(t, Config{URL: web(t, c.server)}, Options{Logger: logged.logger()})
			var last dragoman.Result
			for range 2 {
				res, err := s.Call(t.Context(), dragoman.Call{Tool: list(t, s)["ask"], Arguments: json.RawMessage(`{}`), Can: dragoman.AskForm})
				last = res
				if err != nil || res.Problem == nil && !res.Failed {
					t.Fatalf("it did not fail: %v %s", err, res.Content)
				}
			}
			if got := logged.with(`"server":"it"`, `"tool":"ask"`, hint); len(got) != c.warned {
				t.Errorf("%d warnings, and not %d: %s", len(got), c.warned, last.Content)
			}
		})
	}
}
