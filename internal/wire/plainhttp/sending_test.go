//go:build unix

package plainhttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/plainhttp"
)

// A server that stops reading in the middle of a request is given up, as one that does not
// answer is.
func TestStopsReading(t *testing.T) {
	over, cleanup := make(chan struct{}), t.Cleanup
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over })
	for _, tt := range []struct {
		name    string
		tls, h2 bool
		length  int64
	}{
		{"plain", false, false, 256 << 20},
		{"plain, of unknown length", false, false, -1},
		{"TLS", true, false, 256 << 20},
		{"HTTP/2", true, true, 256 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(handler)
			var rt *plainhttp.Transport
			bound := func(t *http.Transport) { t.ResponseHeaderTimeout = 200 * time.Millisecond }
			if tt.tls {
				s.EnableHTTP2 = tt.h2
				s.StartTLS()
				rt = trusting(s, bound)
			} else {
				s.Start()
				rt = transport(bound)
			}
			cleanup(s.Close)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, "POST", s.URL, zeros{})
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = tt.length
			_, err = rt.RoundTrip(r)
			if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() || ctx.Err() != nil {
				t.Errorf("got %v, and the context: %v", err, ctx.Err())
			}
		})
	}
	close(over)
}

// What is read slowly, or comes slowly from whoever sends it, goes on for as long as there is
// something of it each time.
func TestReadsSlowly(t *testing.T) {
	whole := strings.Repeat("x", 2<<20)
	for name, body := range map[string]func() io.Reader{
		"read":    func() io.Reader { return io.MultiReader(strings.NewReader(whole)) },
		"written": func() io.Reader { return strings.NewReader(whole) },
		"trickles": func() io.Reader {
			return io.MultiReader(strings.NewReader(whole[1:]), late(time.Minute), strings.NewReader("x"))
		},
	} {
		for _, length := range []int64{int64(len(whole)), -1} {
			synctest.Test(t, func(t *testing.T) {
				rt := plainhttp.New(&http.Transport{ResponseHeaderTimeout: 10 * time.Second, DialContext: func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go func() {
						defer theirs.Close()
						r, err := http.ReadRequest(bufio.NewReaderSize(slowly{theirs}, 64<<10))
						if err != nil {
							return
						}
						n, _ := io.Copy(io.Discard, r.Body)
						if n == int64(len(whole)) {
							_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
						}
					}()
					return ours, nil
				}})
				r, err := http.NewRequestWithContext(t.Context(), "POST", "http://server.test", body())
				if err != nil {
					t.Fatal(err)
				}
				r.ContentLength = length
				res, err := rt.RoundTrip(r)
				if err != nil {
					t.Fatalf("%s, of %d bytes: %v", name, length, err)
				}
				defer res.Body.Close()
				time.Sleep(time.Minute) // the answer may be read at any time
				if b, err := io.ReadAll(res.Body); err != nil || string(b) != "hi" {
					t.Errorf("%s, of %d bytes: got %q, %v", name, length, b, err)
				}
			})
		}
	}
}

// slowly takes a second for each part.
type slowly struct{ io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Reader.Read(p)
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
