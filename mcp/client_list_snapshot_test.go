package mcp

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestCurrent: where the server has said that its tools changed, one can wait for the
// list, which then comes at once; for one try, and no longer than one wants.
func TestCurrent(t *testing.T) {
	var mu sync.Mutex
	var asked []string // ids of requests for the list that were not answered
	var out io.Writer
	lists := 0
	serve := func(line []byte, to io.Writer) {
		o := object(line)
		if string(o.Get("method")) != `"tools/list"` {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		out = to
		if lists++; lists == 1 {
			_, _ = fmt.Fprintf(to, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"a"}]}}`+"\n", o.Get("id"))
			return
		}
		asked = append(asked, string(o.Get("id")))
	}
	pipedWith(t, &ClientOptions{Era: Legacy}, serve, func(t *testing.T, c *Client) {
		began := time.Now()
		say := func() {
			t.Helper()
			_, _ = io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
			synctest.Wait()
			if !c.Stale() {
				t.Error("nothing is stale")
			}
		}
		wait := func(ctx context.Context) <-chan struct{} {
			done := make(chan struct{})
			go func() { defer close(done); c.Current(ctx) }()
			synctest.Wait()
			return done
		}
		ended := func(done <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		answer := func(rest string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if len(asked) != 1 {
				t.Fatalf("asked %d times", len(asked))
			}
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", asked[0], rest)
			asked = nil
		}
		synctest.Wait()
		if !ended(wait(t.Context())) || c.Stale() {
			t.Error("there is nothing to wait for")
		}

		say()
		done := wait(t.Context())
		if ended(done) {
			t.Error("the list has not come")
		}
		answer(`"result":{"tools":[{"name":"b"}]}`)
		if !ended(done) || c.Stale() {
			t.Error("the list has come")
		}
		if list, _ := c.List(t.Context()); list.Tools.Exact("b") == nil {
			t.Error("it is not the new one")
		}

		say() // right after a list: the next one is not asked for yet
		if len(asked) != 0 {
			t.Fatal("asked without a pause")
		}
		done = wait(t.Context()) // but now
		answer(`"error":{"code":-32603,"message":"no"}`)
		if !ended(done) || c.Stale() {
			t.Error("the try is over")
		}

		say()
		ctx, cancel := context.WithCancel(t.Context())
		done = wait(ctx)
		cancel()
		if !ended(done) {
			t.Error("nobody waits any more")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
		answer(`"result":{"tools":[]}`)
	})
}
