package fakemcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/stage/leaktest"
)

func TestMain(m *testing.M) {
	if fakemcp.IsChild() {
		fakemcp.Main()
	}
	os.Exit(leaktest.Run(m))
}

// lines is a client over pipes that shows each message as it came.
type lines struct {
	t   *testing.T
	in  *bufio.Reader
	out io.WriteCloser
}

func pipe(t *testing.T, s *fakemcp.Server) *lines {
	t.Helper()
	in, out := s.Pipe(t.Context())
	t.Cleanup(func() { out.Close(); io.Copy(io.Discard, in) })
	return &lines{t: t, in: bufio.NewReader(in), out: out}
}

func (c *lines) send(message string) {
	c.t.Helper()
	if _, err := io.WriteString(c.out, message+"\n"); err != nil {
		c.t.Fatalf("send %s: %v", message, err)
	}
}

func (c *lines) next() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("read a line: %v (have %.200q)", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

func (c *lines) ask(message string) string {
	c.t.Helper()
	c.send(message)
	return c.next()
}

// call is the JSON of a legacy tools/call.
func call(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta        = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

// web is a client over HTTP.
type web struct {
	t       *testing.T
	url     string
	client  *http.Client
	session string
}

func serve(t *testing.T, s *fakemcp.Server) *web {
	t.Helper()
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	client := ts.Client()
	client.Transport.(*http.Transport).DisableCompression = true
	return &web{t: t, url: ts.URL, client: client}
}

// post sends a message, with the headers that its era wants.
func (c *web) post(ctx context.Context, message string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if strings.Contains(message, fakemcp.Modern) {
		var m struct {
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			return nil, err
		}
		req.Header.Set("Mcp-Protocol-Version", fakemcp.Modern)
		req.Header.Set("Mcp-Method", m.Method)
		if m.Params.Name != "" {
			req.Header.Set("Mcp-Name", m.Params.Name)
		}
	} else if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return c.client.Do(req)
}

// ask posts a message and returns status and body.
func (c *web) ask(message string) (int, string) {
	c.t.Helper()
	res, err := c.post(c.t.Context(), message)
	if err != nil {
		c.t.Fatalf("post %s: %v", message, err)
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("read the answer to %s: %v", message, err)
	}
	return res.StatusCode, string(bytes.TrimSpace(body))
}

// start opens a legacy session.
func (c *web) start() *web {
	c.t.Helper()
	if status, body := c.ask(initialize); status != 200 || c.session == "" {
		c.t.Fatalf("initialize: %d %s", status, body)
	}
	if status, body := c.ask(initialized); status != 202 || body != "" {
		c.t.Fatalf("initialized: %d %s", status, body)
	}
	return c
}
