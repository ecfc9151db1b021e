package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/observe/logpace"
	"github.com/dragoman-mcp/dragoman/internal/wire/flood"
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
		if n := lines.Load(); n > 10*flood.Messages {
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

// TestFloodOfEvents: so is one that sends events without end, on the stream of a call or on
// the one that is listened to.
func TestFloodOfEvents(t *testing.T) {
	for name, event := range map[string]string{
		"comments":          ":\n\n",
		"events of others":  "event: x\ndata: {}\n\n",
		"notifications":     "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/other\"}\n\n",
		"answers to nobody": "data: {\"jsonrpc\":\"2.0\",\"id\":1000,\"result\":{}}\n\n",
	} {
		for _, where := range []string{"tools/call", "GET"} {
			t.Run(name+" at "+where, func(t *testing.T) {
				var sent atomic.Int64
				var floods sync.WaitGroup
				srv := &fake{era: Legacy, on: on{}}
				pour := func(w http.ResponseWriter, r *http.Request, until time.Duration) {
					floods.Add(1)
					defer floods.Done()
					for start := time.Now(); r.Context().Err() == nil && time.Since(start) < until; sent.Add(1) {
						events(w, event)
						time.Sleep(time.Microsecond) // time stands still otherwise
					}
				}
				srv.on["tools/call"] = func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
					if where == "tools/call" {
						pour(w, r, 2*time.Second)
					} else {
						time.Sleep(2 * time.Second)
					}
					events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", id))
				}
				srv.on["GET"] = func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
					if where == "GET" {
						pour(w, r, time.Hour)
					}
				}
				connected(t, srv, &ClientOptions{Passive: true}, func(t *testing.T, c *Client) {
					start := time.Now()
					if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
						t.Errorf("%+v, %v", res.Problem, err)
					}
					if took := time.Since(start); took > 4*time.Second {
						t.Errorf("the call took %s", took)
					}
					if n := sent.Load(); n < flood.Messages || n > 10*flood.Messages {
						t.Errorf("%d events were read in %s", n, time.Since(start))
					}
					_ = c.Close()
					floods.Wait()
				})
			})
		}
	}
}
