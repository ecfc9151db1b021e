package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/dragoman-mcp/dragoman"
)

// The official SDK is the peer of these tests, in both eras.

// misbehave makes the test binary a server that behaves like how, if there is
// such a thing on this system.
var misbehave = func(how string) {}

func TestMain(m *testing.M) {
	if how := os.Getenv("MCP_TEST_SERVER"); how != "" {
		misbehave(how)
		_ = newSDKServer().Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	goleak.VerifyTestMain(m)
}

// newSDKServer returns a server with a tool for each thing that is tried.
func newSDKServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, &sdk.ServerOptions{Instructions: "Be brief."})
	schema := json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","maximum":9007199254740993}}}`)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Returns its arguments.", InputSchema: schema},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content:           []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}},
				StructuredContent: r.Params.Arguments,
			}, nil
		})
	s.AddTool(&sdk.Tool{Name: "count", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			for i := range 3 {
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
					ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step",
				})
			}
			return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
		})
	s.AddTool(&sdk.Tool{Name: "fail", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no"}}}, nil
		})
	return s
}

// sdkPipe connects a server of the SDK by pipes.
func sdkPipe(t *testing.T, s *sdk.Server) *Pipe {
	t.Helper()
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, &sdk.IOTransport{Reader: theirIn, Writer: theirOut})
		_ = theirOut.Close()
	}()
	t.Cleanup(func() { cancel(); <-done })
	return &Pipe{Reader: ourIn, Writer: ourOut}
}

func self() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MCP_TEST_SERVER=1")
	return cmd
}

// sdkHTTP serves over HTTP. A stateless server of the SDK is modern too.
func sdkHTTP(t *testing.T, o *sdk.StreamableHTTPOptions) string {
	t.Helper()
	s := newSDKServer()
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	t.Cleanup(srv.Close)
	return srv.URL
}

func sdkSSE(t *testing.T) string {
	t.Helper()
	s := newSDKServer()
	srv := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestHTTPPeers(t *testing.T) {
	stateless := &sdk.StreamableHTTPOptions{Stateless: true}
	for name, tc := range map[string]struct {
		transport Transport
		era, want Era
	}{
		"stateful":            {&HTTP{URL: sdkHTTP(t, nil)}, UnknownEra, Legacy},
		"stateful legacy":     {&HTTP{URL: sdkHTTP(t, nil)}, Legacy, Legacy},
		"stateful JSON":       {&HTTP{URL: sdkHTTP(t, &sdk.StreamableHTTPOptions{JSONResponse: true})}, UnknownEra, Legacy},
		"stateless":           {&HTTP{URL: sdkHTTP(t, stateless)}, UnknownEra, Modern},
		"stateless legacy":    {&HTTP{URL: sdkHTTP(t, stateless)}, Legacy, Legacy},
		"HTTP+SSE":            {&SSE{URL: sdkSSE(t)}, UnknownEra, Legacy},
		"HTTP+SSE found out":  {&HTTP{URL: sdkSSE(t)}, UnknownEra, Legacy},
		"HTTP+SSE remembered": {&HTTP{URL: sdkSSE(t)}, Legacy, Legacy},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(t.Context(), tc.transport, &ClientOptions{Label: "peer", Era: tc.era})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Era() != tc.want {
				t.Fatalf("era %s, want %s", c.Era(), tc.want)
			}
			testPeer(t, c, name != "stateful JSON")
		})
	}
}

func TestPeers(t *testing.T) {
	for _, era := range []Era{UnknownEra, Legacy} {
		for name, transport := range map[string]func(*testing.T) Transport{
			"pipe":    func(t *testing.T) Transport { return sdkPipe(t, newSDKServer()) },
			"command": func(*testing.T) Transport { return &Command{New: self, Stderr: func(l string) { t.Log(l) }} },
		} {
			t.Run(name+"/"+era.String(), func(t *testing.T) {
				c, err := Connect(t.Context(), transport(t), &ClientOptions{Label: "peer", Era: era})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				want := Modern
				if era == Legacy {
					want = Legacy
				}
				if c.Era() != want {
					t.Fatalf("era %s, want %s", c.Era(), want)
				}
				testPeer(t, c, true)
			})
		}
	}
}

func testPeer(t *testing.T, c *Client, progress bool) {
	if want := map[Era]string{Legacy: "2025-11-25", Modern: "2026-07-28"}[c.Era()]; c.ProtocolVersion() != want && c.ProtocolVersion() != "2024-11-05" {
		t.Errorf("version %s in the %s era", c.ProtocolVersion(), c.Era())
	}
	if c.Instructions() != "Be brief." {
		t.Errorf("instructions %q", c.Instructions())
	}
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dragoman.Tool{}
	for i := range tools {
		byName[tools[i].Name] = &tools[i]
	}
	want := `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","maximum":9007199254740993}}}`
	if got := string(byName["echo"].InputSchema); got != want {
		t.Errorf("schema %s", got)
	}

	res, err := c.Call(t.Context(), dragoman.Call{Tool: byName["echo"], Arguments: json.RawMessage(`{"z":"é","a":9007199254740993}`)})
	if err != nil || res.Problem != nil || res.Failed {
		t.Fatalf("echo: %+v, %v", res, err)
	}
	if got := string(object(res.Content).Get("structuredContent")); got != `{"z":"é","a":9007199254740993}` {
		t.Errorf("echo returned %s", res.Content)
	}
	if res, err = c.Call(t.Context(), dragoman.Call{Tool: byName["fail"]}); err != nil || !res.Failed {
		t.Errorf("fail: %+v, %v", res, err)
	}
	var got []dragoman.Progress
	_, err = c.Call(t.Context(), dragoman.Call{Tool: byName["count"], Progress: func(p dragoman.Progress) { got = append(got, p) }})
	if err != nil || progress && (len(got) != 3 || got[2] != (dragoman.Progress{Progress: 3, Total: 3, Message: "step"})) {
		t.Errorf("progress %v, %v", got, err)
	}
	res, err = c.Call(t.Context(), dragoman.Call{Tool: &dragoman.Tool{Original: "none"}})
	if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeInvalidArguments {
		t.Errorf("unknown tool: %+v, %v", res, err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if l, err := c.List(ctx, "prompts/list"); err != nil || len(l.Items) != 0 {
		t.Errorf("prompts: %v, %v", l, err)
	}
}
