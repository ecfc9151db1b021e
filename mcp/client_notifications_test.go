package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestLogBesideListeners: what a server over lines logs is of the one call that it works on,
// whoever listens beside it.
func TestLogBesideListeners(t *testing.T) {
	serve := func(line []byte, out io.Writer) {
		o := object(line)
		if method, _ := rawjson.String(o.Get("method")); method == methodTool {
			_, _ = io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}`+"\n")
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`+"\n", o.Get("id"))
		}
	}
	pipedWith(t, &ClientOptions{Era: Modern, Passive: true}, serve, func(t *testing.T, c *Client) {
		ctx, leave := context.WithCancel(t.Context())
		var listener sync.WaitGroup
		listener.Go(func() {
			_, _ = c.Call(ctx, dragoman.Call{
				Method: listenMethod, Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":["a:"]}}`),
				Notify: func(n dragoman.Notification) { t.Errorf("the listener was told %s", n.Method) },
			})
		})
		synctest.Wait()
		var logged []string
		res, err := c.Call(t.Context(), dragoman.Call{Tool: echo, Notify: func(n dragoman.Notification) { logged = append(logged, n.Method) }})
		if err != nil || res.Problem != nil || !slices.Equal(logged, []string{"notifications/message"}) {
			t.Errorf("%+v, %v; logged %q", res.Problem, err, logged)
		}
		leave()
		listener.Wait()
	})
}

// TestUpdatesThatNameNoSubscription: what a modern server over lines tells without saying whose
// subscription it is goes to those who want to hear of it; what it says reaches that one alone,
// which knows nothing of the ids on this connection.
func TestUpdatesThatNameNoSubscription(t *testing.T) {
	var send func(string)
	var first json.RawMessage
	serve := func(line []byte, out io.Writer) {
		send = func(s string) { _, _ = io.WriteString(out, s+"\n") }
		if o := object(line); first == nil && string(o.Get("method")) == `"`+listenMethod+`"` {
			first = o.Get("id")
		}
	}
	pipedWith(t, &ClientOptions{Era: Modern, Passive: true}, serve, func(t *testing.T, c *Client) {
		ctx, leave := context.WithCancel(t.Context())
		var mu sync.Mutex
		var heard []string
		var listeners sync.WaitGroup
		listen := func(who, uris string) {
			listeners.Go(func() {
				_, _ = c.Call(ctx, dragoman.Call{
					Method: listenMethod, Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":` + uris + `}}`),
					Notify: func(n dragoman.Notification) {
						mu.Lock()
						defer mu.Unlock()
						heard = append(heard, who+" "+string(n.Params))
					},
				})
			})
			synctest.Wait()
		}
		listen("ada", `["a:","b:"]`)
		listen("bob", `["b:"]`)
		for _, params := range []string{
			`{"uri":"a:"}`, `{"uri":"b:"}`, `{"uri":"c:"}`,
			`{"uri":"b:","_meta":{"io.modelcontextprotocol/subscriptionId":` + string(first) + `}}`,
			`{"uri":"a:","_meta":{"k":1.0,"io.modelcontextprotocol/subscriptionId":` + string(first) + `}}`,
			`{"uri":"a:","_meta":{"io.modelcontextprotocol\/subscriptionId":` + string(first) + `}}`, // as PHP writes it
			`{"uri":"b:","_meta":{"io.modelcontextprotocol/subscriptionId":99}}`,
		} {
			send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":` + params + `}`)
			synctest.Wait()
		}
		mu.Lock()
		slices.Sort(heard)
		if want := []string{`ada {"uri":"a:","_meta":{"k":1.0}}`, `ada {"uri":"a:"}`, `ada {"uri":"a:"}`, `ada {"uri":"b:"}`, `ada {"uri":"b:"}`, `bob {"uri":"b:"}`}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, not %q", heard, want)
		}
		mu.Unlock()
		leave()
		listeners.Wait()
	})
}
