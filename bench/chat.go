package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// chatBody is a chat request of an ordinary size.
func chatBody(model string, stream bool) []byte {
	more := ""
	if stream {
		more = `,"stream":true`
	}
	return []byte(`{"model":"` + model + `"` + more + `,"temperature":0.2,"messages":[` +
		`{"role":"system","content":"You are an assistant who answers in a few words and does not make things up."},` +
		`{"role":"user","content":"What did a dragoman do, and why did both sides trust him?"}]}`)
}

// historyBody is a chat request with that many messages of a conversation before
// the question.
func historyBody(model string, stream bool, messages int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q,"stream":%t,"temperature":0.2,"messages":[{"role":"system","content":"You are an assistant."}`, model, stream)
	for i := range messages / 2 {
		fmt.Fprintf(&b, `,{"role":"user","content":"Question %d: what did a dragoman do, and why did both sides trust him?"},{"role":"assistant","content":"Answer %d: %s"}`, i, i, plainText)
	}
	b.WriteString(`,{"role":"user","content":"What did a dragoman do?"}]}`)
	return []byte(b.String())
}

// plain is (a): chat without tools.
func (b *bench) plain(ctx context.Context) error {
	// Without any servers the gateway would run its demo.
	return b.chat(ctx, "a", "plain chat", setting{
		body: chatBody("plain", false), servers: stdioServers(map[string]fakemcp.Config{"empty": {}}),
	}, atLeast(0.85, proxy), true)
}

// offered is (a2): chat while a tool is offered, which the model does not call.
// The proxy's client sends no tool.
func (b *bench) offered(ctx context.Context) error {
	return b.chat(ctx, "a2", "chat, a tool offered", setting{
		body: chatBody("plain", false), servers: b.oneServer(), arrived: offersTools(1), splice: true,
	}, atLeast(0.85, proxy), true)
}

// chat measures a request in one setting: throughput and CPU time of 16 clients,
// and the latency of one where that is wanted.
func (b *bench) chat(ctx context.Context, letter, what string, s setting, goal target, latency bool) error {
	c, stop, err := b.contest(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	rate, cost, err := c.rates(ctx, clients)
	if err != nil {
		return err
	}
	b.add(row{item: letter, what: what + ", 16 clients", figures: rate, show: perSecond, target: goal})
	b.add(row{item: letter, what: "CPU time of a request", figures: cost, show: duration})
	if !latency {
		return nil
	}
	p50, p99, err := c.latency(ctx, 500)
	if err != nil {
		return err
	}
	b.add(row{item: letter, what: "p50, 1 client", figures: p50, show: duration})
	b.add(row{item: letter, what: "p99, 1 client", figures: p99, show: duration})
	return nil
}

// clients is how many ask side by side.
const clients = 16

// oneServer is the MCP server with benchTool.
func (b *bench) oneServer() map[string]any {
	return map[string]any{"bench": map[string]any{"url": b.mcp + "/mcp"}}
}

// manyTools is (b): 300 tools that we offer, against a client that sends the very
// same 300 tools with each request through the proxy.
func (b *bench) manyTools(ctx context.Context) error {
	server, err := b.role(ctx, "mcp300", "mcp300")
	if err != nil {
		return err
	}
	defer b.stop("mcp300")
	c, stop, err := b.contest(ctx, setting{
		body: chatBody("plain", false), servers: map[string]any{"bench": map[string]any{"url": server.base + "/mcp"}},
		// An upstream that is not recognised gets 64 tools at most; vLLM takes any
		// number.
		dialect: "vllm", arrived: offersTools(300), splice: true,
	})
	if err != nil {
		return err
	}
	defer stop()
	c.do[proxy] = func(ctx context.Context) error { return post(ctx, c.sides[proxy].base, c.got) }
	rate, cost, err := c.rates(ctx, clients)
	if err != nil {
		return err
	}
	b.add(row{item: "b", what: fmt.Sprintf("300 tools (%d KiB), 16 clients", len(c.got)>>10), figures: rate, show: perSecond, target: atLeast(1.5, proxy)})
	b.add(row{item: "b", what: "CPU time of a request", figures: cost, show: duration})
	return nil
}

// history is (g): a conversation of 1,000 messages goes on, with a tool offered.
func (b *bench) history(ctx context.Context) error {
	body := historyBody("plain", false, 1000)
	c, stop, err := b.contest(ctx, setting{body: body, servers: b.oneServer(), arrived: offersTools(1), splice: true})
	if err != nil {
		return err
	}
	defer stop()
	rate, cost, err := c.rates(ctx, 4)
	if err != nil {
		return err
	}
	b.add(row{item: "g", what: fmt.Sprintf("1,000 messages (%d KiB), CPU time of a request", len(body)>>10), figures: cost, show: duration, target: atMost(8, proxy)})
	b.add(row{item: "g", what: "throughput, 4 clients", figures: rate, show: perSecond})
	return nil
}

// stdioServers are fake servers as children of the gateway.
func stdioServers(configs map[string]fakemcp.Config) map[string]any {
	all := make(map[string]any)
	for label, cfg := range configs {
		cfg.Lifetime = 30 * time.Minute
		path, args, env := fakemcp.Command(cfg)
		vars := make(map[string]string)
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			vars[name] = value
		}
		all[label] = map[string]any{"command": path, "args": append([]string{}, args...), "env": vars}
	}
	return all
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}
