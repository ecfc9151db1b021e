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
		{"\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, `"protocolVersion":"2025-11-25"`},
		{`{"jsonrpc":"2.0","id":2,"method":ping}`, `"id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":`, `"id":null,"error":{"code":-32700`},
		{"\ufeff\n" + `{}`, `"id":null,"error":{"code":-32600`},
		{`5`, `"id":null,"error":{"code":-32600`},
		{`[]`, `"id":null,"error":{"code":-32600`},
		{`[1]`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":3,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
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

// TestBatch: each message of a batch is one, in whatever version of the protocol, and what
// is none among them is answered.
func TestBatch(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-11-25"} {
		s := toolkit.NewServer(toolkit.Options{Name: "notes-mcp-server"})
		in, w := io.Pipe()
		r, out := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := s.ServeStdio(context.WithoutCancel(t.Context()), in, out)
			in.CloseWithError(io.ErrClosedPipe)
			out.Close()
			done <- err
		}()
		answers := bufio.NewScanner(r)
		for _, step := range []struct {
			line string
			want []string // in any order
		}{
			{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, []string{`"id":1,`}},
			{`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, []string{`"id":2,"result"`}},
			{`[{"jsonrpc":"2.0","id":3,"method":"ping"},1,{"jsonrpc":"2.0","id":4,"method":"ping"}]`, []string{`"id":3,"result"`, `"id":null,"error":{"code":-32600`, `"id":4,"result"`}},
			{`[{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","id":5,"method":"ping"}]`, []string{`"id":5,"result"`}},
			{`[{"jsonrpc":"2.0","method":"notifications/a"},{"jsonrpc":"2.0","id":6,"method":"ping"}]`, []string{`"id":6,"result"`}},
		} {
			if _, err := io.WriteString(w, step.line+"\n"); err != nil {
				t.Fatalf("%s: %s: %v", version, step.line, err)
			}
			got := ""
			for range step.want {
				if !answers.Scan() {
					t.Fatalf("%s: %s ended the session: %v", version, step.line, <-done)
				}
				got += answers.Text() + "\n"
			}
			for _, want := range step.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s: %s got %s", version, step.line, got)
				}
			}
		}
		w.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
