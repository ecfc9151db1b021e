package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// TestHear: whoever listens to a legacy server hears what it wanted to hear, and
// the server is asked for a resource once, as long as anybody listens.
func TestHear(t *testing.T) {
	var h heard
	var send func(string)
	serve := func(line []byte, out io.Writer) {
		h.add(line)
		send = func(s string) { _, _ = io.WriteString(out, s+"\n") }
		if o := object(line); o.Get("id") != nil {
			if uri, _ := rawjson.String(object(o.Get("params")).Get("uri")); uri == "bad:" {
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, o.Get("id")))
				return
			}
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, o.Get("id")))
		}
	}
	pipedWith(t, &ClientOptions{Era: Legacy, Passive: true}, serve, func(t *testing.T, c *Client) {
		var mu sync.Mutex
		got := map[string][]string{}
		var ends []context.CancelFunc
		var wg sync.WaitGroup
		for who, filter := range map[string]string{
			"ada": `{"toolsListChanged":true,"resourceSubscriptions":["a:"]}`,
			"bob": `{"resourceSubscriptions":["a:","b:"],"promptsListChanged":false}`,
		} {
			ctx, end := context.WithCancel(t.Context())
			ends = append(ends, end)
			wg.Go(func() {
				res, err := c.Call(ctx, dragoman.Call{
					Method: listenMethod, Arguments: json.RawMessage(`{"notifications":` + filter + `}`),
					Notify: func(n dragoman.Notification) {
						mu.Lock()
						defer mu.Unlock()
						got[who] = append(got[who], n.Method+string(n.Params))
					},
				})
				if err != context.Canceled || res.Problem != nil {
					t.Errorf("listening ended with %+v, %v", res.Problem, err)
				}
			})
		}
		synctest.Wait()
		send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		send(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
		send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:"}}`)
		send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b:"}}`)
		synctest.Wait()
		a, b := `notifications/resources/updated{"uri":"a:"}`, `notifications/resources/updated{"uri":"b:"}`
		mu.Lock()
		if !slices.Equal(got["ada"], []string{Acknowledged, "notifications/tools/list_changed", a}) || !slices.Equal(got["bob"], []string{Acknowledged, a, b}) {
			t.Errorf("heard %q", got)
		}
		mu.Unlock()
		res, err := c.Call(t.Context(), dragoman.Call{Method: listenMethod, Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":["a:","bad:"]}}`)})
		if err != nil || res.Problem == nil {
			t.Errorf("a resource that cannot be watched: %+v, %v", res, err)
		}
		for _, end := range ends {
			end()
		}
		wg.Wait()
		synctest.Wait()
		if h.holding("resources/subscribe") != 3 || h.holding("resources/unsubscribe") != 2 || len(c.legacyListeners.watched) != 0 {
			t.Errorf("the server heard %q", h.all)
		}
	})
}

// TestHearDespiteSilence: a server that does not answer for one resource holds up neither
// those who want to hear of another nor those who want to go.
func TestHearDespiteSilence(t *testing.T) {
	serve := func(line []byte, out io.Writer) {
		o := object(line)
		if uri, _ := rawjson.String(object(o.Get("params")).Get("uri")); o.Get("id") != nil && uri != "silent:" {
			_, _ = fmt.Fprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", o.Get("id"))
		}
	}
	pipedWith(t, &ClientOptions{Era: Legacy, Passive: true}, serve, func(t *testing.T, c *Client) {
		var wg sync.WaitGroup
		listen := func(uri string, hears func()) (leave func()) {
			ctx, leave := context.WithCancel(t.Context())
			wg.Go(func() {
				defer hears()
				_, _ = c.Call(ctx, dragoman.Call{
					Method: listenMethod, Arguments: json.RawMessage(`{"notifications":{"resourceSubscriptions":["` + uri + `"]}}`),
					Notify: func(dragoman.Notification) { hears() },
				})
			})
			return leave
		}
		first := listen("silent:", func() {})
		synctest.Wait()
		start := time.Now()
		left, leftBy := context.WithCancel(t.Context())
		second := listen("silent:", leftBy)
		synctest.Wait()
		second()
		<-left.Done()
		heard, heardBy := context.WithCancel(t.Context())
		third := listen("a:", heardBy)
		<-heard.Done()
		if waited := time.Since(start); waited > 0 {
			t.Errorf("both waited for %v", waited)
		}
		first()
		third()
		wg.Wait()
		if len(c.legacyListeners.watched) != 0 {
			t.Errorf("still watched: %v", c.legacyListeners.watched)
		}
	})
}

// TestTaskIsPolledAgain: a task that was made is asked for again where the way to
// the server broke, and never made again.
func TestTaskIsPolledAgain(t *testing.T) {
	breaks := map[string]func(http.ResponseWriter){
		"broken": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"502":    func(w http.ResponseWriter) { http.Error(w, "", http.StatusBadGateway) },
		"503": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "20")
			http.Error(w, "", http.StatusServiceUnavailable)
		},
	}
	for _, tt := range []struct {
		how     string
		forGood bool
	}{{"broken", false}, {"broken", true}, {"502", false}, {"502", true}, {"503", false}} {
		forGood, polls := tt.forGood, 0
		srv := &fake{era: Legacy, caps: `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`, on: on{}}
		srv.on["tools/call"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			result(w, id, `{"task":{"taskId":"t","status":"working","pollInterval":100}}`)
		}
		srv.on["tasks/get"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			if polls++; polls < 4 || forGood {
				breaks[tt.how](w)
				return
			}
			result(w, id, `{"taskId":"t","status":"completed"}`)
		}
		srv.on["tasks/result"] = func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			result(w, id, `{"done":1}`)
		}
		tool := &dragoman.Tool{Name: "t", Original: "t", Definition: json.RawMessage(`{"name":"t","execution":{"taskSupport":"required"}}`)}
		connected(t, srv, nil, func(t *testing.T, c *Client) {
			res, err := c.Call(t.Context(), dragoman.Call{Tool: tool})
			if err != nil || res.Ran != dragoman.RanYes || (res.Problem != nil) != forGood || !forGood && string(res.Content) != `{"done":1}` {
				t.Errorf("%s, for good %t: %+v, %v", tt.how, forGood, res, err)
			}
			if n := srv.count("tools/call"); n != 1 {
				t.Errorf("the task was made %d times", n)
			}
		})
	}
}

