package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// memory is (e): what an open, idle stream keeps, and what an idle gateway keeps.
func (b *bench) memory(ctx context.Context) error {
	configs := make(map[string]fakemcp.Config)
	for i := range 10 {
		configs[fmt.Sprintf("server%d", i)] = fakemcp.Config{Keep: -1, Count: 20}
	}
	s := setting{body: chatBody("hold", true), servers: stdioServers(configs)}
	idle, slope, err := b.held(ctx, s, 1000, 4000)
	if err != nil {
		return err
	}
	b.add(row{item: "e", what: "memory of an open stream, slope from 1,000 to 4,000", figures: slope, show: kibibytes, target: atMost(1.15, proxy)})
	b.add(row{item: "e", what: "memory at rest, 10 servers", figures: idle, show: mebibytes, target: limit(40<<20, mebibytes)})
	return nil
}

// memoryOfHistory is (e2): what an open, idle stream keeps whose request brought
// a long history.
func (b *bench) memoryOfHistory(ctx context.Context) error {
	body := historyBody("hold", true, 1000)
	_, slope, err := b.held(ctx, setting{body: body, servers: b.oneServer()}, 100, 400)
	if err != nil {
		return err
	}
	most := 1.5 * float64(len(body))
	b.add(row{item: "e2", what: fmt.Sprintf("the same with a history of %d KiB, from 100 to 400", len(body)>>10), figures: slope, show: kibibytes, target: limit(most, kibibytes)})
	return nil
}

// held measures the memory of everybody at rest, and how it grows with each open
// stream between two numbers of them. Each round has processes of its own, which
// have answered some requests before.
func (b *bench) held(ctx context.Context, s setting, few, many int) (idle, slope figures, err error) {
	for range min(b.rounds, 3) {
		// The request itself leaves its stream open, so another one waits for the
		// servers.
		quick := s
		quick.body = chatBody("plain", false)
		c, stop, err := b.contest(ctx, quick)
		if err != nil {
			return idle, slope, err
		}
		for who, p := range c.sides {
			if p == nil {
				continue
			}
			rss, more, err := grown(ctx, c, contender(who), s.body, few, many)
			if err != nil {
				stop()
				return idle, slope, fmt.Errorf("%s: %w", contenderNames[who], err)
			}
			idle[who], slope[who] = append(idle[who], rss), append(slope[who], more)
		}
		stop()
	}
	return idle, slope, nil
}

// grown is a process's memory at rest, and how much more it has for each stream.
func grown(ctx context.Context, c *contest, who contender, body []byte, few, many int) (idle, slope float64, err error) {
	p := c.sides[who]
	if idle, err = p.memory(); err != nil {
		return 0, 0, err
	}
	if _, _, err := throughput(ctx, clients, c.window/2, c.do[who]); err != nil {
		return 0, 0, err
	}
	var streams held
	defer streams.close()
	var at [2]float64
	for i, n := range []int{few, many} {
		if err := streams.open(ctx, p.base, body, n); err != nil {
			return 0, 0, err
		}
		if at[i], err = p.memory(); err != nil {
			return 0, 0, err
		}
	}
	return idle, (at[1] - at[0]) / float64(many-few), nil
}

// held are streams that are open.
type held struct {
	mu      sync.Mutex
	closers []func() error
}

// open opens streams until there are n.
func (h *held) open(ctx context.Context, base string, body []byte, n int) error {
	var wg sync.WaitGroup
	failed := make([]error, clients)
	missing := n - len(h.closers)
	for i := range clients {
		wg.Go(func() {
			for range missing/clients + min(1, max(0, missing%clients-i)) {
				c, err := open(ctx, base, body)
				if err != nil {
					failed[i] = err
					return
				}
				h.mu.Lock()
				h.closers = append(h.closers, c)
				h.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

func (h *held) close() {
	for _, c := range h.closers {
		c()
	}
}

// open begins a stream and leaves it open; close ends it.
func open(ctx context.Context, base string, body []byte) (close func() error, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if _, err := bufio.NewReaderSize(res.Body, 512).ReadSlice('\n'); err != nil {
		res.Body.Close()
		return nil, fmt.Errorf("the first event of a stream: %w", err)
	}
	return res.Body.Close, nil
}
