package toolkit_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// TestBadLine: a line that is not JSON, or no message, gets an error, and the session goes on.
func TestBadLine(t *testing.T) {
	s := toolkit.NewServer(toolkit.Options{Name: "notes-mcp-server"})
	in, w := io.Pipe()
	r, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- s.ServeStdio(context.WithoutCancel(t.Context()), in, out)
		out.Close()
	}()
	answers := bufio.NewScanner(r)
	for _, step := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, `"protocolVersion":"2025-11-25"`},
		{`{"jsonrpc":"2.0","id":2,"method":ping}`, `"id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":`, `"id":null,"error":{"code":-32700`},
		{`{}`, `"id":null,"error":{"code":-32600`},
		{`5`, `"id":null,"error":{"code":-32600`},
		{`[]`, `"id":null,"error":{"code":-32600`},
		{`[{"jsonrpc":"2.0","id":3,"method":"ping"},1]`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":3,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`[{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","method":"notifications/a"}]`, `"id":null,"error":{"code":-32600`},
		{`  {"jsonrpc":"2.0","id":4,"method":"ping"}` + " \t\r", `"id":4`},
		{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `"id":3`},
	} {
		if _, err := io.WriteString(w, step.line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || !strings.Contains(answers.Text(), step.want) {
			t.Fatalf("%s got %q", step.line, answers.Text())
		}
	}
	w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