// TestListBounds: the bounds of a list hold for its last page, too, and count what
// its entries cost.
func TestListBounds(t *testing.T) {
	for name, limits := range map[string]Limits{"items": {Items: 3}, "size": {List: 4*itemSize - 1}} {
		t.Run(name, func(t *testing.T) {
			srv := &fake{era: Modern, on: on{"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				result(w, id, `{"tools":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`)
			}}}
			connected(t, srv, &ClientOptions{Passive: true, Limits: limits}, func(t *testing.T, c *Client) {
				if err := c.Refresh(t.Context()); !isTooLarge(err) {
					t.Errorf("Refresh = %v", err)
				}
			})
		})
	}
}

func isTooLarge(err error) bool {
	return err != nil && (&pendingCall{c: &Client{}}).problem(err).Code == dragoman.CodeTooLarge
}

// TestTTL: a list is asked for again when its time is over, and not more than once
// a minute.
func TestTTL(t *testing.T) {
	srv := &fake{era: Modern, on: on{"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		result(w, id, `{"tools":[],"ttlMs":1000,"cacheScope":"public"}`)
	}}}
	connected(t, srv, &ClientOptions{}, func(t *testing.T, c *Client) {
		list, _ := c.List(t.Context())
		if s := list.Servers[0]; s.TTL != time.Second || !s.Public {
			t.Errorf("%+v", s)
		}
		<-time.After(10*time.Minute + 30*time.Second)
		if n := srv.count("tools/list"); n < 9 || n > 11 {
			t.Errorf("listed %d times in ten minutes", n)
		}
	})
}
