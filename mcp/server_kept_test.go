package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// A bigHost answers each call with 20 KB, or with content.
type bigHost struct {
	toolsetHost
	content json.RawMessage
}

func (h *bigHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Method == listenMethod {
		<-ctx.Done()
		return dragoman.Result{}, context.Cause(ctx)
	}
	content := h.content
	if content == nil {
		content = json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 20_000) + `"}]}`)
	}
	return dragoman.Result{Content: content, Ran: dragoman.RanYes}, nil
}

// What has been answered is kept only for clients that can come back for it, and
// within bounds: a busy session must not pin two minutes of results.
func TestAnswersAreNotHoarded(t *testing.T) {
	for _, tt := range []struct {
		name, accept string
		most         int // tracks beside the main one
	}{
		{"plain", typeJSON + ", " + typeStream, 0},
		{"streams", typeStream, maxKeptBytes / 20_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &bigHost{toolsetHost: toolsetHost{tools: toolsettest.NewInner()}}
				s := &Server{Host: func(*http.Request) (Host, error) { return host, nil }}
				tr := serveHTTP(t, s)
				defer s.Close()
				do := func(body string, headers ...string) *http.Response {
					resp := send(t, tr, http.MethodPost, body, append(headers, "Accept", tt.accept)...)
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					return resp
				}
				id := do(greeting).Header.Get(headerSession)
				for range 500 {
					if resp := do(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big"}}`, headerSession, id); resp.StatusCode != http.StatusOK {
						t.Fatal(resp.Status)
					}
				}
				synctest.Wait()
				s.mu.Lock()
				session := s.sessions[id]
				s.mu.Unlock()
				kept := func() (int, int) {
					session.mu.Lock()
					defer session.mu.Unlock()
					return len(session.streams) - 1, session.keptBytes
				}
				n, size := kept()
				t.Logf("after 500 answers of 20 KB: %d are kept, %d bytes", n, size)
				if n > tt.most || size > maxKeptBytes || tt.most > 0 && n == 0 {
					t.Errorf("%d answers are kept, want at most %d", n, tt.most)
				}
				<-time.After(resumeLife + time.Second)
				if n, size := kept(); n != 0 || size != 0 {
					t.Errorf("after %s there are %d with %d bytes", resumeLife, n, size)
				}
			})
		})
	}
}

// Draining ends the streams on which clients listen, and nothing else.
func TestDrainEndsListening(t *testing.T) {
	inTime(t, 20*time.Second, func(t *testing.T, s *Server, do func(string, string, ...string) *http.Response) {
		resp := do("POST", greeting)
		id := resp.Header.Get(headerSession)
		_ = resp.Body.Close()
		listening := do("GET", "", headerSession, id)
		subscribed := do("POST", `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`,
			headerVersion, "2026-07-28", "Mcp-Method", listenMethod)
		running := do("POST", legacyCall, headerSession, id)
		s.Drain()
		if _, err := io.Copy(io.Discard, listening.Body); err != nil {
			t.Errorf("the listening stream ended with %v", err)
		}
		if rest, err := io.ReadAll(subscribed.Body); err != nil || !strings.Contains(string(rest), `"id":"s","result":{"resultType":"complete"`) {
			t.Errorf("the subscription ended with %s, %v", rest, err)
		}
		if rest, err := io.ReadAll(running.Body); err != nil || !strings.Contains(string(rest), `"result":{"content":[]}`) {
			t.Errorf("the call ended with %s, %v", rest, err)
		}
	})
}

// A lateHost needs a while before it hears of changes.
type lateHost struct {
	toolsetHost
	hears chan struct{} // closed when it does
}

func (h *lateHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if sleep(ctx, 300*time.Millisecond) == nil {
		close(h.hears)
		call.Notify(dragoman.Notification{Method: Acknowledged})
		<-ctx.Done()
	}
	return dragoman.Result{}, context.Cause(ctx)
}

// A client that was told that it will hear of changes misses none: it is told so
// once the host listens, in both eras.
func TestListeningBeginsBeforeItIsSaid(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		t.Run(era.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := &lateHost{hears: make(chan struct{})}
				s := &Server{Host: func(*http.Request) (Host, error) { return host, nil }}
				tr := serveHTTP(t, s)
				defer s.Close()
				do := func(body string, headers ...string) *http.Response {
					return send(t, tr, http.MethodPost, body, headers...)
				}
				if era == Legacy {
					resp := do(greeting)
					_ = resp.Body.Close()
					_ = do(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, headerSession, resp.Header.Get(headerSession)).Body.Close()
				} else {
					resp := do(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`,
						headerVersion, "2026-07-28", "Mcp-Method", listenMethod)
					defer resp.Body.Close()
					b := make([]byte, 1<<10)
					n, err := resp.Body.Read(b)
					if err != nil || !strings.Contains(string(b[:n]), Acknowledged) {
						t.Fatalf("it begins with %q, %v", b[:n], err)
					}
				}
				select {
				case <-host.hears:
				default:
					t.Error("the client believes that it hears of changes, and nobody listens yet")
				}
			})
		})
	}
}
