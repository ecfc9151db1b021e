package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/lint"
)

// sdkServer carries a planted server on the official Go SDK. What the SDK panics at is an
// error.
func sdkServer(p *planted) (server *sdk.Server, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	var info sdk.Implementation
	if err := json.Unmarshal(marshal(p.spec.Info), &info); err != nil {
		return nil, err
	}
	capabilities := &sdk.ServerCapabilities{}
	if len(p.resources) > 0 {
		capabilities.Resources = &sdk.ResourceCapabilities{}
	}
	server = sdk.NewServer(&info, &sdk.ServerOptions{Instructions: p.spec.Instructions, Capabilities: capabilities})
	for _, t := range p.tools {
		var tool sdk.Tool
		if err := json.Unmarshal(marshal(t.definition), &tool); err != nil {
			return nil, err
		}
		server.AddTool(&tool, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			m, failed := p.call(r.Params.Name, r.Params.Arguments, func(n float64) {
				if token := r.Params.GetProgressToken(); token != nil {
					_ = r.Session.NotifyProgress(context.WithoutCancel(ctx), &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Total: 1}) // the client may be gone
				}
			})
			if failed != nil {
				return nil, &jsonrpc.Error{Code: int64(failed.Code), Message: failed.Message}
			}
			var result sdk.CallToolResult
			return &result, json.Unmarshal(marshal(m), &result)
		})
	}
	for _, d := range p.listPrompts() {
		var prompt sdk.Prompt
		if err := json.Unmarshal(marshal(d), &prompt); err != nil {
			return nil, err
		}
		server.AddPrompt(&prompt, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			m, failed := p.getPrompt(r.Params.Name)
			if failed != nil {
				return nil, &jsonrpc.Error{Code: int64(failed.Code), Message: failed.Message}
			}
			var result sdk.GetPromptResult
			return &result, json.Unmarshal(marshal(m), &result)
		})
	}
	server.AddReceivingMiddleware(p.lists)
	return server, nil
}

// lists answers what changes while it runs, and what the SDK would sort.
func (p *planted) lists(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		if err != nil && method != "resources/read" {
			return result, err
		}
		switch result := result.(type) {
		case *sdk.ListToolsResult:
			client := ""
			if s, ok := r.GetSession().(*sdk.ServerSession); ok && s.InitializeParams() != nil && s.InitializeParams().ClientInfo != nil {
				client = s.InitializeParams().ClientInfo.Name
			}
			result.Tools = nil
			return result, json.Unmarshal(marshal(p.listTools(client)), &result.Tools)
		case *sdk.ListResourcesResult:
			result.Resources = nil
			return result, json.Unmarshal(marshal(p.listResources()), &result.Resources)
		}
		if params, ok := r.GetParams().(*sdk.ReadResourceParams); ok {
			m, failed := p.readResource(params.URI)
			if failed != nil {
				return nil, &jsonrpc.Error{Code: int64(failed.Code), Message: failed.Message}
			}
			read := &sdk.ReadResourceResult{}
			if was, ok := result.(*sdk.ReadResourceResult); ok && was != nil {
				read = was
			}
			return read, json.Unmarshal(marshal(m), read)
		}
		return result, err
	}
}

// sdkTarget reaches a planted server on the Go SDK.
func sdkTarget(t *testing.T, p *planted, web bool) lint.Target {
	server, err := sdkServer(p)
	if err != nil {
		t.Fatalf("the SDK does not take it: %v", err)
	}
	if web {
		h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
			//lint:ignore SA1019 servers of today have it
			Stateless: p.modern, CrossOriginProtection: http.NewCrossOriginProtection(),
		})
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		t.Cleanup(func() { close(p.stopped) }) // before, or that waits for ever
		return lint.Target{URL: web.URL}
	}
	return lint.Target{Legacy: !p.modern, Pipe: func(ctx context.Context) (io.ReadCloser, io.WriteCloser, error) {
		out, outEnd := io.Pipe()
		inEnd, in := io.Pipe()
		_, err := server.Connect(context.WithoutCancel(ctx), &sdk.IOTransport{Reader: inEnd, Writer: outEnd}, nil)
		return out, in, err
	}}
}
