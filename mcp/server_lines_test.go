package mcp

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// TestLinesEnd: a client over lines is served no longer than the context lasts, nor than its
// input does: also one that leaves its input open, and one that reads no more.
func TestLinesEnd(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"
	for name, tt := range map[string]struct {
		says  string
		input bool // is what ends
		most  time.Duration
	}{
		"context":         {greeting + "\n", false, 0},
		"context, unread": {greeting + "\n" + list, false, leavePatience},
		"input, unread":   {greeting + "\n" + list, true, pipePatience + leavePatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirIn, in := io.Pipe()
				out, theirOut := io.Pipe()
				defer out.Close()
				defer in.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = (&Server{}).ServeLines(ctx, &toolsetHost{tools: toolsettest.NewInner()}, theirIn, theirOut)
				}()
				go func() { _, _ = io.WriteString(in, tt.says) }()
				if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // and no more than that
					t.Fatal(err)
				}
				synctest.Wait()
				start := time.Now()
				if tt.input {
					_ = in.Close()
				} else {
					cancel()
				}
				<-ended
				if took := time.Since(start); took > tt.most {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestPipe: a client that says all at once and ends its input, as a pipe does, gets all its
// answers, of either era; whoever listens keeps nothing open.
func TestPipe(t *testing.T) {
	const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		time.AfterFunc(pipePatience/2, func() { close(slow) })
		for name, says := range map[string]string{
			"legacy": greeting + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"tools/list"}` + "\n",
			"modern": `{"jsonrpc":"2.0","id":6,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modern + `}}` + "\n" +
				`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + modern + `}}` + "\n",
		} {
			var out bytes.Buffer
			start := time.Now()
			if err := (&Server{}).ServeLines(t.Context(), &gatedHost{toolsetHost{tools: toolsettest.NewInner()}, slow}, strings.NewReader(says), &out); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took > pipePatience/2 || !strings.Contains(out.String(), `"id":7,"result":{`) {
				t.Errorf("%s: after %v: %s", name, took, out.String())
			}
		}
	})
}

// A gatedHost lists its tools once it may, and tells of no changes.
type gatedHost struct {
	toolsetHost
	may <-chan struct{}
}

func (h *gatedHost) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if call.Method == listenMethod {
		<-ctx.Done()
		return dragoman.Result{}, ctx.Err()
	}
	<-h.may
	return h.toolsetHost.Call(ctx, call)
}
