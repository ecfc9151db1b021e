package fakemcp_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// nowhere is an http.ResponseWriter that keeps nothing.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

func benchmarkServer() *fakemcp.Server {
	return fakemcp.New(fakemcp.Config{Keep: -1, Tools: []fakemcp.Tool{{Name: "big", Do: fakemcp.Big, Size: 1024}}})
}

// BenchmarkHandler is one tools/call with 1 KB of text, without a network.
func BenchmarkHandler(b *testing.B) {
	s := benchmarkServer()
	body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"big","arguments":{"a":1},` + meta + `}}`
	r := &http.Request{Method: "POST", URL: &url.URL{Path: "/"}, Header: http.Header{
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {fakemcp.Modern},
		"Mcp-Method":           {"tools/call"},
		"Mcp-Name":             {"big"},
	}}
	b.ReportAllocs()
	for b.Loop() {
		r.Body = io.NopCloser(strings.NewReader(body))
		s.ServeHTTP(nowhere{http.Header{}}, r)
	}
	if s.Executions("big") < b.N {
		b.Fatalf("the tool ran %d times in %d calls", s.Executions("big"), b.N)
	}
}

// BenchmarkPipe is the same over pipes in this process.
func BenchmarkPipe(b *testing.B) {
	in, out := benchmarkServer().Pipe(b.Context())
	defer out.Close()
	lines := bufio.NewReader(in)
	message := []byte(call(1, "big", `{"a":1}`) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		out.Write(message)
		if _, err := lines.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
}
