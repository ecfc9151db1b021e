package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/toolsettest"
)

// unaskedHost has a tool one of whose arguments is told in a header. It fails the test if
// it is called.
type unaskedHost struct {
	stillHost
	t *testing.T
}

func (unaskedHost) InputSchema(context.Context, string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"}}}`)
}

func (h unaskedHost) Call(_ context.Context, call dragoman.Call) (dragoman.Result, error) {
	h.t.Errorf("called with %s", call.Arguments)
	return dragoman.Result{}, nil
}

// TestArgumentsUnread: what a model wrote that is no I-JSON reaches no tool, and is told it
// in the call's own result, in both eras, over HTTP and lines. Some clients end a session
// over status 400, and one on lines knows an answer by its id alone.
func TestArgumentsUnread(t *testing.T) {
	for _, arguments := range []string{`{"text":"\ud83d"}`, `{"text":"a","text":"b"}`, "{\"text\":\"\xff\"}"} {
		body := func(meta string) string {
			return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":` + arguments + meta + `}}`
		}
		told := func(t *testing.T, status int, answer, resultType string) {
			t.Helper()
			o := object([]byte(answer))
			result := object(o.Get("result"))
			if status != http.StatusOK || string(o.Get("id")) != "7" || string(result.Get("isError")) != "true" || string(result.Get("resultType")) != resultType ||
				!strings.Contains(answer, "/text") || rawjson.Check([]byte(answer)) != nil {
				t.Errorf("%d: %s", status, answer)
			}
		}
		s := &Server{Host: func(*http.Request) (Host, error) { return unaskedHost{t: t}, nil }}
		srv := httptest.NewServer(s)
		t.Cleanup(func() {
			srv.CloseClientConnections()
			s.Close()
			srv.Close()
		})
		url := srv.URL
		status, _, answer := post(t, url, body(","+modernMeta), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo", "Mcp-Param-Text", "x")
		told(t, status, answer, `"complete"`)

		_, header, _ := post(t, url, greeting)
		status, _, answer = post(t, url, body(""), headerSession, header.Get(headerSession))
		told(t, status, answer, "")

		pipe := throughPipe(t, &Server{}, toolsettest.NewInner())
		lines := bufio.NewReader(pipe.Reader)
		for _, message := range []string{greeting, body("")} {
			if _, err := io.WriteString(pipe.Writer, message+"\n"); err != nil {
				t.Fatal(err)
			}
			answer, _ = lines.ReadString('\n')
		}
		told(t, http.StatusOK, answer, "")
	}
}

// TestUnreadableIsShort: a model is told where it is wrong, and not all that it wrote there.
func TestUnreadableIsShort(t *testing.T) {
	name := strings.Repeat("a", 100_000)
	for _, arguments := range []string{`{"` + name + `":1,"` + name + `":2}`, `{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`} {
		in, failed := readInbound([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":` + arguments + `}}`))
		if failed != nil || in.unread == nil {
			t.Fatalf("%v", failed)
		}
		if said := string(unreadable(in.unread)); len(said) > 600 || strings.Contains(said, "two ways") {
			t.Errorf("%d bytes: %.300s", len(said), said)
		}
	}
}
