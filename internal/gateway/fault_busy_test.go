package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A sick is a handler that can be told to answer 503 to everything, and counts what
// it got meanwhile.
type sick struct {
	well       http.Handler
	retryAfter string // in its answers, if not empty

	ill   atomic.Bool
	calls atomic.Int64 // tools/call, while it was ill
	other atomic.Int64
}

func (s *sick) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.ill.Load() {
		s.well.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), `"tools/call"`) {
		s.calls.Add(1)
	} else {
		s.other.Add(1)
	}
	if s.retryAfter != "" {
		w.Header().Set("Retry-After", s.retryAfter)
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// Fault 21: an MCP server answers 503 to everything, under load. What it gets beside
// the callers' own calls is little, and it is used again soon after it is well.
func TestFaultServerBusy(t *testing.T) {
	rate, lasts := often(100, 500), time.Duration(often(3, 60))*time.Second
	s := &sick{well: fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})}
	entry := servers.Config{URL: web(t, s) + "/mcp", Effects: servers.Effects{ReadOnly: []string{"*"}}, MaxInFlight: 200}
	c := dial(t, endpoint(t, map[string]servers.Config{"web": entry}, nil), mcp.Modern)
	echo := tool(t, c, "echo")
	if res, err := call(within(t), c, echo, 0); fine(res, err, 0) != nil {
		t.Fatal(fine(res, err, 0))
	}
	s.ill.Store(true)
	var made, refused atomic.Int64
	var all sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	began := time.Now()
	for n := 1; time.Since(began) < lasts; n++ {
		<-tick.C
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			made.Add(1)
			if res, err := call(ctx, c, echo, n); fine(res, err, n) != nil {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	calls, other := s.calls.Load(), s.other.Load()
	s.ill.Store(false)
	healed := time.Now()
	eventually(t, "a call after the server is well", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		res, err := call(ctx, c, echo, 1)
		return fine(res, err, 1) == nil
	})
	t.Logf("%d calls in %s, %d of them failed: the server got %d of them and %d other requests (%.1f a second); used again after %s",
		made.Load(), took.Round(time.Millisecond), refused.Load(), calls, other, float64(other)/took.Seconds(), time.Since(healed).Round(time.Millisecond))
	// Package retry lets a tenth be sent again, ten at once and one a second.
	if most := made.Load()*12/10 + 10 + int64(took.Seconds()); calls > most {
		t.Errorf("the server got %d calls for %d", calls, made.Load())
	}
}

// Fault 22: an MCP server asks to be left in peace while it is greeted. It is.
func TestFaultServerAsksForTime(t *testing.T) {
	s := &sick{well: fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}}), retryAfter: "2"}
	s.ill.Store(true)
	g := build(t, func(f *config.File) {
		f.MCPServers = map[string]servers.Config{"web": {URL: web(t, s) + "/mcp"}}
		f.WaitForServers = 10 * time.Millisecond
	})
	began := time.Now()
	eventually(t, "the server failed", func() bool { return g.Servers()[0].State == dragoman.Failed })
	first := s.other.Load()
	asked := g.Servers()[0].Retry.Sub(began)
	s.ill.Store(false)
	eventually(t, "the server is there", func() bool { return g.Servers()[0].State == dragoman.Connected })
	t.Logf("asked for 2 s after %d requests: to be tried again after %s, there after %s", first, asked.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it was asked again after %s", took)
	}
}

// Faults 21 and 22: a model's API takes the first request of each conversation and
// then answers 503 or 429. It is asked again where that helps, and not much more than
// it was asked.
func TestFaultModelBusy(t *testing.T) {
	conversations := often(200, 5000)
	entry, _ := fakes(t, fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "echo"}}})
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var ill atomic.Bool
			var second atomic.Int64
			model := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				answer, finish := `{"role":"assistant","content":"Well."}`, "stop"
				if !strings.Contains(string(body), `"role":"tool"`) {
					answer, finish = `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"echo","arguments":"{}"}}]}`, "tool_calls"
				} else if second.Add(1); ill.Load() {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(status)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, answer, finish)
			})
			g := build(t, func(f *config.File) {
				reading := entry
				reading.Effects.ReadOnly = []string{"*"}
				f.MCPServers = map[string]servers.Config{"web": reading}
				f.Models = []upstream.Model{{Match: "*", BaseURL: web(t, model) + "/v1"}}
			})
			if err := g.Wait(within(t)); err != nil {
				t.Fatal(err)
			}
			url := web(t, g.Handler()) + "/v1/chat/completions"
			transport := &http.Transport{MaxIdleConnsPerHost: 64}
			t.Cleanup(transport.CloseIdleConnections)
			ask := func() (*http.Response, error) {
				resp, err := (&http.Client{Transport: transport}).Post(url, "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Say."}]}`))
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				return resp, err
			}
			ill.Store(true)
			began := time.Now()
			var all sync.WaitGroup
			turns := make(chan struct{}, 64)
			for range conversations {
				turns <- struct{}{}
				all.Go(func() {
					defer func() { <-turns }()
					resp, err := ask()
					if err != nil {
						t.Error(err)
					} else if resp.StatusCode != status || resp.Header.Get("Retry-After") != "1" {
						t.Errorf("the client was told %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
					}
				})
			}
			all.Wait()
			got, took := second.Load(), time.Since(began)
			ill.Store(false)
			if resp, err := ask(); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("once it was well: %v, %v", resp, err)
			}
			sent, again := int64(2*conversations), got-int64(conversations)
			t.Logf("%d conversations of two requests in %s: %d requests were sent again (%.1f %%); each client was told %d", conversations, took.Round(time.Millisecond), again, 100*float64(again)/float64(sent), status)
			if most := sent/5 + 10 + int64(took.Seconds()); again > most { // as package retry lets
				t.Errorf("%d were sent again", again)
			}
		})
	}
}
