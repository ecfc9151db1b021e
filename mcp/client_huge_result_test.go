package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// A result of 1 GB is refused while it is read: the call gets a problem, at a
// cost of at most twice the limit, and the server cannot send the rest.
func TestHugeResult(t *testing.T) {
	const limit, huge = 4 << 20, 1 << 30
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			var sent atomic.Int64
			fake := fakemcp.New(fakemcp.Config{Count: 1, Keep: -1})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				var m struct {
					ID     json.RawMessage
					Method string
				}
				if json.Unmarshal(body, &m); m.Method != "tools/call" {
					fake.ServeHTTP(w, r)
					return
				}
				before := ""
				w.Header().Set("Content-Type", "application/json")
				if stream {
					w.Header().Set("Content-Type", "text/event-stream")
					before = "data: "
				}
				fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, before, m.ID)
				block := bytes.Repeat([]byte("x"), 64<<10)
				for sent.Load() < huge {
					n, err := w.Write(block)
					sent.Add(int64(n))
					if err != nil {
						return
					}
				}
			}))
			defer server.Close()
			client, err := mcp.Connect(t.Context(), &mcp.HTTP{URL: server.URL}, &mcp.ClientOptions{Limits: mcp.Limits{Message: limit}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			list, err := client.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, err := client.Call(t.Context(), dragoman.Call{Tool: &list.Tools.All()[0]})
			runtime.ReadMemStats(&after)
			if err != nil || res.Problem == nil || res.Problem.Code != dragoman.CodeTooLarge {
				t.Fatalf("got %+v, %v; want the problem %s", res.Problem, err, dragoman.CodeTooLarge)
			}
			// All that was ever allocated bounds all that was ever held at once.
			if total := after.TotalAlloc - before.TotalAlloc; total > 2*limit+1<<20 {
				t.Errorf("%d MiB were allocated for a limit of %d MiB", total>>20, limit>>20)
			}
			if n := sent.Load(); n > 16*limit {
				t.Errorf("the server could send %d MiB", n>>20)
			}
		})
	}
}
