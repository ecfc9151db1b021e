package mcp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe/logpace"
)

// TestFlood: a server that writes without end is read at a bounded rate, and its
// calls are answered all the same.
func TestFlood(t *testing.T) {
	var lines atomic.Int64
	serve := func(line []byte, out io.Writer) {
		go func() {
			for {
				if _, err := io.WriteString(out, "log output, not JSON\n"); err != nil {
					return
				}
				lines.Add(1)
			}
		}()
		id := object(line).Get("id")
		time.AfterFunc(5*time.Second, func() { _, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id) })
	}
	pipedWith(t, &ClientOptions{Era: Legacy, Passive: true}, serve, func(t *testing.T, c *Client) {
		start := time.Now()
		if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
			t.Errorf("%+v, %v", res.Problem, err)
		}
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("the call took %s", took)
		}
		synctest.Wait()
		if n := lines.Load(); n > 10*floodMessages {
			t.Errorf("%d lines were read in 5 s", n)
		}
	})
}

// TestFloodIsLogged: what a server makes us log without end is some lines, and their number.
func TestFloodIsLogged(t *testing.T) {
	var log bytes.Buffer
	serve := func(line []byte, out io.Writer) {
		for i := range 1000 {
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`+"\n", i)
		}
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", object(line).Get("id"))
	}
	o := &ClientOptions{Era: Modern, Passive: true, Label: "odd", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	pipedWith(t, o, serve, func(t *testing.T, c *Client) {
		if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
			t.Errorf("%+v, %v", res.Problem, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := bytes.Count(log.Bytes(), []byte("sent a request")); n != logpace.Burst {
			t.Errorf("%d lines in the log", n)
		}
		if want := fmt.Sprintf("server=odd lines=%d\n", 1000-logpace.Burst); !bytes.Contains(log.Bytes(), []byte(want)) {
			t.Errorf("no line says %s", want)
		}
	})
}
