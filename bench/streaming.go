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

// streaming is (c): time to the first byte, and what a chunk costs, with a server
// whose tools are offered. Chunks come one by one, as a fast model sends them to
// many clients, and then as fast as they can.
func (b *bench) streaming(ctx context.Context) error {
	const (
		streams, paced = 64, 150
		longs, chunks  = 20, 2000
	)
	us, err := b.ours(ctx, "stream", map[string]any{"bench": map[string]any{"url": b.mcp + "/mcp"}}, nil)
	if err != nil {
		return err
	}
	defer b.stop("stream")
	var first, one, flood [2][]float64
	for round := -1; round < b.rounds; round++ {
		for i, s := range [2]side{us, b.theirs(nil)} {
			firsts, err := firstBytes(ctx, s.base, 200)
			if err != nil {
				return err
			}
			cost, err := s.proc.spend(func() error { return sideBySide(ctx, streams, s.base, chatBody(fmt.Sprintf("paced-%d", paced), true)) })
			if err != nil {
				return err
			}
			var lasts []float64
			for range longs {
				f, l, err := readStream(ctx, s.base, chatBody(fmt.Sprintf("stream-%d", chunks), true))
				if err != nil {
					return err
				}
				lasts = append(lasts, (l-f).Seconds()/chunks)
			}
			if round >= 0 {
				first[i] = append(first[i], firsts)
				one[i] = append(one[i], cost.Seconds()/streams/paced)
				flood[i] = append(flood[i], median(lasts))
			}
		}
	}
	b.compare("c", "stream, time to first byte", median(first[0]), median(first[1]), duration, -1.2)
	b.compare("c", fmt.Sprintf("stream, CPU time of a chunk, %d streams", streams), median(one[0]), median(one[1]), duration, -1.2)
	b.compare("c", "stream, time of a chunk, as fast as it goes", median(flood[0]), median(flood[1]), duration, -1.2)
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
