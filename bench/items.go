package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
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

// side is one of two things that take turns.
type side struct {
	base string
	proc *process // whose CPU time counts; nil for none
	body []byte
}

func (b *bench) ours(ctx context.Context, name string, servers map[string]any, body []byte) (side, error) {
	p, err := b.gateway(ctx, name, servers)
	if err != nil {
		return side{}, err
	}
	return side{p.base, p, body}, nil
}

func (b *bench) theirs(body []byte) side { return side{b.proxy, b.procs["proxy"], body} }

// rates measures throughput and CPU time per request of both sides in turns.
func (b *bench) rates(ctx context.Context, sides [2]side) (rate, cost [2]float64, err error) {
	var rates, costs [2][]float64
	for round := -1; round < b.rounds; round++ {
		for i, s := range sides {
			var n int
			var took time.Duration
			spent, err := s.proc.spend(func() (err error) {
				n, took, err = throughput(ctx, 16, b.window, func(ctx context.Context) error { return post(ctx, s.base, s.body) })
				return err
			})
			if err != nil {
				return rate, cost, err
			}
			if round >= 0 { // the one before warms up
				rates[i] = append(rates[i], float64(n)/took.Seconds())
				costs[i] = append(costs[i], spent.Seconds()/float64(n))
			}
		}
	}
	for i := range sides {
		rate[i], cost[i] = median(rates[i]), median(costs[i])
	}
	return rate, cost, nil
}

// turns measures the latency of several things, one client, in turns, and returns
// their medians and 99th percentiles over the rounds.
func (b *bench) turns(ctx context.Context, n int, do ...func(context.Context) error) (p50, p99 []float64, err error) {
	halves, tails := make([][]float64, len(do)), make([][]float64, len(do))
	for round := -1; round < b.rounds; round++ {
		for i := range do {
			sorted, err := latencies(ctx, n, do[i])
			if err != nil {
				return nil, nil, err
			}
			if round >= 0 {
				halves[i] = append(halves[i], quantile(sorted, 0.5))
				tails[i] = append(tails[i], quantile(sorted, 0.99))
			}
		}
	}
	for i := range do {
		p50, p99 = append(p50, median(halves[i])), append(p99, median(tails[i]))
	}
	return p50, p99, nil
}

// plain is (a): chat without tools.
func (b *bench) plain(ctx context.Context) error {
	// Without any servers the gateway would run its demo.
	body := chatBody("plain", false)
	us, err := b.ours(ctx, "plain", stdioServers(map[string]fakemcp.Config{"empty": {}}), body)
	if err != nil {
		return err
	}
	defer b.stop("plain")
	them := b.theirs(body)
	rate, cost, err := b.rates(ctx, [2]side{us, them})
	if err != nil {
		return err
	}
	b.compare("a", "plain chat, 16 clients", rate[0], rate[1], perSecond, 0.85)
	b.compare("a", "  CPU time of a request", cost[0], cost[1], duration, 0)
	p50, p99, err := b.turns(ctx, 500,
		func(ctx context.Context) error { return post(ctx, us.base, body) },
		func(ctx context.Context) error { return post(ctx, them.base, body) })
	if err != nil {
		return err
	}
	b.compare("a", "  p50, 1 client", p50[0], p50[1], duration, 0)
	b.compare("a", "  p99, 1 client", p99[0], p99[1], duration, 0)
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

// manyTools is (b): 300 tools that we offer, against a client that sends the very
// same 300 tools with each request.
func (b *bench) manyTools(ctx context.Context) error {
	mcp, err := b.role(ctx, "mcp300", "mcp300")
	if err != nil {
		return err
	}
	defer b.stop("mcp300")
	// An upstream that is not recognised gets 64 tools at most; vLLM takes any
	// number.
	b.dialect = "vllm"
	defer func() { b.dialect = "" }()
	body := chatBody("plain", false)
	us, err := b.ours(ctx, "many", map[string]any{"bench": map[string]any{"url": mcp + "/mcp"}}, body)
	if err != nil {
		return err
	}
	defer b.stop("many")
	whole, err := b.upstreamGot(ctx, func() error { return post(ctx, us.base, body) })
	if err != nil {
		return err
	}
	var sent struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(whole, &sent); err != nil || len(sent.Tools) != 300 {
		return fmt.Errorf("the upstream got %d tools, not 300 (%v)", len(sent.Tools), err)
	}
	rate, cost, err := b.rates(ctx, [2]side{us, b.theirs(whole)})
	if err != nil {
		return err
	}
	b.compare("b", fmt.Sprintf("300 tools (%d KiB), 16 clients", len(whole)>>10), rate[0], rate[1], perSecond, 1.3)
	b.compare("b", "  CPU time of a request", cost[0], cost[1], duration, 0)
	return nil
}

// upstreamGot does something and returns what the upstream got last by it.
func (b *bench) upstreamGot(ctx context.Context, do func() error) ([]byte, error) {
	if _, err := get(ctx, b.upstream+"/keep"); err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	return get(ctx, b.upstream+"/last")
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
