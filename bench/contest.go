package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A contender is one of those that do the same work and take turns.
type contender int

// The contenders, in the order of the table's columns.
const (
	ours   contender = iota // the dragoman that is measured
	before                  // an older one; only where one was named
	null                    // the null gateway
	proxy                   // httputil.ReverseProxy
	direct                  // nobody in between; only at the MCP endpoint
	contenders
)

var contenderNames = [contenders]string{"dragoman", "before", "null", "proxy", "direct"}

// A setting is what contenders are set up with.
type setting struct {
	body    []byte         // of the chat request
	servers map[string]any // of the gateways
	dialect string         // of the upstream; empty: recognised
	more    map[string]any // of the gateways' configuration
	// arrived reports, given what the upstream got, that the gateway does what is
	// to be measured: its servers are connected. Nil waits for nothing.
	arrived func([]byte) bool
	// splice puts the tools that the upstream got into the null gateway's
	// requests; converse makes it do a whole conversation with a tool call.
	splice, converse bool
}

// A contest is a setting and everybody in it.
type contest struct {
	*bench
	setting
	sides [contenders]*process // nil for one that is not there
	do    [contenders]request  // one unit of work
	got   []byte               // what the upstream got last by ours
}

// request does one unit of work and reads the answer to its end.
type request func(context.Context) error

// contest starts everybody; stop ends them.
func (b *bench) contest(ctx context.Context, s setting) (c *contest, stop func(), err error) {
	c = &contest{bench: b, setting: s}
	stop = func() {
		for who := range contenders {
			b.stop(contenderNames[who])
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	for who, binary := range map[contender]string{ours: b.binary, before: b.older} {
		if binary == "" {
			continue
		}
		if c.sides[who], err = b.gateway(ctx, contenderNames[who], binary, s); err != nil {
			return nil, stop, err
		}
		got, err := b.settled(ctx, c.sides[who].base, s)
		if err != nil {
			return nil, stop, fmt.Errorf("%s: %w", contenderNames[who], err)
		}
		if who == ours {
			c.got = got
		}
	}
	env, err := c.nullEnv()
	if err != nil {
		return nil, stop, err
	}
	if c.sides[null], err = b.role(ctx, contenderNames[null], "null", env...); err != nil {
		return nil, stop, err
	}
	if c.sides[proxy], err = b.role(ctx, contenderNames[proxy], "proxy", envTarget+"="+b.upstream); err != nil {
		return nil, stop, err
	}
	for who, p := range c.sides {
		if p != nil {
			c.do[who] = func(ctx context.Context) error { return post(ctx, p.base, s.body) }
		}
	}
	return c, stop, nil
}

// settled sends the request until the upstream gets what was waited for, and
// returns that.
func (b *bench) settled(ctx context.Context, base string, s setting) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		got, err := b.upstreamGot(ctx, func() error { return post(ctx, base, s.body) })
		if err != nil {
			return nil, err
		}
		if s.arrived == nil || s.arrived(got) {
			return got, nil
		}
	}
}

// nullEnv tells the null gateway what it needs to know, from what the upstream got.
func (c *contest) nullEnv() ([]string, error) {
	env := []string{envTarget + "=" + c.upstream}
	file := func(name string, data []byte) error {
		path := filepath.Join(c.dir, name)
		env = append(env, name+"="+path)
		return os.WriteFile(path, data, 0o600)
	}
	if c.splice {
		var sent struct{ Tools json.RawMessage }
		if err := json.Unmarshal(c.got, &sent); err != nil || sent.Tools == nil {
			return nil, fmt.Errorf("the upstream got no tools: %w: %.500s", err, c.got)
		}
		if err := file(envTools, slices.Concat([]byte(`,"tools":`), sent.Tools, []byte("}"))); err != nil {
			return nil, err
		}
	}
	if c.converse {
		env = append(env, envServer+"="+c.mcp)
		if err := file(envSecond, c.got); err != nil {
			return nil, err
		}
	}
	return env, nil
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

// offersTools reports that there are that many tools in what the upstream got.
func offersTools(n int) func([]byte) bool {
	return func(got []byte) bool {
		var sent struct{ Tools []json.RawMessage }
		return json.Unmarshal(got, &sent) == nil && len(sent.Tools) == n
	}
}

// holdsResult reports that the upstream got the whole result of benchTool.
func holdsResult(got []byte) bool {
	return bytes.Contains(got, bytes.Repeat([]byte("x"), benchTool.Size))
}

// turns lets everybody take turns: one round to warm up, and then those that
// count.
func (c *contest) turns(measure func(contender) ([]float64, error)) ([]figures, error) {
	var all []figures
	for round := -1; round < c.rounds; round++ {
		for who, p := range c.sides {
			if p == nil {
				continue
			}
			values, err := measure(contender(who))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenderNames[who], err)
			}
			if all == nil {
				all = make([]figures, len(values))
			}
			for i, v := range values {
				if round >= 0 {
					all[i][who] = append(all[i][who], v)
				}
			}
		}
	}
	return all, nil
}

// rates measures how many requests so many clients get answered in a second, and
// the CPU time of each.
func (c *contest) rates(ctx context.Context, clients int) (rate, cost figures, err error) {
	all, err := c.turns(func(who contender) ([]float64, error) {
		var n int
		var took time.Duration
		spent, err := c.sides[who].spend(func() (err error) {
			n, took, err = throughput(ctx, clients, c.window, c.do[who])
			return err
		})
		return []float64{float64(n) / took.Seconds(), spent.Seconds() / float64(max(n, 1))}, err
	})
	if err != nil {
		return rate, cost, err
	}
	return all[0], all[1], nil
}

// latency measures how long n requests take, one after the other: half of them
// are answered in the first of the times, all but a hundredth in the second.
func (c *contest) latency(ctx context.Context, n int) (p50, p99 figures, err error) {
	all, err := c.turns(func(who contender) ([]float64, error) {
		sorted, err := latencies(ctx, n, c.do[who])
		if err != nil {
			return nil, err
		}
		return []float64{quantile(sorted, 0.5), quantile(sorted, 0.99)}, nil
	})
	if err != nil {
		return p50, p99, err
	}
	return all[0], all[1], nil
}
