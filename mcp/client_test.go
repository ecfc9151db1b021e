package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// heard collects what a server was told.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, string(line))
}

func (h *heard) holding(part string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.all {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func TestWhatTheServerSaid(t *testing.T) {
	var h heard
	piped(t, func(line []byte, _ io.Writer) { h.add(line) }, func(t *testing.T, c *Client) {
		if string(c.ServerInfo()) != `{"name":"é"}` || string(c.Capabilities()) != `{"tools":{}}` || c.Instructions() != "Be kind." || c.Err() != nil {
			t.Errorf("%s %s %q %v", c.ServerInfo(), c.Capabilities(), c.Instructions(), c.Err())
		}
		if err := c.Notify(t.Context(), "notifications/roots/list_changed", nil); err != nil {
			t.Error(err)
		}
		if err := c.Notify(t.Context(), "x", json.RawMessage(`{"a":1}`)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if h.holding(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`) != 1 || h.holding(`"params":{"a":1}`) != 1 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

// TestServerGivesUp: what a server asked for and does not want any more ends,
// and is not answered.
func TestServerGivesUp(t *testing.T) {
	var h heard
	ended := make(chan error, 1)
	o := &ClientOptions{Era: Legacy, Sampling: func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}
	pipedWith(t, o, func(line []byte, out io.Writer) {
		h.add(line)
		if id := object(line).Get("id"); h.holding("ping") == 1 && string(object(line).Get("method")) == `"ping"` {
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody's"}}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
		}
	}, func(t *testing.T, c *Client) {
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		<-ended
		synctest.Wait()
		if h.holding(`"id":"s"`) != 0 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

// TestServerAsksTooMuch: only so many requests of a server are worked on, and
// the others are refused, not kept.
func TestServerAsksTooMuch(t *testing.T) {
	var h heard
	var asked atomic.Int32
	o := &ClientOptions{Era: Legacy, Limits: Limits{Requests: 3}, Roots: func(context.Context) (json.RawMessage, error) {
		asked.Add(1)
		<-time.After(time.Minute)
		return json.RawMessage(`[]`), nil
	}}
	pipedWith(t, o, func(line []byte, out io.Writer) {
		h.add(line)
		if o := object(line); string(o.Get("method")) == `"ping"` {
			for i := range 10 {
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"r%d","method":"roots/list"}`+"\n", i)
			}
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", o.Get("id"))
		}
	}, func(t *testing.T, c *Client) {
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if asked.Load() != 3 || h.holding("too many requests") != 7 {
			t.Errorf("%d hooks run; the server heard %q", asked.Load(), h.all)
		}
		<-time.After(2 * time.Minute)
		if h.holding(`"result":{"roots":[]}`) != 3 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

// TestUnsubscribed: a subscription that the server ends on a shared channel is
// made again; other requests can not be ended like this.
func TestUnsubscribed(t *testing.T) {
	var h heard
	var changes atomic.Int32
	o := &ClientOptions{OnListChanged: func(string) { changes.Add(1) }}
	pipedWith(t, o, func(line []byte, out io.Writer) {
		h.add(line)
		o := object(line)
		switch method, _ := rawjson.String(o.Get("method")); method {
		case "subscriptions/listen":
			if h.holding("subscriptions/listen") == 1 {
				<-time.After(time.Minute)
			}
			if h.holding("subscriptions/listen") < 3 {
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", o.Get("id"))
			}
		case "tools/call":
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", o.Get("id"))
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", o.Get("id"))
		}
	}, func(t *testing.T, c *Client) {
		<-time.After(5 * time.Minute)
		if n := h.holding("subscriptions/listen"); n != 3 || changes.Load() != 1 {
			t.Errorf("%d subscriptions, %d changes", n, changes.Load())
		}
		if res, err := c.Call(t.Context(), dragoman.Call{Tool: echo}); err != nil || res.Problem != nil {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestSSECancelled: over HTTP+SSE, too, the server hears of the end of a call.
func TestSSECancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h heard
		out := make(chan string, 10)
		tr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				events(w, "event: endpoint\ndata: /post\n\ndata: garbage\n\n")
				for {
					select {
					case s := <-out:
						events(w, "data: "+s+"\n\n")
					case <-r.Context().Done():
						return
					}
				}
			}
			body, _ := io.ReadAll(r.Body)
			h.add(body)
			if o := object(body); string(o.Get("method")) == `"initialize"` {
				out <- `{"jsonrpc":"2.0","id":` + string(o.Get("id")) + `,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}}`
			}
			w.WriteHeader(http.StatusAccepted)
		}))
		c, err := Connect(t.Context(), (*SSE)(tr), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Call(ctx, dragoman.Call{Tool: echo}); err == nil || time.Since(start) > time.Second+200*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		synctest.Wait()
		if h.holding("notifications/cancelled") != 1 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

func TestBounded(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttxt\n": "plain\ttxt\n", "bell\a\x7f\x00": "bell", "ééé": "éé…", "1234567890": "1234567890", "12345678901": "1234567890…",
		"\xffok": "ok",
	} {
		n := 10
		if in == "ééé" {
			n = 5
		}
		if got := bounded(in, n); got != want || !utf8.ValidString(got) {
			t.Errorf("bounded(%q) = %q, want %q", in, got, want)
		}
	}
}
