package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// TestVisitsAreAskedForOnce: who said yes to a visit is not asked again while the server
// waits for its end; the call is made again after longer and longer pauses. Another visit
// is asked for, and one that has no id each time.
func TestVisitsAreAskedForOnce(t *testing.T) {
	visit := func(id string) string {
		return `{"mode":"url","message":"Go","url":"https://a.test/"` + id + `}`
	}
	first, second, nameless := visit(`,"elicitationId":"1"`), visit(`,"elicitationId":"2"`), visit("")
	for name, tt := range map[string]struct {
		wants [][]string // of each call but the last
		asked int
		took  time.Duration
	}{
		"the same":        {[][]string{{first}, {first}, {first}, {first}}, 1, 7 * time.Second},
		"another":         {[][]string{{first}, {first, second}, {second}}, 2, 2 * time.Second},
		"one without ids": {[][]string{{nameless}, {nameless}}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			calls, asked := 0, 0
			serve := func(line []byte, out io.Writer) {
				o := object(line)
				if !strings.Contains(string(line), "tools/call") {
					return
				}
				answer := `"result":{}`
				if calls < len(tt.wants) {
					answer = `"error":{"code":-32042,"message":"Go there.","data":{"elicitations":[` + strings.Join(tt.wants[calls], ",") + `]}}`
				}
				calls++
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", o.Get("id"), answer)
			}
			pipedWith(t, &ClientOptions{Era: Legacy, Passive: true, Can: dragoman.AskURL}, serve, func(t *testing.T, c *Client) {
				began := time.Now()
				loop := &dragoman.Loop{Tools: c, Ask: func(_ context.Context, _ dragoman.Call, asks *dragoman.Asks) (*dragoman.Answers, error) {
					asked++
					replies := map[string]json.RawMessage{}
					for _, q := range asks.Questions {
						replies[q.Key] = json.RawMessage(`{"action":"accept"}`)
					}
					return &dragoman.Answers{Replies: replies}, nil
				}}
				res, err := loop.Call(t.Context(), dragoman.Call{Tool: echo, Can: dragoman.AskURL})
				if err != nil || res.Problem != nil || asked != tt.asked || time.Since(began) != tt.took {
					t.Errorf("%+v, %v: asked %d times, after %s", res, err, asked, time.Since(began))
				}
			})
		})
	}
}
