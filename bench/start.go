package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

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
	s := setting{servers: stdioServers(configs)}
	var times figures
	for range b.rounds {
		for who, binary := range map[contender]string{ours: b.binary, before: b.older} {
			if binary == "" {
				continue
			}
			began := time.Now()
			if _, err := b.gateway(ctx, "start", binary, s); err != nil {
				return err
			}
			times[who] = append(times[who], time.Since(began).Seconds())
			b.stop("start")
		}
	}
	b.add(row{item: "f", what: "start to ready, 20 servers, 5 of them hang", figures: times, show: duration, target: limit(1, duration)})
	return nil
}
