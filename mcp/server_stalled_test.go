package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/deadline"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A floodHost says something twenty times a second for as long as a call lasts.
type floodHost struct {
	toolsetHost
	said  int
	ended chan time.Time
}

func (h *floodHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Method == listenMethod {
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	message := strings.Repeat("x", 4<<10)
	for sleep(ctx, 50*time.Millisecond) == nil {
		h.said++
		call.Progress(dragoman.Progress{Progress: float64(h.said), Message: message})
	}
	h.ended <- time.Now()
	return dragoman.Result{}, context.Cause(ctx)
}

// Fault 13: a client stops reading while its call says more and more. What is kept
// for it is bounded, its connection is cut, and the call ends: at once in the
// modern era, and in the legacy one when nobody has come back for the stream.
func TestClientStopsReading(t *testing.T) {
	const idle = time.Minute // of the gateway's front
	for _, tt := range []struct {
		era    Era
		cutoff time.Duration
	}{{Modern, idle}, {Legacy, idle + resumeLife}} {
		t.Run(tt.era.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &floodHost{toolsetHost: toolsetHost{tools: toolsettest.NewInner()}, ended: make(chan time.Time, 1)}
				s := &Server{Host: func(*http.Request) (Host, error) { return host, nil }}
				tr := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { deadline.Serve(s, w, r, idle, idle) }))
				defer s.Close()
				do := func(body string, headers ...string) *http.Response {
					return send(t, tr, http.MethodPost, body, headers...)
				}
				var resp *http.Response
				var most atomic.Int64
				if tt.era == Legacy {
					hello := do(greeting)
					_ = hello.Body.Close()
					id := hello.Header.Get(headerSession)
					resp = do(legacyCall, headerSession, id)
					s.mu.Lock()
					session := s.sessions[id]
					s.mu.Unlock()
					looked, stop := make(chan struct{}), make(chan struct{})
					defer func() { close(stop); <-looked }()
					go func() {
						defer close(looked)
						for {
							session.mu.Lock()
							for _, stream := range session.streams {
								size, _, _ := stream.over()
								most.Store(max(most.Load(), int64(size)))
							}
							session.mu.Unlock()
							select {
							case <-time.After(time.Second):
							case <-stop:
								return
							}
						}
					}()
				} else {
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":1,%s}}`, strings.TrimPrefix(modernMeta, `"_meta":{`))
					resp = do(body, headerVersion, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
				}
				began := time.Now()
				defer resp.Body.Close()
				if resp.Header.Get("Content-Type") != typeStream {
					t.Fatalf("%s %s", resp.Status, resp.Header.Get("Content-Type"))
				}
				took := (<-host.ended).Sub(began)
				t.Logf("a %s client that reads nothing: its call ended after %s and %d messages; at most %d bytes were kept", tt.era, took.Round(time.Millisecond), host.said, most.Load())
				if took > tt.cutoff+2*time.Second || most.Load() > maxStreamBytes+8<<10 {
					t.Errorf("the call ended after %s, want at most %s; %d bytes", took, tt.cutoff, most.Load())
				}
			})
		})
	}
}
