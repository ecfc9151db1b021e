package main

import (
	"context"
	"errors"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// toolCall is (d): a conversation with one tool call: a model call, an MCP call,
// a model call. Through the proxy go the two model calls alone, made by the
// client.
func (b *bench) toolCall(ctx context.Context) error {
	// Names have a prefix where there are several servers.
	servers := stdioServers(map[string]fakemcp.Config{"other": {Keep: -1, Count: 1}})
	servers["bench"] = b.oneServer()["bench"]
	c, stop, err := b.contest(ctx, setting{body: chatBody("tool", false), servers: servers, arrived: holdsResult, converse: true})
	if err != nil {
		return err
	}
	defer stop()
	c.do[proxy] = func(ctx context.Context) error {
		base := c.sides[proxy].base
		return errors.Join(post(ctx, base, c.body), post(ctx, base, c.got))
	}
	rate, cost, err := c.rates(ctx, clients)
	if err != nil {
		return err
	}
	b.add(row{item: "d", what: "one tool call, whole conversation: CPU time, 16 clients", figures: cost, show: duration, target: atMost(2, null)})
	b.add(row{item: "d", what: "throughput, 16 clients", figures: rate, show: perSecond})
	p50, p99, err := c.latency(ctx, 300)
	if err != nil {
		return err
	}
	b.add(row{item: "d", what: "p50, 1 client", figures: p50, show: duration, target: atMost(1.5, null)})
	b.add(row{item: "d", what: "p99, 1 client", figures: p99, show: duration})
	return nil
}
