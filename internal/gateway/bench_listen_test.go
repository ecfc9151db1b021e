package gateway

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// What an MCP client holds here that only listens: the heap and the stacks of a thousand
// connections, each. The clients are in the same process and have next to nothing.
func BenchmarkListening(b *testing.B) {
	const clients = 1000
	legacy := map[string]string{"Mcp-Protocol-Version": "2025-11-25"}
	for _, era := range []struct {
		name string
		open func(b *testing.B, at string) net.Conn
	}{
		{"modern", func(b *testing.B, at string) net.Conn {
			return openStream(b, at, "POST", map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"},
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		}},
		{"legacy", func(b *testing.B, at string) net.Conn {
			begin := func(session, body string) string {
				r, _ := http.NewRequest("POST", "http://"+at+"/mcp", bytes.NewReader([]byte(body)))
				r.Header.Set("Content-Type", "application/json")
				if session != "" {
					r.Header.Set("Mcp-Session-Id", session)
				}
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				defer res.Body.Close()
				_, _ = new(bytes.Buffer).ReadFrom(res.Body)
				return res.Header.Get("Mcp-Session-Id")
			}
			session := begin("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
			begin(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			header := map[string]string{"Mcp-Session-Id": session}
			maps.Copy(header, legacy)
			return openStream(b, at, "GET", header, "")
		}},
	} {
		b.Run(era.name, func(b *testing.B) {
			server := httptest.NewServer(benchHandler(b, fakemcp.BothEras, nil))
			defer server.Close()
			at := server.Listener.Addr().String()
			for b.Loop() {
				all := []net.Conn{era.open(b, at)} // what is made once is made
				before, began := held()
				for range clients {
					all = append(all, era.open(b, at))
				}
				http.DefaultClient.CloseIdleConnections()
				after, now := held()
				b.ReportMetric(float64(after-before)/clients/1024, "KiB/listener")
				b.ReportMetric(float64(now-began)/clients, "goroutines/listener")
				for _, c := range all {
					_ = c.Close()
				}
			}
		})
	}
}

// openStream opens a stream and returns once it has begun.
func openStream(b *testing.B, at, method string, header map[string]string, body string) net.Conn {
	b.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		b.Fatal(err)
	}
	request := fmt.Sprintf("%s /mcp HTTP/1.1\r\nHost: %s\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", method, at, len(body))
	for name, value := range header {
		request += name + ": " + value + "\r\n"
	}
	if _, err := c.Write([]byte(request + "\r\n" + body)); err != nil {
		b.Fatal(err)
	}
	var got []byte
	for buf := make([]byte, 512); !bytes.Contains(got, []byte("data:")); {
		n, err := c.Read(buf)
		if err != nil {
			b.Fatal(err, string(got))
		}
		got = append(got, buf[:n]...)
	}
	return c
}

// held is what is alive and the stacks, in bytes, and how many goroutines there are.
func held() (size, goroutines int64) {
	runtime.GC()
	runtime.GC() // stacks are made smaller by the one after
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), int64(runtime.NumGoroutine())
}
