package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
)

// toolCall is (d): a conversation with one tool call against its parts, namely a
// model call through the bare proxy, a model call without it, and an MCP call.
func (b *bench) toolCall(ctx context.Context) error {
	body := chatBody("tool", false)
	other := stdioServers(map[string]fakemcp.Config{"other": {Keep: -1, Count: 1}})
	other["bench"] = map[string]any{"url": b.mcp + "/mcp"}
	us, err := b.ours(ctx, "call", other, body)
	if err != nil {
		return err
	}
	defer b.stop("call")
	result, err := b.secondRequest(ctx, us.base, body)
	if err != nil {
		return err
	}
	message := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lookup","arguments":{"message":"hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	p50, _, err := b.turns(ctx, 300,
		func(ctx context.Context) error { return post(ctx, us.base, body) },
		func(ctx context.Context) error { return post(ctx, b.proxy, body) },
		func(ctx context.Context) error { return post(ctx, b.upstream, result) },
		func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.mcp+"/mcp", bytes.NewReader(message))
			if err != nil {
				return err
			}
			h := req.Header
			h.Set("Content-Type", "application/json")
			h.Set("Accept", "application/json, text/event-stream")
			h.Set("Mcp-Protocol-Version", fakemcp.Modern)
			h.Set("Mcp-Method", "tools/call")
			h.Set("Mcp-Name", "lookup")
			return send(req)
		})
	if err != nil {
		return err
	}
	b.compare("d", "one tool call, whole conversation", p50[0], p50[1]+p50[2]+p50[3], duration, -1.3)
	b.rows = append(b.rows, row{item: "d", what: "  its parts: proxy, model, MCP",
		theirs: fmt.Sprintf("%s + %s + %s", duration(p50[1]), duration(p50[2]), duration(p50[3]))})
	return nil
}

// secondRequest runs the conversation and returns the request that holds the
// tool's result, so that the conversation is known to be what it is taken for.
func (b *bench) secondRequest(ctx context.Context, base string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		last, err := b.upstreamGot(ctx, func() error { return post(ctx, base, body) })
		if err != nil {
			return nil, err
		}
		if bytes.Contains(last, bytes.Repeat([]byte("x"), benchTool.Size)) {
			return last, nil
		}
		if bytes.Contains(last, []byte(`"role":"tool"`)) {
			return nil, fmt.Errorf("the tool's result did not reach the model: %.2000s", last)
		}
	}
}
