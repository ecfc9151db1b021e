package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/fakemcp"
)

// memory is (e): what an open stream keeps, and what an idle gateway keeps. Each
// round has processes of its own, which have answered some requests before.
func (b *bench) memory(ctx context.Context) error {
	const streams = 1000
	configs := make(map[string]fakemcp.Config)
	for i := range 10 {
		configs[fmt.Sprintf("server%d", i)] = fakemcp.Config{Keep: -1, Count: 20}
	}
	servers := stdioServers(configs)
	var idle []float64
	var grown [2][]float64
	for range min(b.rounds, 3) {
		us, err := b.ours(ctx, "idle", servers, chatBody("hold", true))
		if err != nil {
			return err
		}
		rss, err := us.proc.memory()
		if err != nil {
			return err
		}
		idle = append(idle, rss)
		if _, err := b.role(ctx, "fresh", "proxy", "BENCH_TARGET="+b.upstream); err != nil {
			return err
		}
		fresh := b.procs["fresh"]
		for i, s := range [2]side{us, {fresh.base, fresh, us.body}} {
			if _, _, err := throughput(ctx, 16, b.window/2, func(ctx context.Context) error { return post(ctx, s.base, chatBody("plain", false)) }); err != nil {
				return err
			}
			more, err := held(ctx, s, streams)
			if err != nil {
				return err
			}
			grown[i] = append(grown[i], more/streams)
		}
		b.stop("idle")
		b.stop("fresh")
	}
	b.compare("e", fmt.Sprintf("memory of an open stream (of %d)", streams), median(grown[0]), median(grown[1]), kibibytes, -0.8)
	b.limit("e", "memory with 10 servers, idle", median(idle), mebibytes, 40<<20)
	return nil
}

// held is how much more memory a process has while that many streams are open.
func held(ctx context.Context, s side, streams int) (more float64, err error) {
	before, err := s.proc.memory()
	if err != nil {
		return 0, err
	}
	var closers []func() error
	defer func() {
		for _, c := range closers {
			c()
		}
	}()
	for range streams {
		c, err := open(ctx, s.base, s.body)
		if err != nil {
			return 0, err
		}
		closers = append(closers, c)
	}
	after, err := s.proc.memory()
	return after - before, err
}

// startup is (f): from the start of the process until it is ready, with 20
// servers of which 5 never answer.
func (b *bench) startup(ctx context.Context) error {
	configs := make(map[string]fakemcp.Config)
	for i := range 20 {
		cfg := fakemcp.Config{Keep: -1, Count: 10}
		if i < 5 {
			cfg.Faults = []fakemcp.Fault{{Kind: fakemcp.Hang}}
		}
		configs[fmt.Sprintf("server%d", i)] = cfg
	}
	servers := stdioServers(configs)
	var times []float64
	for range b.rounds {
		began := time.Now()
		if _, err := b.gateway(ctx, "start", servers); err != nil {
			return err
		}
		times = append(times, time.Since(began).Seconds())
		b.stop("start")
	}
	b.limit("f", "start to ready, 20 servers, 5 of them hang", median(times), duration, 1)
	return nil
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
