package mcp

import (
	"bufio"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

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
		"input, unread":   {greeting + "\n" + list, true, leavePatience},
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
