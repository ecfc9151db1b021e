package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// What a chat tells who watches, and what that costs by itself, where one trace of a hundred
// is sent: in rows a2 (a tool is offered) and d (one is called) of bench/. How little that is
// of a chat, a measure of whole chats (BenchmarkWatchedChat) is too coarse to say.
//
//	go test ./internal/observe/telemetry -run - -bench Sampled
func BenchmarkSampled(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	chat := func(ctx context.Context, conversation *observe.Span) {
		ctx, span := observe.Begin(ctx, observe.Chat)
		span.Text(observe.OperationName, observe.OpChat)
		span.Text(observe.RequestModel, "gpt")
		for _, each := range []*observe.Span{span, conversation} {
			each.Text(observe.ProviderName, "openai")
			each.Text(observe.ServerAddress, "api.example.com")
			each.Text(observe.RequestModel, "gpt")
		}
		observe.Carry(ctx, http.Header{})
		if span.Detailed() {
			span.Text(observe.ResponseID, "chatcmpl-1")
			span.Text(observe.ResponseModel, "gpt-1")
			span.Texts(observe.FinishReasons, "stop")
		}
		span.Int(observe.InputTokens, 10)
		span.Int(observe.OutputTokens, 5)
		span.End()
	}
	tool := func(ctx context.Context) {
		ctx, span := observe.Begin(ctx, observe.Tool)
		inner, request := observe.Begin(ctx, observe.ClientRequest)
		observe.Carry(inner, http.Header{})
		request.Text(observe.MethodName, "tools/call")
		request.Text(observe.Server, "s")
		request.Text(observe.ToolName, "lookup")
		request.Text(observe.ProtocolVersion, "2026-07-28")
		request.Text(observe.Transport, "tcp")
		request.End()
		span.Text(observe.OperationName, observe.OpExecuteTool)
		span.Text(observe.ToolCallID, "call_1")
		span.Text(observe.ToolName, "s__lookup")
		span.Text(observe.Server, "s")
		span.End()
	}
	for _, row := range []struct {
		name string
		said func(ctx context.Context)
	}{
		{"a2", func(ctx context.Context) {
			ctx, conversation := observe.Begin(ctx, observe.Conversation)
			chat(ctx, conversation)
			conversation.Text(observe.AgentName, observe.Agent)
			conversation.End()
		}},
		{"d", func(ctx context.Context) {
			ctx, conversation := observe.Begin(ctx, observe.Conversation)
			chat(ctx, conversation)
			tool(ctx)
			chat(ctx, conversation)
			conversation.Text(observe.AgentName, observe.Agent)
			conversation.End()
		}},
	} {
		for name, config := range map[string]Config{
			"metrics":            {Traces: Traces{Off: true}},
			"traces":             {Metrics: Metrics{Off: true}, Endpoint: collector.URL, Traces: Traces{Sample: 1}},
			"metrics and traces": {Endpoint: collector.URL, Traces: Traces{Sample: 1}},
		} {
			b.Run(row.name+"/"+name, func(b *testing.B) {
				t, err := New(config, Options{Model: func(name string) string { return name }})
				if err != nil {
					b.Fatal(err)
				}
				defer t.Close(context.Background())
				ctx := observe.With(b.Context(), t)
				b.ReportAllocs()
				for b.Loop() {
					row.said(ctx)
				}
			})
		}
	}
}
