package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
)

// What a model said is kept before anything is done with it, however its connection ends: a
// response that is made again does not ask anew, where another answer could come.
func TestAnswersAreKeptHoweverTheyEnd(t *testing.T) {
	const chat = `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%q}]}` + "\n\n"
	const native = `data: {"type":"response.completed","response":{"id":"resp_%d","object":"response","status":"completed","model":"m","output":[%s],"usage":null}}` + "\n\n"
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	stays := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, tt := range []struct {
		name, wire string
		end        http.HandlerFunc // of an answer that was whole
		answer     func(n int, call bool) string
	}{
		{"chat, breaks", "chat", breaks, func(n int, call bool) string {
			if call {
				return fmt.Sprintf(chat, fmt.Sprintf(`{"role":"assistant","content":"Answer %d.","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather__warn","arguments":"{\"city\":\"Oslo\"}"}}]}`, n), "tool_calls")
			}
			return fmt.Sprintf(chat, `{"role":"assistant","content":"It is cold."}`, "stop")
		}},
		{"responses, stays", "responses", stays, func(n int, call bool) string {
			if call {
				return fmt.Sprintf(native, n, fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[]},`, n)+strings.Replace(getItem, "weather__get", "weather__warn", 1))
			}
			return fmt.Sprintf(native, n, coldItem)
		}},
	} {
		t.Run(strings.ReplaceAll(tt.name, ", ", "-"), func(t *testing.T) {
			var asked atomic.Int64
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(asked.Add(1))
				w.Header().Set("Content-Type", "text/event-stream")
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprint(w, tt.answer(n, !strings.Contains(string(body), "unknown_outcome")))
				_ = http.NewResponseController(w).Flush()
				tt.end(w, r)
			}))
			t.Cleanup(model.Close)
			path := filepath.Join(t.TempDir(), "dragoman.db")
			at := upstream.Model{Match: "*", BaseURL: model.URL + "/v1", Wires: []string{tt.wire}, Dialect: "openai"}
			here, there := start(t, path, at), start(t, path, at)
			begun, dead := make(chan struct{}), make(chan struct{})
			here.tools.run = func(ctx context.Context, _ dragoman.Call) (dragoman.Result, error) {
				close(begun)
				<-dead
				return dragoman.Result{}, ctx.Err()
			}
			id := here.post(`{"model":"m","background":true,"input":"Warn Oslo"}`)
			<-begun
			there.takeFrom(here, id)
			names := kinds(there.events(id, -1))
			close(dead)
			if status, body := there.got(id); status != "completed" || asked.Load() != 2 || !strings.Contains(body, "It is cold.") {
				t.Errorf("asked %d times, %v: %s", asked.Load(), names, body)
			}
		})
	}
}
