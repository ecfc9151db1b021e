package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// streaming is (c): time to the first byte, and what a stream and a chunk cost,
// with a server whose tool is offered. Chunks come one by one, as a fast model
// sends them to many clients, and then as fast as they can.
func (b *bench) streaming(ctx context.Context) error {
	const (
		short          = 20
		streams, paced = 64, 150
		longs, chunks  = 20, 2000
	)
	c, stop, err := b.contest(ctx, setting{
		body: chatBody(fmt.Sprintf("stream-%d", short), true), servers: b.oneServer(), arrived: offersTools(1), splice: true,
	})
	if err != nil {
		return err
	}
	defer stop()
	all, err := c.turns(func(who contender) ([]float64, error) {
		p := c.sides[who]
		first, err := firstBytes(ctx, p.base, 200)
		if err != nil {
			return nil, err
		}
		one, err := p.spend(func() error {
			return sideBySide(ctx, streams, p.base, chatBody(fmt.Sprintf("paced-%d", paced), true))
		})
		if err != nil {
			return nil, err
		}
		var flood []float64
		for range longs {
			f, l, err := readStream(ctx, p.base, chatBody(fmt.Sprintf("stream-%d", chunks), true))
			if err != nil {
				return nil, err
			}
			flood = append(flood, (l-f).Seconds()/chunks)
		}
		return []float64{first, one.Seconds() / streams / paced, median(flood)}, nil
	})
	if err != nil {
		return err
	}
	rate, cost, err := c.rates(ctx, clients)
	if err != nil {
		return err
	}
	b.add(row{item: "c", what: "stream, time to first byte", figures: all[0], show: duration, target: atMost(1.3, proxy)})
	b.add(row{item: "c", what: fmt.Sprintf("CPU time of a stream of %d chunks, 16 clients", short), figures: cost, show: duration})
	b.add(row{item: "c", what: "streams in a second", figures: rate, show: perSecond})
	b.add(row{item: "c", what: fmt.Sprintf("CPU time of a chunk every 5 ms, %d streams", streams), figures: all[1], show: duration, target: atMost(1.2, proxy)})
	b.add(row{item: "c", what: "time of a chunk, as fast as it goes", figures: all[2], show: duration, target: atMost(1.2, proxy)})
	return nil
}

// firstBytes is the median time to the first byte of n streams.
func firstBytes(ctx context.Context, base string, n int) (float64, error) {
	var all []float64
	for range n {
		first, _, err := readStream(ctx, base, chatBody("stream-1", true))
		if err != nil {
			return 0, err
		}
		all = append(all, first.Seconds())
	}
	return median(all), nil
}

// sideBySide reads n streams at a time.
func sideBySide(ctx context.Context, n int, base string, body []byte) error {
	var wg sync.WaitGroup
	failed := make([]error, n)
	for i := range n {
		wg.Go(func() { _, _, failed[i] = readStream(ctx, base, body) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// readStream reads one streamed answer and returns the time to its first event and to
// its last.
func readStream(ctx context.Context, base string, body []byte) (first, last time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	done := false
	for {
		line, err := lines.ReadSlice('\n')
		if first == 0 && bytes.HasPrefix(line, []byte("data: ")) {
			first = time.Since(began)
		}
		done = done || bytes.HasPrefix(line, []byte("data: [DONE]"))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
	}
	if !done {
		return 0, 0, fmt.Errorf("%s: the stream ended without [DONE]", base)
	}
	return first, time.Since(began), nil
}
