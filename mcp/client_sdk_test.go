package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// The official SDK is the peer of these tests, in both eras.

// misbehave makes the test binary a server that behaves like how, if there is
// such a thing on this system.
var misbehave = func(how string) {}

func TestMain(m *testing.M) {
	if how := os.Getenv("MCP_TEST_SERVER"); how != "" {
		misbehave(how)
		if how == "serve" {
			_ = (&Server{}).ServeLines(context.Background(), &toolsetHost{tools: toolsettest.NewInner()}, os.Stdin, os.Stdout)
			return
		}
		_ = newSDKServer().Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	os.Exit(leaktest.Run(m))
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
	s.AddTool(&sdk.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if a, ok := r.Params.InputResponses["q"].(*sdk.ElicitResult); ok {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(a.Action, a.Content)}}}, nil
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{
				Message: "How many?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
			}}}, nil
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
func sdkHTTP(t *testing.T, s *sdk.Server, o *sdk.StreamableHTTPOptions) string {
	t.Helper()
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	t.Cleanup(srv.Close)
	return srv.URL
}

func sdkSSE(t *testing.T, s *sdk.Server) string {
	t.Helper()
	srv := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestPeers does the same things with the SDK's server over every transport, in
// each era that the SDK offers there.
func TestPeers(t *testing.T) {
	stateless := &sdk.StreamableHTTPOptions{Stateless: true}
	jsonOnly := &sdk.StreamableHTTPOptions{JSONResponse: true}
	overHTTP := func(o *sdk.StreamableHTTPOptions) func(*testing.T, *sdk.Server) Transport {
		return func(t *testing.T, s *sdk.Server) Transport { return &HTTP{URL: sdkHTTP(t, s, o)} }
	}
	pipe := func(t *testing.T, s *sdk.Server) Transport { return sdkPipe(t, s) }
	command := func(t *testing.T, _ *sdk.Server) Transport {
		return &Command{New: self, Stderr: func(l string) { t.Log(l) }}
	}
	sse := func(t *testing.T, s *sdk.Server) Transport { return &HTTP{URL: sdkSSE(t, s), SSE: true} }
	sseFound := func(t *testing.T, s *sdk.Server) Transport { return &HTTP{URL: sdkSSE(t, s)} }
	for _, tc := range []struct {
		name      string
		transport func(*testing.T, *sdk.Server) Transport
		era, want Era
		can       abilities
	}{
		{"pipe", pipe, UnknownEra, Modern, abilities{true, true, true}},
		{"pipe legacy", pipe, Legacy, Legacy, abilities{true, true, true}},
		{"command", command, UnknownEra, Modern, abilities{true, true, false}},
		{"command legacy", command, Legacy, Legacy, abilities{true, true, false}},
		{"HTTP stateful", overHTTP(nil), UnknownEra, Legacy, abilities{true, true, true}},
		{"HTTP stateful legacy", overHTTP(nil), Legacy, Legacy, abilities{true, true, true}},
		{"HTTP stateful JSON", overHTTP(jsonOnly), UnknownEra, Legacy, abilities{false, true, true}},
		{"HTTP stateless", overHTTP(stateless), UnknownEra, Modern, abilities{true, true, true}},
		{"HTTP stateless legacy", overHTTP(stateless), Legacy, Legacy, abilities{true, false, false}},
		{"HTTP+SSE", sse, UnknownEra, Legacy, abilities{true, true, true}},
		{"HTTP+SSE found out", sseFound, UnknownEra, Legacy, abilities{true, true, true}},
		{"HTTP+SSE remembered", sseFound, Legacy, Legacy, abilities{true, true, true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSDKServer()
			c, err := Connect(t.Context(), tc.transport(t, s), &ClientOptions{
				Label: "peer", Era: tc.era, Can: dragoman.AskForm | dragoman.AskURL,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Era() != tc.want {
				t.Fatalf("era %s, want %s", c.Era(), tc.want)
			}
			testPeer(t, c, tc.can)
			if !tc.can.tell {
				return
			}
			// A subscription of the modern era may only just have begun.
			before, _ := c.List(t.Context())
			for i := range 600 {
				s.AddTool(&sdk.Tool{Name: fmt.Sprint("new", i), InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
				select {
				case <-before.Changed:
					after, _ := c.List(t.Context())
					if after.Tools != before.Tools && after.Tools.Len() > before.Tools.Len() {
						return
					}
					before = after // the entries came
				case <-time.After(100 * time.Millisecond):
				}
			}
			t.Error("nobody told that the tools changed")
		})
	}
}

// abilities are what the SDK can do over a transport: report progress, ask, and
// tell about changes.
type abilities struct{ progress, ask, tell bool }

func testPeer(t *testing.T, c *Client, can abilities) {
	if want := map[Era]string{Legacy: "2025-11-25", Modern: "2026-07-28"}[c.Era()]; c.ProtocolVersion() != want && c.ProtocolVersion() != "2024-11-05" {
		t.Errorf("version %s in the %s era", c.ProtocolVersion(), c.Era())
	}
	if c.Instructions() != "Be brief." {
		t.Errorf("instructions %q", c.Instructions())
	}
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dragoman.Tool{}
	for i, tool := range list.Tools.All() {
		byName[tool.Name] = &list.Tools.All()[i]
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
	if err != nil || can.progress && (len(got) != 3 || got[2] != (dragoman.Progress{Progress: 3, Total: 3, Message: "step"})) {
		t.Errorf("progress %v, %v", got, err)
	}
	if can.ask {
		call := dragoman.Call{Tool: byName["ask"], Can: dragoman.AskForm}
		loop := dragoman.Loop{Tools: c, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
			q := asks.Questions[0]
			o := object(q.Params)
			if q.Server != "peer" || string(o.Get("message")) != `"How many?"` || string(object(o.Get("requestedSchema")).Get("type")) != `"object"` {
				t.Errorf("question %+v", q)
			}
			return &dragoman.Answers{Replies: map[string]json.RawMessage{q.Key: json.RawMessage(`{"action":"accept","content":{"n":3}}`)}}, nil
		}}
		res, err = loop.Call(t.Context(), call)
		if err != nil || !strings.Contains(string(res.Content), "acceptmap[n:3]") {
			t.Errorf("ask: %s, %+v, %v", res.Content, res.Problem, err)
		}
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
	if l, err := c.list(ctx, "prompts/list"); err != nil || len(l.items) != 0 {
		t.Errorf("prompts: %v, %v", l, err)
	}
}
