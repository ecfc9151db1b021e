//go:build unix

//lint:file-ignore SA1019 deprecated features (roots, sampling) are what is tested, too.

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/internal/stage/patience"
	"github.com/dragoman-mcp/dragoman/internal/stage/replicas"
)

// An asker is an MCP server of the legacy era whose tools ask, wait and tell.
type asker struct {
	*sdk.Server
	url     string
	waiting chan struct{} // gets something when wait begins, and when it is cancelled
}

func newAsker(t *testing.T) *asker {
	a := &asker{waiting: make(chan struct{}, 100), Server: sdk.NewServer(&sdk.Implementation{Name: "asker", Version: "1"}, &sdk.ServerOptions{
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})}
	a.tool("form", func(ctx context.Context, r *sdk.CallToolRequest) (string, error) {
		res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Which?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"which": map[string]any{"type": "string"}}}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res.Action, " ", res.Content["which"]), nil
	})
	a.tool("sample", func(ctx context.Context, r *sdk.CallToolRequest) (string, error) {
		res, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "Say something."}}}})
		if err != nil {
			return "", err
		}
		return res.Content.(*sdk.TextContent).Text, nil
	})
	a.tool("roots", func(ctx context.Context, r *sdk.CallToolRequest) (string, error) {
		res, err := r.Session.ListRoots(ctx, nil)
		if err != nil || len(res.Roots) == 0 {
			return "", err
		}
		return res.Roots[0].URI, nil
	})
	a.tool("steps", func(ctx context.Context, r *sdk.CallToolRequest) (string, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1)}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	a.tool("wait", func(ctx context.Context, _ *sdk.CallToolRequest) (string, error) {
		a.waiting <- struct{}{}
		<-ctx.Done()
		a.waiting <- struct{}{}
		return "", ctx.Err()
	})
	a.AddResource(&sdk.Resource{URI: "asker:thing", Name: "thing"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "asker:thing", Text: "a thing"}}}, nil
	})
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return a.Server }, nil))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	a.url = srv.URL
	return a
}

func (a *asker) tool(name string, do func(context.Context, *sdk.CallToolRequest) (string, error)) {
	a.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text, err := do(ctx, r)
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	})
}

// TestReplicasLegacyClient: a client of the legacy era is served by three replicas in turn
// as by one. It is asked, hears of progress and of what changes, and its cancellations reach
// the server.
func TestReplicasLegacyClient(t *testing.T) {
	a := newAsker(t)
	f := replicas.Start(t, replicas.Options{Config: fmt.Sprintf("mcpServers: {asker: {url: %q}}", a.url)})
	progress, changed, updated := make(chan float64, 100), make(chan struct{}, 100), make(chan string, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"which": "this"}}, nil
		},
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "something"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
		ResourceUpdatedHandler:      func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
	})
	client.AddRoots(&sdk.Root{URI: "file:///here", Name: "here"})
	ctx := patience.Context(t)
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: f.URL + "/mcp"}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"form": "accept this", "sample": "something", "roots": "file:///here", "steps": "done"}
	for range 4 { // so that requests and answers meet each replica
		for tool, text := range want {
			params := &sdk.CallToolParams{Name: tool}
			params.SetProgressToken(tool)
			res, err := s.CallTool(ctx, params)
			if err != nil || len(res.Content) != 1 || res.Content[0].(*sdk.TextContent).Text != text {
				t.Fatalf("%s: %+v, %v", tool, res, err)
			}
		}
	}
	if len(progress) == 0 {
		t.Error("nothing was heard of progress")
	}
	cancels(ctx, t, a, s)
	if err := s.Subscribe(ctx, &sdk.SubscribeParams{URI: "asker:thing"}); err != nil {
		t.Fatal(err)
	}
	if a.tool("more", nil); !waits(ctx, changed) {
		t.Error("the client was not told of another tool")
	}
	for range 2 { // the first may be told of because it was subscribed to at another replica
		if err := a.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: "asker:thing"}); err != nil || !waits(ctx, updated) {
			t.Errorf("the client was not told of the resource: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// cancels gives up a call that runs, and wants the server to be told.
func cancels(ctx context.Context, t *testing.T, a *asker, s *sdk.ClientSession) {
	t.Helper()
	for range 3 {
		short, cancel := context.WithCancel(ctx)
		given := make(chan error, 1)
		go func() {
			_, err := s.CallTool(short, &sdk.CallToolParams{Name: "wait"})
			given <- err
		}()
		if !waits(ctx, a.waiting) {
			t.Fatal("the call does not run")
		}
		cancel()
		<-given
		if !waits(ctx, a.waiting) {
			t.Fatal("the server was not told that a call was cancelled")
		}
	}
}

// waits reports whether something comes before ctx ends.
func waits[T any](ctx context.Context, from <-chan T) bool {
	select {
	case <-from:
		return true
	case <-ctx.Done():
		return false
	}
}

// TestReplicasEnd: a session that was ended at one replica is ended at all within two
// seconds, a forged one is none, and whoever answers what a dead replica asked is told to
// begin anew.
func TestReplicasEnd(t *testing.T) {
	a := newAsker(t)
	f := replicas.Start(t, replicas.Options{Config: fmt.Sprintf("mcpServers: {asker: {url: %q}}", a.url), Count: 2})
	do := func(replica int, method, session, body string) (int, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(patience.Context(t), method, f.Replica(replica).URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode, res.Header
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	_, h := do(0, "POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	session := h.Get("Mcp-Session-Id")
	for replica := range f.Count() {
		if got, _ := do(replica, "POST", session, ping); got != http.StatusOK {
			t.Errorf("replica %d: %d", replica, got)
		}
		if got, _ := do(replica, "POST", session[:len(session)-4]+"AAAA", ping); got != http.StatusNotFound {
			t.Errorf("replica %d, a forged session: %d", replica, got)
		}
	}
	if got, _ := do(0, "POST", session, `{"jsonrpc":"2.0","id":"n999.1","result":{}}`); got != http.StatusNotFound {
		t.Errorf("an answer to nobody: %d", got)
	}
	if got, _ := do(0, "DELETE", session, ""); got != http.StatusNoContent {
		t.Errorf("ending: %d", got)
	}
	if got, _ := do(0, "POST", session, ping); got != http.StatusNotFound {
		t.Errorf("where it was ended: %d", got)
	}
	for got := 0; got != http.StatusNotFound; { // until the test's own end, on a machine that has no time
		got, _ = do(1, "POST", session, ping)
	}
}
