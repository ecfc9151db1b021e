package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// The benchmarks call one tool with a text of 1 KB through a server that does
// nothing else, so what they show is the client and the loopback.

var (
	benchText   = strings.Repeat("0123456789abcdef", 64)
	benchResult = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, benchText)
)

// respond answers one message as plainly as can be.
func respond(body []byte) []byte {
	o := object(body)
	id := o.Get("id")
	var result string
	switch string(o.Get("method")) {
	case `"server/discover"`:
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case `"initialize"`:
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
	default:
		result = benchResult
	}
	return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func benchServer(b *testing.B, stream bool) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if object(body).Get("id") == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := respond(body)
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", answer)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

func benchCalls(b *testing.B, c *Client) {
	b.Helper()
	b.Cleanup(func() { _ = c.Close() })
	call := dragoman.Call{Tool: &dragoman.Tool{Original: "echo"}, Arguments: json.RawMessage(`{"city":"Lisbon","days":3}`)}
	b.ReportAllocs()
	for b.Loop() {
		res, err := c.Call(context.Background(), call)
		if err != nil || res.Problem != nil {
			b.Fatal(res.Problem, err)
		}
	}
}

func BenchmarkCallHTTP(b *testing.B) {
	for _, bc := range []struct {
		name   string
		era    Era
		stream bool
	}{{"modern", Modern, false}, {"modern/stream", Modern, true}, {"legacy", Legacy, false}, {"legacy/stream", Legacy, true}} {
		b.Run(bc.name, func(b *testing.B) {
			c, err := Connect(b.Context(), &HTTP{URL: benchServer(b, bc.stream)}, &ClientOptions{Era: bc.era, Passive: true})
			if err != nil {
				b.Fatal(err)
			}
			benchCalls(b, c)
		})
	}
}

// BenchmarkCallRaw is the floor: the same exchange with net/http and nothing.
func BenchmarkCallRaw(b *testing.B) {
	url := benchServer(b, false)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"city":"Lisbon","days":3}}}`)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// BenchmarkCallSDK is the official SDK's client against the same server.
func BenchmarkCallSDK(b *testing.B) {
	s, err := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1"}, nil).
		Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: benchServer(b, false)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	params := &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"city":"Lisbon","days":3}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CallTool(b.Context(), params); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCallPipe(b *testing.B) {
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	go func() {
		lines := newLines(theirIn)
		for {
			line, err := lines.next()
			if err != nil {
				_ = theirOut.Close()
				return
			}
			if object(line).Get("id") != nil {
				_, _ = theirOut.Write(append(respond(line), '\n'))
			}
		}
	}()
	c, err := Connect(b.Context(), &Pipe{Reader: ourIn, Writer: ourOut}, &ClientOptions{Passive: true})
	if err != nil {
		b.Fatal(err)
	}
	benchCalls(b, c)
}

func BenchmarkTools(b *testing.B) {
	var list strings.Builder
	for i := range 300 {
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"name":"tool_%d","description":%q,"inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"a city"}},"required":["city"]},"annotations":{"readOnlyHint":true}}`, i, benchText[:400])
	}
	items := list.String()
	b.SetBytes(int64(len(items)))
	b.ReportAllocs()
	raw := object([]byte(`{"tools":[` + items + `]}`)).Get("tools")
	for b.Loop() {
		for i, part := range elements(raw) {
			if t := dragoman.ReadTool("s", part); t.Quarantined != nil {
				b.Fatal(i, t.Quarantined)
			}
		}
	}
}

func elements(b []byte) []json.RawMessage {
	e, _ := rawjson.Elements(b)
	return e
}

func newLines(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReader(r), limit: 1 << 20}
}

// BenchmarkServe is one call at our server, without the network.
func BenchmarkServe(b *testing.B) {
	s := &Server{Host: func(*http.Request) (Host, error) { return stillHost{}, nil }}
	b.Cleanup(s.Close)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"city":"Lisbon","days":3},` + modernMeta + `}}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader(body))
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"},
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}

// A stillHost answers every call at once with the same.
type stillHost struct{}

func (stillHost) Owner() string                        { return "" }
func (stillHost) Describe(context.Context) Description { return Description{} }
func (stillHost) Call(context.Context, dragoman.Call) (dragoman.Result, error) {
	return dragoman.Result{Content: json.RawMessage(`{"content":[{"type":"text","text":"sunny"}]}`), Ran: dragoman.RanYes}, nil
}
