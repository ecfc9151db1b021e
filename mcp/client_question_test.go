package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// TestQuestionOfSeveralCalls: where several calls share a channel, and a question says of
// none that it is the one, nobody is asked; the log says why.
func TestQuestionOfSeveralCalls(t *testing.T) {
	for _, calls := range []int{1, 2} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			var log bytes.Buffer
			var running []json.RawMessage
			serve := func(line []byte, out io.Writer) {
				o := object(line)
				if o.Get("method") == nil { // the answer
					for _, id := range running {
						_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"answer":%s}}`+"\n", id, o.Get("result"))
					}
				} else if running = append(running, o.Get("id")); len(running) == calls {
					_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}`+"\n")
				}
			}
			o := &ClientOptions{Era: Legacy, Passive: true, Can: dragoman.AskForm, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			pipedWith(t, o, serve, func(t *testing.T, c *Client) {
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Can: dragoman.AskForm})
						switch {
						case err != nil:
							t.Error(err)
						case calls == 1 && res.Asks == nil, calls > 1 && string(res.Content) != `{"answer":{"action":"decline"}}`:
							t.Errorf("%+v", res)
						}
					})
				}
				all.Wait()
			})
			if said := strings.Count(log.String(), "several calls"); said != calls-1 {
				t.Errorf("the log says it %d times:\n%s", said, log.String())
			}
		})
	}
}
