package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
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

// A transport that lacks what it needs is an error that says so.
func TestConnectBareTransports(t *testing.T) {
	for name, tt := range map[string]struct {
		transport Transport
		want      string
	}{
		"none":            {nil, "no Transport"},
		"nil of a type":   {(*Pipe)(nil), "no Transport"},
		"zero Command":    {&Command{}, "Command.New"},
		"no command":      {Command{New: func() *exec.Cmd { return nil }}, "Command.New"},
		"zero Pipe":       {&Pipe{}, "a Reader and a Writer"},
		"zero HTTP":       {&HTTP{}, "URL"},
		"Pipe of one end": {Pipe{Reader: io.NopCloser(strings.NewReader(""))}, "a Reader and a Writer"},
	} {
		c, err := Connect(t.Context(), tt.transport, nil)
		if err == nil {
			_ = c.Close()
			t.Errorf("%s: connected", name)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
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

// TestServerGivesUp: what a server asked and does not want any more is not
// answered, and the call goes on.
func TestServerGivesUp(t *testing.T) {
	var h heard
	o := &ClientOptions{Era: Legacy, Passive: true, Can: dragoman.AskSampling}
	pipedWith(t, o, func(line []byte, out io.Writer) {
		h.add(line)
		id := object(line).Get("id")
		switch method, _ := rawjson.String(object(line).Get("method")); method {
		case "tools/call":
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}`+"\n")
		case "ping":
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody's"}}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":2,"result":{"ok":1}}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
		}
	}, func(t *testing.T, c *Client) {
		call := dragoman.Call{Tool: echo, Can: dragoman.AskSampling}
		res, err := c.Call(t.Context(), call)
		if err != nil || res.Asks == nil || !res.Asks.Held {
			t.Fatalf("%+v, %v", res, err)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		call.Answers = &dragoman.Answers{State: res.Asks.State, Replies: map[string]json.RawMessage{"1": json.RawMessage(`{"late":1}`)}}
		if res, err = c.Call(t.Context(), call); err != nil || string(res.Content) != `{"ok":1}` {
			t.Errorf("%+v, %v", res, err)
		}
		synctest.Wait()
		if h.holding(`"id":"s"`) != 0 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

// TestServerAsksTooMuch: only so many requests of a server are kept, and the
// others are refused.
func TestServerAsksTooMuch(t *testing.T) {
	var h heard
	o := &ClientOptions{Era: Legacy, Passive: true, Can: dragoman.AskRoots, Limits: Limits{Requests: 3}}
	pipedWith(t, o, func(line []byte, out io.Writer) {
		h.add(line)
		if o := object(line); string(o.Get("method")) == `"tools/call"` {
			for i := range 10 {
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"r%d","method":"roots/list"}`+"\n", i)
			}
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/message"}`+"\n")
		} else if h.holding(`"result":{"roots":[]}`) == 3 {
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":2,"result":{"ok":1}}`+"\n")
		}
	}, func(t *testing.T, c *Client) {
		loop := dragoman.Loop{Tools: c, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
			synctest.Wait() // for all ten
			a := &dragoman.Answers{Replies: map[string]json.RawMessage{}}
			for _, q := range asks.Questions {
				a.Replies[q.Key] = json.RawMessage(`{"roots":[]}`)
			}
			return a, nil
		}}
		res, err := loop.Call(t.Context(), dragoman.Call{Tool: echo, Can: dragoman.AskRoots})
		synctest.Wait()
		if err != nil || string(res.Content) != `{"ok":1}` || h.holding("too many requests") != 7 {
			t.Errorf("%+v, %v; the server heard %q", res, err, h.all)
		}
	})
}

// TestUnsubscribed: a subscription that the server ends on a shared channel is
// made again; other requests cannot be ended like this.
func TestUnsubscribed(t *testing.T) {
	var h heard
	pipedWith(t, &ClientOptions{}, func(line []byte, out io.Writer) {
		h.add(line)
		o := object(line)
		switch method, _ := rawjson.String(o.Get("method")); method {
		case "subscriptions/listen":
			end := func() {
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", o.Get("id"))
			}
			switch h.holding("subscriptions/listen") {
			case 1:
				time.AfterFunc(time.Minute, end)
			case 2:
				end()
			}
		case "tools/list":
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`+"\n", o.Get("id"))
		case "tools/call":
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", o.Get("id"))
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", o.Get("id"))
		}
	}, func(t *testing.T, c *Client) {
		<-time.After(5 * time.Minute)
		if n := h.holding("subscriptions/listen"); n != 3 || h.holding(`"tools/list"`) != 2 {
			t.Errorf("%d subscriptions; the server heard %q", n, h.all)
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
		c, err := Connect(t.Context(), &HTTP{URL: tr.URL, Client: tr.Client, SSE: true}, &ClientOptions{Passive: true})
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
